"""`turngate scenarios`: one line each, then how many passed and failed."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Turngate

STEPS = """\
steps:
  - room: {room: slack:T1/D1, kind: direct, visibility: members, members: [slack:T1/UALEX]}
  - MessageObserved: {room: slack:T1/D1, message: slack:T1/D1/1, author: slack:T1/UALEX, text: hello}
  - TurnDrafted: {turn: t1, room: slack:T1/D1, trigger: message:slack:T1/D1/1, text: hi}
    expect: [TurnDecided: {turn: t1, verdict: %s}]
"""


def scenario(folder: Path, name: str, verdict: str, rule: str = "R-TURN-2") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(f"scenario: What {name} shows.\nrules: [{rule}]\n{STEPS % verdict}", "utf-8")
    return path


def test_what_passes_is_a_line_and_exit_code_0(turngate: Turngate, tmp_path: Path) -> None:
    scenario(tmp_path, "one", "deliver")
    scenario(tmp_path, "two", "deliver")
    result = turngate("scenarios", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "ok   one: What one shows.",
        "ok   two: What two shows.",
        "2 passed, 0 failed",
    ]


def test_what_fails_shows_step_expectation_and_records_and_is_exit_code_1(turngate: Turngate, tmp_path: Path) -> None:
    scenario(tmp_path, "bad", "drop")
    scenario(tmp_path, "good", "deliver")
    result = turngate("scenarios", tmp_path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "FAIL bad: What bad shows."
    assert lines[1] == "     step 3 (TurnDrafted)"
    assert lines[2] == '       expected  TurnDecided: {"turn": "t1", "verdict": "drop"}'
    assert {line.split()[1] for line in lines[3:-2]} >= {"TurnDecided", "TurnAuthorized", "StretchApplied"}
    assert lines[-2:] == ["ok   good: What good shows.", "1 passed, 1 failed"]


def test_rules_pick_by_family_and_by_id(turngate: Turngate, tmp_path: Path) -> None:
    scenario(tmp_path, "aud", "deliver", "R-AUD-1")
    scenario(tmp_path, "room", "deliver", "R-ROOM-1")
    scenario(tmp_path, "room10", "deliver", "R-ROOM-10")
    assert turngate("scenarios", tmp_path, "--rules", "R-ROOM").stdout.endswith("2 passed, 0 failed\n")
    assert turngate("scenarios", tmp_path, "--rules", "R-ROOM-1, R-AUD").stdout.endswith("2 passed, 0 failed\n")
    none = turngate("scenarios", tmp_path, "--rules", "R-EGR")
    assert none.exit_code == 2
    assert none.stderr == "turngate: no scenario there is about R-EGR; rules are named R-AUD or R-AUD-2\n"
    some = turngate("scenarios", tmp_path, "--rules", "R-AUD,R-RUM,R-ROOM-7")  # a slip must not look like a pass
    assert (some.exit_code, some.stdout) == (2, "")
    assert "is about R-RUM, R-ROOM-7; " in some.stderr


def test_a_file_that_cannot_be_read_is_named_and_the_others_still_run(turngate: Turngate, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("scenario: x\nrules: [R-AUD-1]\nsteps:\n  - Drafted: {}\n", "utf-8")
    scenario(tmp_path, "good", "deliver")
    result = turngate("scenarios", tmp_path)
    assert result.exit_code == 2
    assert result.stderr == f"turngate: {broken}: step 1: there is no record 'Drafted'\n"
    assert result.stdout.splitlines()[-1] == "1 passed, 0 failed, 1 could not be read"


def test_a_path_where_there_is_nothing_is_exit_code_2(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("scenarios", tmp_path / "absent")
    assert result.exit_code == 2
    assert result.stderr == f"turngate: {tmp_path / 'absent'}: there is no such file or folder\n"
