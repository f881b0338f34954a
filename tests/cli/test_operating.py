"""`pause`, `resume`, `forget`, `grant`, `revoke` on an embedded log; on a broker, see `test_operating_on_kafka`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import DRAFT, MESSAGE, POLICY, Line, Turngate, listing, written
from turngate.streams.clock import now_ms

WHO = ("--tenant", "acme", "--operator", "alex")
NOTE: Line = (
    "MemoryWrite",
    {"agent": "mesh", "write": "w1", "memory": "plan", "revision": "plan@1", "op": "create", "by": "dream",
     "kind": "note", "text": "the plan", "sources": ["message:slack:T1/D1/1"]},
)  # fmt: skip
ASKED: Line = (
    "SharingRequested",
    {"agent": "mesh", "request": "q1", "room": "slack:T1/D1", "revision": "plan@1", "audience": "public"},
)


@pytest.fixture
def log(turngate: Turngate, tmp_path: Path) -> Path:
    """A log with a message and a memory made of it, of now."""
    sent(turngate, tmp_path / "kept.log", POLICY, listing(now_ms()), MESSAGE, NOTE)
    return tmp_path / "kept.log"


def sent(turngate: Turngate, log: Path, *lines: Line) -> None:
    result = turngate("send", written(log.with_suffix(".jsonl"), *lines, at=now_ms()), "--log", log)
    assert result.exit_code == 0, result.stderr


def verdicts(turngate: Turngate, log: Path) -> list[dict[str, Any]]:
    shown = turngate("tail", "turn-verdicts", "--log", log, "--from", "beginning", "--no-follow", "--json")
    return [json.loads(line)["value"] for line in shown.stdout.splitlines()]


def test_codes_are_made_with_keys_alone(turngate: Turngate, log: Path, tmp_path: Path) -> None:  # R-GRT-10
    sent(turngate, log, ASKED)
    assert turngate("keys", "new", tmp_path / "keys").exit_code == 0
    again = written(tmp_path / "again", ("SharingRequested", ASKED[1] | {"request": "q2"}), at=now_ms())
    assert turngate("send", again, "--log", log, "--keys-file", tmp_path / "keys").exit_code == 0
    shown = turngate("tail", "grants", "--log", log, "--from", "beginning", "--no-follow", "--json").stdout
    assert [json.loads(line)["record"] for line in shown.splitlines()] == ["CommandRefused", "SharingOffered"]


def draft(turn: str) -> Line:
    return "TurnDrafted", DRAFT[1] | {"turn": turn}


def test_a_paused_agent_is_stopped_until_it_is_let_go_on(turngate: Turngate, log: Path) -> None:  # R-POL-4
    paused = turngate("pause", "mesh", *WHO, "--log", log)
    assert (paused.exit_code, paused.stdout) == (0, "mesh is paused everywhere\n")
    assert re.fullmatch(r"command agentpaused-[0-9a-f]{32}\n", paused.stderr)
    sent(turngate, log, draft("t1"))
    resumed = turngate("resume", "mesh", *WHO, "--log", log)
    assert (resumed.exit_code, resumed.stdout) == (0, "mesh may go on everywhere\n")
    assert resumed.stderr != paused.stderr
    sent(turngate, log, draft("t2"))
    assert [(v["turn"], v["verdict"]) for v in verdicts(turngate, log)] == [("t1", "drop"), ("t2", "deliver")]
    assert [reason["code"] for reason in verdicts(turngate, log)[0]["reasons"]] == ["paused"]


def test_a_room_is_paused_by_its_name(turngate: Turngate, log: Path) -> None:
    result = turngate("pause", "mesh", "--room", "slack:T1/OTHER", *WHO, "--log", log, "--json")
    told = json.loads(result.stdout)
    assert told == {"agent": "mesh", "room": "slack:T1/OTHER", "paused": True, "refused": None, "doubts": []} | {
        "command": told["command"]
    }
    sent(turngate, log, draft("t1"))
    assert verdicts(turngate, log)[0]["verdict"] == "deliver"


@pytest.mark.parametrize(
    ("agent", "tenant", "doubt"),
    [
        ("msh", "acme", "no policy of acme names an agent msh, so nobody was {}: check the name"),
        ("mesh", "acmee", "no policy of a tenant acmee is here, so nobody was {}: check --tenant"),
    ],
)
def test_a_mistyped_name_is_told_of_and_paused_all_the_same(
    turngate: Turngate, log: Path, agent: str, tenant: str, doubt: str
) -> None:
    who = ("--tenant", tenant, "--operator", "alex", "--log", log)
    paused = turngate("pause", agent, *who)
    assert (paused.exit_code, paused.stdout) == (0, f"{agent} is paused everywhere\n")
    assert paused.stderr.splitlines()[1:] == [doubt.format("stopped")]
    resumed = json.loads(turngate("resume", agent, *who, "--json").stdout)
    assert (resumed["refused"], resumed["doubts"]) == (None, [doubt.format("let go")])
    assert turngate("pause", agent, *who).exit_code == 0
    named = {"version": "2", "document": POLICY[1]["document"].replace("1", "2", 1).replace("mesh", agent)}
    published = written(log.with_suffix(".named"), (POLICY[0], named), tenant=tenant, at=now_ms())
    assert turngate("send", published, "--log", log).exit_code == 0
    still = turngate("resume", agent, *who)  # it was stopped before anybody had named it
    assert len(still.stderr.splitlines()) == 1


def test_who_is_let_go_and_still_stopped_is_told_so(turngate: Turngate, log: Path) -> None:
    who, room = (*WHO, "--log", log), ("--room", "slack:T1/D1")

    def doubts(*arguments: object) -> list[str]:
        result = turngate(*arguments, *who)
        assert result.exit_code == 0
        return result.stderr.splitlines()[1:]

    never = "mesh was not paused in slack:T1/D1"
    everywhere = "mesh is still paused everywhere: `turngate resume mesh` without --room lets it go"
    assert doubts("resume", "mesh") == ["mesh was not paused everywhere"]
    assert doubts("pause", "mesh") == []
    assert doubts("resume", "mesh", *room) == [never, everywhere]
    assert doubts("pause", "mesh", *room) == []
    assert doubts("resume", "mesh") == ["mesh is still paused in slack:T1/D1: name it with --room"]
    assert doubts("resume", "mesh", *room) == []
    assert doubts("resume", "mesh", *room) == [never]


def test_an_erasure_says_what_it_reached_and_empties_the_file(turngate: Turngate, log: Path) -> None:  # R-RET-3
    assert b"good morning" in log.read_bytes()
    result = turngate("forget", "--reader", "slack:T1/UALEX", *WHO, "--log", log)
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "erased 2 refs: 1 message, 1 revision",
            "message:slack:T1/D1/1",
            "revision:plan@1",
            "the texts of 2 records were removed from the log's file",
        ],
    )
    assert len(result.stderr.splitlines()) == 1
    assert b"good morning" not in log.read_bytes()
    again = json.loads(turngate("forget", "--room", "slack:T1/D1", *WHO, "--log", log, "--json").stdout)
    assert (again["refs"], again["purged_records"]) == (["message:slack:T1/D1/1", "revision:plan@1"], 0)
    nothing = turngate("forget", "--memory", "no-such", *WHO, "--log", log)
    assert (nothing.exit_code, nothing.stdout.splitlines()[0]) == (0, "erased 0 refs")
    assert nothing.stderr.splitlines()[1:] == [
        "no source and no revision of acme is of no-such: check both names; what comes later is not erased by this"
    ]


@pytest.mark.parametrize("named", [(), ("--room", "slack:T1/D1", "--memory", "plan")])
def test_an_erasure_names_exactly_one_thing(turngate: Turngate, log: Path, named: tuple[str, ...]) -> None:
    before = log.read_bytes()
    result = turngate("forget", *named, *WHO, "--log", log)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "turngate: name exactly one of --room, --reader and --memory\n"
    assert log.read_bytes() == before


def test_a_grant_is_known_by_its_id_and_taken_back_by_it(turngate: Turngate, log: Path) -> None:  # R-GRT-6
    what = ("plan@1", "--memory", "plan", "--agent", "mesh", *WHO, "--log", log)
    granted = turngate("grant", *what, "--workspace", "slack:T1", "--expires", "2100-01-01")
    assert granted.exit_code == 0
    (grant,) = re.findall(r"granted; the grant is (grantcommanded-[0-9a-f]{32})\n", granted.stdout)
    revoked = turngate("revoke", grant, "--agent", "mesh", *WHO, "--log", log)
    assert (revoked.exit_code, revoked.stdout) == (0, f"revoked {grant}\n")
    again = turngate("revoke", grant, "--agent", "mesh", *WHO, "--log", log)
    assert (again.exit_code, again.stdout) == (1, "refused: 404 source_missing\n")
    assert again.stderr.splitlines()[1:] == [f"no grant {grant} of acme is in force: check both names"]


@pytest.mark.parametrize(
    ("revision", "audience", "refused", "doubts"),
    [
        (
            "plan@7",
            ("--public",),
            "409 base_not_current",
            ["plan@7 is not the current revision of a memory plan of mesh in acme, or it was erased: check the names"],
        ),
        ("unknown@1", ("--public",), "422 source_unknown", []),
    ],
)
def test_a_refusal_is_exit_code_1_with_its_status(
    turngate: Turngate, log: Path, revision: str, audience: tuple[str, ...], refused: str, doubts: list[str]
) -> None:
    unknown = {"write": "w2", "memory": "unknown", "revision": "unknown@1", "sources": []}
    sent(turngate, log, ("MemoryWrite", NOTE[1] | unknown))
    memory = revision.partition("@")[0]
    result = turngate("grant", revision, "--memory", memory, "--agent", "mesh", *audience, *WHO, "--log", log)
    assert (result.exit_code, result.stdout) == (1, f"refused: {refused}\n")
    assert result.stderr.splitlines()[1:] == doubts
    told = turngate("grant", revision, "--memory", memory, "--agent", "mesh", *audience, *WHO, "--log", log, "--json")
    assert (told.exit_code, json.loads(told.stdout)["refused"]) == (1, refused)


@pytest.mark.parametrize("audience", [(), ("--public", "--reader", "slack:T1/UALEX")])
def test_an_audience_is_said(turngate: Turngate, log: Path, audience: tuple[str, ...]) -> None:
    result = turngate("grant", "plan@1", "--memory", "plan", "--agent", "mesh", *audience, *WHO, "--log", log)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "say who may hear it" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pause", "mesh", "--room", "no room"), "room: String should match"),
        (("forget", "--reader", "alex"), "reader: String should match"),
        (("revoke", "", "--agent", "mesh"), "grant: String should have at least 1 character"),
    ],
)
def test_what_makes_no_command_is_said_before_anything_is_given(
    turngate: Turngate, log: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = turngate(*arguments, *WHO, "--log", log)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"turngate: {message}")


def test_a_log_that_is_not_there_is_not_made(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("pause", "mesh", *WHO, "--log", tmp_path / "absent")
    assert (result.exit_code, result.stderr) == (
        2,
        f"turngate: {tmp_path / 'absent'}: there is no log here; check the path\n",
    )
    assert not (tmp_path / "absent").exists()
