"""`explain`, `who-can-see` and `blast-radius` say in words, and as JSON, what is in the store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Turngate
from tests.sinks.store.story import MINE, tell
from tests.streams.telling import C1, KIM, World
from turngate.demo.words import words_of
from turngate.schemas.ways_on import way_on
from turngate.streams.local_log import LocalLog

REFUSED = """\
Turn t1 of mesh, for slack:T1/C1 (acme)
  2026-01-01 00:00:09Z  refused (drop, policy 1)
      audience_not_subset (message:slack:T1/D1/1): {words}
      audience_not_subset (revision:d@1): {words}
      source_missing (tool:none): nothing is known of where this came from

Who could read slack:T1/C1
  slack:T1/UALEX, slack:T1/UKIM
  known since 2026-01-01 00:00:02Z, when it was listed, 7 s before the decision

What fed it
  ✓ message:slack:T1/C1/2, permitted by the context answer r1
      ✓ said by slack:T1/UKIM in slack:T1/C1; could be read by slack:T1/UALEX, slack:T1/UKIM
  ✗ message:slack:T1/D1/1, withheld by the context answer r1
      audience_not_subset: {words}
      ✗ said by slack:T1/UALEX in slack:T1/D1; could be read by slack:T1/UALEX
          could not be read by slack:T1/UKIM, who could read the room
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("log") / "a.log"
    with LocalLog(path) as made:
        world = World(made)
        tell(world)
        world.send("TurnDrafted", turn="\x1b[2J\n", room=C1, trigger=MINE, renderings=[{"text": "t"}])
    return path


def test_a_refused_turn_is_told_in_words_with_the_way_on(turngate: Turngate, log: Path) -> None:
    said = turngate("explain", "t1", "--tenant", "acme", "--log", log)
    assert said.exit_code == 0
    assert said.stdout.startswith(REFUSED.format(words=words_of("audience_not_subset")))
    way = way_on("audience_not_subset")
    assert f"\nWhat would make it pass\n  audience_not_subset: {way}\n" in said.stdout


def test_a_turn_that_a_grant_let_out_names_it(turngate: Turngate, log: Path) -> None:
    said = turngate("explain", "t2", "--tenant", "acme", "--log", log).stdout
    assert "          permitted by grant g1\n" in said
    assert "  Grant g1: d@1 for slack:T1/UALEX, slack:T1/UKIM, given 2026-01-01 00:00:10Z by operator\n" in said
    assert "\nIt was let out, to be sent before 2026-01-01 00:01:02Z\n" in said
    assert "  2026-01-01 00:00:12Z  sent as slack:T1/C1/9\n" in said
    assert "What would make it pass" not in said


def test_what_is_not_known_is_said_to_be(turngate: Turngate, log: Path) -> None:
    said = turngate("explain", "t6", "--tenant", "acme", "--log", log).stdout
    assert "Who could read slack:T1/C2\n  nobody knows who\n" in said
    assert "\nNot known\n  who could read the room: no listing says so\n" in said


def test_as_json_it_is_the_same(turngate: Turngate, log: Path) -> None:
    told = json.loads(turngate("explain", "t1", "--tenant", "acme", "--log", log, "--json").stdout)
    assert [fed["permitted"] for fed in told["evidence"]] == [True, False, False, False]
    assert told["ways_on"] == {code: way_on(code) for code in ("audience_not_subset", "source_missing")}
    assert told["destination"]["audience"]["readers"] == ["slack:T1/UALEX", KIM]
    seen = json.loads(
        turngate("who-can-see", "revision:k@1", "--tenant", "acme", "--log", log, "--json").stdout or "{}"
    )
    assert seen == {}
    seen = json.loads(turngate("who-can-see", MINE, "--tenant", "acme", "--log", log, "--json").stdout)
    assert [one["audience"]["readers"] for one in seen["agents"]] == [["slack:T1/UALEX"]]
    reached = json.loads(turngate("blast-radius", "--reader", KIM, "--tenant", "acme", "--log", log, "--json").stdout)
    assert [turn["turn"] for turn in reached["turns"]] == ["t2", "t4"]


def test_who_can_see_a_source_and_what_a_reader_was_sent_of_it(turngate: Turngate, log: Path) -> None:
    of = ("--tenant", "acme", "--log", log)
    seen = turngate("who-can-see", f"message:{C1}/10", *of).stdout.splitlines()
    assert seen[:3] == [
        f"message:{C1}/10 was erased: nobody may hear it any more",  # it quotes what was erased
        f"message:{C1}/10, as mesh has it since 2026-01-01 00:00:14Z",
        "  could be heard by slack:T1/UALEX",
    ]
    assert "  which is what 2 pieces of evidence have in common:" in seen
    assert turngate("who-can-see", "revision:d@1", *of).stdout.startswith(
        "revision:d@1 was erased: nobody may hear it any more\n"
    )
    assert turngate("blast-radius", "--reader", KIM, "--source", MINE, *of).stdout == (
        f"1 turn was let out to {KIM} made of {MINE}\n"
        f"  2026-01-01 00:00:11Z  t2 in {C1}: sent as {C1}/9; {KIM} was listed in the room\n"
        f"      {MINE} → revision:m@1 → revision:d@1 → turn:t2\n"
    )


def test_what_there_is_nothing_of_is_exit_code_1(turngate: Turngate, log: Path) -> None:
    of = ("--tenant", "acme", "--log", log)
    none = turngate("explain", "t99", *of)
    assert (none.exit_code, none.stdout) == (1, "")
    assert none.stderr == "no decision of the turn t99 of acme is in the store\n"
    assert turngate("who-can-see", "tool:none", *of).exit_code == 1
    assert (
        turngate("blast-radius", "--reader", "slack:T1/UEVE", *of).stdout == "0 turns were let out to slack:T1/UEVE\n"
    )


@pytest.mark.parametrize("asked", [("explain", "t1"), ("who-can-see", MINE), ("blast-radius", "--reader", KIM)])
def test_a_tenant_of_whom_there_is_nothing_is_no_answer(turngate: Turngate, log: Path, asked: tuple[str, ...]) -> None:
    assert turngate(*asked, "--tenant", "acme", "--log", log).exit_code == 0
    mistyped = turngate(*asked, "--tenant", "acne", "--log", log)
    assert (mistyped.exit_code, mistyped.stdout) == (2, "")
    assert mistyped.stderr == "turngate: nothing of a tenant acne is in the store; check --tenant\n"


def test_an_id_that_an_agent_chose_is_shown_in_characters_that_are_seen(turngate: Turngate, log: Path) -> None:
    said = turngate("explain", "\x1b[2J\n", "--tenant", "acme", "--log", log)
    assert said.exit_code == 0
    assert said.stdout.startswith(r"Turn \x1b[2J\n of mesh, for")


def test_without_a_store_it_says_what_to_do(turngate: Turngate, tmp_path: Path) -> None:
    assert "give --postgres-dsn or TURNGATE_POSTGRES_DSN" in turngate("explain", "t1", "--tenant", "acme").stderr
    missing = turngate("explain", "t1", "--tenant", "acme", "--log", tmp_path / "none")
    assert (missing.exit_code, "there is no log here" in missing.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_the_store_is_audited_as_the_log_is(turngate: Turngate, log: Path) -> None:
    of = ("audit", "verify", "--log", log)
    there, stored = turngate(*of), turngate(*of, "--store")
    assert (stored.exit_code, stored.stdout) == (0, there.stdout)
    store = log.with_name(f"{log.name}.store")
    with sqlite3.connect(store) as db:
        db.execute("UPDATE decisions SET verdict = 'deliver' WHERE turn = 't1' AND kind = 'turn'")
    altered = turngate(*of, "--store", "--json")
    assert altered.exit_code == 1
    first, total = map(json.loads, altered.stdout.splitlines())
    assert (first["why"][:19], total["broken"]) == ("is not the decision", 1)
    assert turngate(*of).exit_code == 0
    store.unlink()
    assert turngate(*of, "--store").exit_code == 0  # it is filled anew
