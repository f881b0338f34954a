"""`turngate report`: what was refused by week, room and rule, and the smallest change that lets the ordinary pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Turngate
from tests.client.places import ALEX, BO, DIRECT, GENERAL
from turngate.client.testing import Workplace
from turngate.schemas.shapes import Code
from turngate.streams.refusals import RULES

OPEN = "slack:T1/C7"
Told = Callable[[Path], dict[str, Any]]
_DAY = 86_400


@pytest.fixture
def told(turngate: Turngate) -> Told:
    def report(log: Path) -> dict[str, Any]:
        result = turngate("report", "--tenant", "acme", "--log", log, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    return report


async def turn(
    workplace: Workplace, room: str, text: str = "hello", *, tools: tuple[str, ...] = (), saw: str = ""
) -> None:
    """An agent that observes: it speaks whatever is decided."""
    asked = workplace.said(room, "well?", by=ALEX)
    async with workplace.gate(mode="observe").turn(room=room, trigger=asked) as made:
        for tool in tools:
            await made.tool_returned(tool, "read")
        if saw:
            made.saw(saw)
        assert (await made.say(text)).text == text


def opened(log: Path, **policy: Any) -> Workplace:
    workplace = Workplace(log=log, policy=policy)
    workplace.room(DIRECT, ALEX, kind="direct")
    workplace.room(GENERAL, ALEX, BO)
    return workplace


async def test_an_agent_that_only_observed_sees_what_it_would_have_lost(
    turngate: Turngate, told: Told, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with opened(log) as workplace:
        private = workplace.said(DIRECT, "I fly on the 14th", by=ALEX)
        await turn(workplace, GENERAL)
        for _ in range(2):
            await turn(workplace, GENERAL, tools=("wiki",))
        await turn(workplace, DIRECT, tools=("wiki", "diary"))
        await turn(workplace, GENERAL, saw=private)
        await turn(workplace, GENERAL, tools=("wiki",), saw=private)
        workplace.wait(8 * _DAY)
        await turn(workplace, GENERAL, tools=("wiki",))
    found = told(log)
    assert (found["decided"], found["refused"], found["passing"]) == (7, 6, 4)
    assert [tuple(row.values()) for row in found["by"]] == [
        ("2026-W01", GENERAL, "R-AUD-2", "audience_not_subset", 2, 5),
        ("2026-W01", GENERAL, "R-AUD-2", "source_unknown", 3, 5),
        ("2026-W01", DIRECT, "R-AUD-2", "source_unknown", 1, 1),
        ("2026-W02", GENERAL, "R-AUD-2", "source_unknown", 1, 1),
    ]
    unnamed = {"adapter": "mcp", "private": True, "untrusted": True}
    assert found["change"] == {
        "tools": {
            "wiki": unnamed | {"audience": {"readers": [ALEX, BO]}},
            "diary": unnamed | {"audience": {"readers": [ALEX]}},
        }
    }
    shown = turngate("report", "--tenant", "acme", "--log", log).stdout
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    assert f"$ turngate report --tenant acme --log turngate.db\n{shown}```" in page
    assert yaml.safe_load(shown[shown.index("# tools.wiki") : shown.index("2 need something else")]) == found["change"]


async def test_the_change_lets_pass_what_it_says(told: Told, tmp_path: Path) -> None:
    """The same agent under the changed policy is refused no more; its tools are as untrusted as before."""
    with opened(tmp_path / "first") as workplace:
        await turn(workplace, GENERAL, tools=("wiki",))
    change = told(tmp_path / "first")["change"]
    with opened(tmp_path / "second", **change) as workplace:
        await turn(workplace, GENERAL, tools=("wiki",))
    found = told(tmp_path / "second")
    assert (found["decided"], found["refused"], found["change"]) == (1, 0, {})


async def test_a_room_that_has_started_keeps_its_policy_and_another_tenant_begins_with_the_change(
    told: Told, tmp_path: Path
) -> None:
    """R-POL-1: whoever has observed begins in earnest under a tenant of its own."""
    with opened(tmp_path / "log") as workplace:
        await turn(workplace, GENERAL, tools=("wiki",))
    change = told(tmp_path / "log")["change"]
    texts = []
    for tenant, before in (("acme-watch", {}), ("acme", change)):
        with Workplace(tenant=tenant, policy=before) as workplace:
            workplace.room(GENERAL, ALEX, BO)
            workplace.publish(change)
            asked = workplace.said(GENERAL, "well?", by=ALEX)
            async with workplace.gate().turn(room=GENERAL, trigger=asked) as made:
                await made.tool_returned("wiki", "read")
                texts.append((await made.say("hello")).text)
    assert texts == [None, "hello"]


async def test_an_export_is_as_good_as_the_log(turngate: Turngate, told: Told, tmp_path: Path) -> None:
    with opened(tmp_path / "log") as workplace:
        await turn(workplace, GENERAL, tools=("wiki",))
    assert turngate("export", tmp_path / "out", "--log", tmp_path / "log").exit_code == 0
    shown = turngate("report", "--tenant", "acme", "--exported", tmp_path / "out", "--json").stdout
    assert json.loads(shown) == told(tmp_path / "log")


async def test_another_tenant_s_policy_and_turns_are_not_looked_at(turngate: Turngate, tmp_path: Path) -> None:
    with opened(tmp_path / "log") as workplace:
        await turn(workplace, GENERAL, tools=("wiki",))
    of_bolt = ("report", "--tenant", "bolt", "--log", tmp_path / "log")
    mistyped = turngate(*of_bolt)
    assert (mistyped.exit_code, mistyped.stdout) == (2, "")
    assert mistyped.stderr == "turngate: nothing of a tenant bolt was recorded here; check --tenant\n"
    with Workplace(tenant="bolt", log=tmp_path / "log"):
        pass
    assert turngate(*of_bolt).stdout == "0 turns were decided, 0 refused\n"


async def test_what_a_change_brings_to_light_is_looked_at_too(told: Told, tmp_path: Path) -> None:
    """R-TURN-2: links are looked at only where the audience permits, and then its host is missing as well."""
    with opened(tmp_path / "log") as workplace:
        await turn(workplace, GENERAL, "see https://docs.example/a", tools=("wiki",))
        await turn(workplace, GENERAL, "see https://evil.example/b", tools=("wiki",), saw="message:slack:T1/D9/1")
    found = told(tmp_path / "log")
    assert found["passing"] == 1
    assert found["change"]["interlock"] == {"link_hosts": ["docs.example"]}


async def test_agents_and_open_rooms_that_a_policy_forgot(told: Told, tmp_path: Path) -> None:
    with Workplace("scout", log=tmp_path / "log", policy={"agents": {}}) as workplace:
        workplace.room(GENERAL, ALEX, BO)
        await turn(workplace, GENERAL)
    found = told(tmp_path / "log")
    assert found["change"] == {"agents": {"scout": {"accounts": ["slack:T1/USCOUT"]}}}
    with opened(tmp_path / "open") as workplace:
        workplace.room(OPEN, ALEX, visibility="open")
        await turn(workplace, OPEN)
    found = told(tmp_path / "open")
    assert (found["passing"], found["change"]) == (1, {"open_rooms": "own_words"})


async def test_nothing_is_proposed_where_nobody_can_tell(turngate: Turngate, told: Told, tmp_path: Path) -> None:
    """Who reads the room is not known; and no guard is loosened because it works."""
    with opened(
        tmp_path / "log", tools={"web": {"audience": "public", "untrusted": True, "private": True}}
    ) as workplace:
        workplace.unlisted(GENERAL)
        await turn(workplace, GENERAL, tools=("wiki",))
        await turn(workplace, DIRECT, "see https://evil.example/b", tools=("web",))
    found = told(tmp_path / "log")
    assert (found["refused"], found["passing"]) == (2, 1)
    assert found["change"] == {"interlock": {"link_hosts": ["evil.example"]}}


@pytest.mark.parametrize(
    "name", ["x\nagents: {evil: {}}\n#", "x\r# y", "\x1b[2J\x9b2J", "a\u202eb\u2028c\x85", "ü: {[&*", "wiki"]
)
async def test_a_name_that_a_model_chose_is_a_name_wherever_it_is_shown(
    turngate: Turngate, told: Told, tmp_path: Path, name: str
) -> None:
    """A model may call a tool whatever it likes, and the proposal is there to be pasted."""
    room = "slack:T1/C\u202e1"
    with opened(tmp_path / "log") as workplace:
        workplace.room(room, ALEX)
        await turn(workplace, room, tools=(name,))
    shown = turngate("report", "--tenant", "acme", "--log", tmp_path / "log").stdout
    assert shown.replace("\n", "").isprintable()
    change = told(tmp_path / "log")["change"]
    assert yaml.safe_load(shown[shown.index("\n# tools.") :]) == change
    assert (list(change), list(change["tools"])) == (["tools"], [name])


def test_a_log_without_turns_says_so(turngate: Turngate, tmp_path: Path) -> None:
    with opened(tmp_path / "log"):
        pass
    result = turngate("report", "--tenant", "acme", "--log", tmp_path / "log")
    assert (result.exit_code, result.stdout) == (0, "0 turns were decided, 0 refused\n")
    assert turngate("report", "--tenant", "acme", "--log", tmp_path / "missing").exit_code == 2


def test_every_code_of_a_turn_has_its_rule() -> None:
    others = """
        base_not_current code_unknown code_expired code_wrong_reader code_wrong_room not_sole_author not_direct
        already_granted turn_conflict invalid policy_invalid revision_exists not_operator tainted_rule
        tainted_correction machine_refusal dream_mixed_audience destination_enlarged text_too_long connector_refused
        connector_unreachable rate_limited not_confirmed undrafted_call
    """
    assert {code.value for code in Code} - {code.value for code in RULES} == set(others.split())
