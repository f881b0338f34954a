"""`turngate replay` on an embedded log and an exported directory: what it says, and its exit code."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import AT, DAY, DRAFT, INSTALLED, MESSAGE, Turngate, written
from tests.streams.history import history
from tests.streams.test_verifying import live
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import StretchApplied
from turngate.streams.local_log import LocalLog


@pytest.fixture
def log(turngate: Turngate, tmp_path: Path) -> Path:
    """A log of a day on which one draft is delivered, another is held, and a third is one of an unknown room."""
    later = (DRAFT[0], DRAFT[1] | {"turn": "t2", "room": "slack:T1/C9"})
    between = (MESSAGE[0], MESSAGE[1] | {"message": "slack:T1/D1/2"})  # so that there are two stretches
    day = written(tmp_path / "day", *DAY, later, between, (DRAFT[0], DRAFT[1] | {"turn": "t3"}))
    assert turngate("apply", day, "--log", tmp_path / "log").exit_code == 0
    return tmp_path / "log"


def changed(path: Path, topic: str, offset: int, **fields: object) -> None:
    with LocalLog(path) as log:
        (message,) = log.scan(topic, 0, offset, offset + 1)
        record = Codec().decode(message.value).model_copy(update=fields)
        log.erase([replace(message, value=Codec().encode(record))])


def test_nothing_differs(turngate: Turngate, log: Path) -> None:
    with LocalLog(log, read_only=True) as there:
        count = sum(
            there.end(topic, 0)
            for topic in ("refresh-requests", "source-evidence", "turn-verdicts", "outbound", "audit")
        )
    result = turngate("replay", "--log", log)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{count} decisions, 0 differ\n", "")
    assert count >= 5


def test_a_difference_is_shown_with_both_records(turngate: Turngate, log: Path) -> None:
    changed(log, "turn-verdicts", 0, turn="t9")
    result = turngate("replay", "--log", log)
    assert result.exit_code == 1
    first, was, now, *traces, last = result.stdout.splitlines()
    assert first == "turn-verdicts@0, of turn-drafts/0/0/0: another value"
    assert json.loads(was.removeprefix("  recorded: "))["value"]["turn"] == "t9"
    assert json.loads(now.removeprefix("  again: "))["value"]["turn"] == "t1"
    assert [trace.partition(": ")[0] for trace in traces] == ["  recorded, its trace", "  again, its trace"]
    assert {json.loads(trace.partition(": ")[2])["value"]["turn"] for trace in traces} == {"t1"}
    assert last.endswith(" decisions, 1 differ")

    told = [json.loads(line) for line in turngate("replay", "--log", log, "--json").stdout.splitlines()]
    assert (told[0]["topic"], told[0]["offset"], told[0]["why"]) == ("turn-verdicts", 0, "another value")
    assert told[0]["recorded"]["value"]["turn"] == "t9"
    assert told[0]["again"]["headers"] == told[0]["recorded"]["headers"]
    assert {told[0]["traces"][side]["record"] for side in ("recorded", "again")} == {"DecisionTraced"}
    assert (told[1]["differ"], told[1]["gone"], told[1]["other_engines"]) == (1, 0, [])


def test_a_difference_moves_no_cursor_whatever_is_in_it(turngate: Turngate, log: Path) -> None:
    changed(log, "turn-verdicts", 0, turn="t\u202e\x9b2J")
    shown = turngate("replay", "--log", log).stdout
    assert all(line.isprintable() for line in shown.splitlines())
    assert r'"turn": "t\u202e\x9b2J"' in shown


def test_only_the_drafts_that_were_asked_for(turngate: Turngate, log: Path) -> None:
    changed(log, "turn-verdicts", 0, turn="t9")
    assert turngate("replay", "--log", log, "--from", 2).exit_code == 0
    assert turngate("replay", "--log", log, "--to", 0).stdout == "0 decisions, 0 differ\n"
    beyond = turngate("replay", "--log", log, "--from", 9)
    assert (beyond.exit_code, beyond.stdout) == (2, "")
    assert beyond.stderr == "turngate: turn-drafts[0]: nothing from 9 on was decided; it stands at 3\n"
    other = turngate("replay", "--log", log, "--topic", "ticks")
    assert (other.exit_code, other.stdout) == (2, "")


def test_another_engine_is_said_before_the_differences(turngate: Turngate, log: Path) -> None:
    with LocalLog(log, read_only=True) as there:
        engines = {r.engine for m in there.scan("applied") if isinstance(r := Codec().decode(m.value), StretchApplied)}
    (engine,) = engines
    changed(log, "applied", 0, engine="1")
    changed(log, "turn-verdicts", 0, turn="t9")
    result = turngate("replay", "--log", log)
    assert result.exit_code == 1
    assert result.stderr == (
        f"from 0 of applied on, engine 1 decided, and this is engine {engine}: differences may come of that\n"
    )
    assert result.output.index("engine 1 decided") < result.output.index("another value")


def test_an_exported_directory_is_enough(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    assert turngate("export", tmp_path / "x", "--log", log).exit_code == 0
    whole = turngate("replay", "--log", log).stdout
    log.unlink()
    assert turngate("replay", "--exported", tmp_path / "x").stdout == whole
    both = turngate("replay", "--exported", tmp_path / "x", "--log", log)
    assert (both.exit_code, both.stdout) == (2, "")
    assert "are three places: give one of them" in both.stderr


def test_it_goes_on_when_more_has_come(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = turngate("replay", "--log", log, "--resume", kept).stdout
    assert turngate("replay", "--log", log, "--resume", kept).stdout == first
    more = written(tmp_path / "more", (DRAFT[0], DRAFT[1] | {"turn": "t4"}), at=AT + 3_600_000)
    assert turngate("apply", more, "--log", log).exit_code == 0
    changed(log, "turn-verdicts", 0, turn="t9")  # was looked at before, and is not looked at again
    gone_on = turngate("replay", "--log", log, "--resume", kept)
    assert gone_on.stdout == turngate("replay", "--log", log).stdout.splitlines()[-1].replace("1 differ", "0 differ\n")
    assert {path.suffix for path in kept.iterdir()} == {".json", ".avro"}
    assert len(list(kept.iterdir())) == 2
    other = turngate("replay", "--log", log, "--resume", kept, "--from", 1)
    assert other.exit_code == 2
    assert "that replay is of the drafts from 0 on, not from 1 on" in other.stderr


def test_what_was_kept_of_another_log_is_not_gone_on_with(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    kept, other = tmp_path / "kept", tmp_path / "other"
    assert turngate("replay", "--log", log, "--resume", kept).exit_code == 0
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
    day = written(tmp_path / "day", *DAY, (DRAFT[0], DRAFT[1] | {"turn": "t2"}))
    for more in ([], [written(tmp_path / "more", DRAFT, DRAFT, DRAFT, at=AT + 3_600_000)]):  # shorter, and longer
        for events in (day, *more):
            assert turngate("apply", events, "--log", other).exit_code == 0
        refused = turngate("replay", "--log", other, "--resume", kept)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "that replay is of another log; use a new directory" in refused.stderr
        other.unlink()
    assert turngate("replay", "--log", log, "--resume", kept).exit_code == 0


def test_one_that_was_stopped_goes_on(turngate: Turngate, tmp_path: Path) -> None:
    """So much differs that it has to wait for whoever reads what it says, and is not through when it is stopped."""
    log, kept = tmp_path / "long", tmp_path / "kept"
    with LocalLog(log) as there:
        live(there, history(300), together=10)
        there.erase([replace(m, value=b"another") for m in there.scan("turn-verdicts")])
        count = there.end("turn-verdicts", 0)
    command = [INSTALLED, "replay", "--log", log, "--resume", kept, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = [process.stdout.readline()]
        process.terminate()
        told += process.stdout.readlines()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (2, "turngate: stopped; the same command goes on from here\n")
    again = turngate("replay", "--log", log, "--resume", kept, "--json")
    assert again.exit_code == 1
    *rest, summary = again.stdout.splitlines()
    assert len(rest) > 0  # what was told before is not told again, and counts
    offsets = [json.loads(line)["offset"] for line in (*told, *rest)]
    assert offsets == list(range(count))
    assert json.loads(summary)["differ"] == count
    assert summary == turngate("replay", "--log", log, "--json").stdout.splitlines()[-1]


def test_it_begins_at_a_snapshot(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    taken = turngate("snapshot", kept, "--log", log)
    assert (taken.exit_code, taken.stdout, taken.stderr) == (0, f"{kept / f'0-{3:020}.json'}\n", "")
    more = written(tmp_path / "more", (DRAFT[0], DRAFT[1] | {"turn": "t4"}), at=AT + 3_600_000)
    assert turngate("apply", more, "--log", log).exit_code == 0
    changed(log, "observed-messages", 0, room="slack:T1/D2")  # whoever reads it decides otherwise
    since = turngate("replay", "--log", log, "--from", 3, "--snapshots", kept)
    assert (since.exit_code, since.stderr) == (0, "")
    whole = turngate("replay", "--log", log, "--from", 2, "--snapshots", kept)
    assert f"{kept}: none of partition 0 at or before 2, so from the beginning" in whole.stderr
    assert whole.exit_code == 1


def policy(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_what_another_policy_would_have_decided(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    same = policy(tmp_path / "same.yaml", "version: 1\nagents: {mesh: {accounts: ['slack:T1/UBOT']}}\n")
    result = turngate("replay", "--log", log, "--policy", same)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "3 decisions, 0 would be others\n", "")

    nobody = policy(tmp_path / "nobody.yaml", "version: 2\n")
    result = turngate("replay", "--log", log, "--policy", nobody, "--tenant", "acme")
    assert result.exit_code == 0
    head, *rows, last = result.stdout.splitlines()
    assert head.split() == ["room", "was", "would", "be", "reason", "decisions"]
    assert [row.split() for row in rows] == [
        ["slack:T1/D1", "deliver", "drop", "+agent_unknown", "2"],
        ["slack:T1/C9", "hold", "drop", "+agent_unknown", "1"],
        ["slack:T1/C9", "hold", "drop", "-destination_unknown", "1"],
    ]
    assert last == "3 decisions, 3 would be others"

    told = turngate("replay", "--log", log, "--policy", nobody, "--json").stdout.splitlines()
    *each, summary = map(json.loads, told)
    assert [one["turn"] for one in each] == ["t1", "t2", "t3"]
    assert (each[0]["was"]["verdict"], each[0]["now"]["verdict"]) == ("deliver", "drop")
    assert each[0]["now"]["reasons"] == [{"code": "agent_unknown", "ref": None}]
    assert (summary["decisions"], summary["changed"]) == (3, 3)
    assert summary["by"][0] == {
        "room": "slack:T1/D1", "was": "deliver", "now": "drop", "reason": "+agent_unknown", "count": 2
    }  # fmt: skip
    assert turngate("replay", "--log", log, "--policy", nobody, "--from", 2).stdout.endswith(
        "1 decisions, 1 would be others\n"
    )
    of_other = ("replay", "--log", log, "--policy", nobody, "--tenant", "other")
    mistyped = turngate(*of_other)
    assert (mistyped.exit_code, mistyped.stdout) == (2, "")
    assert mistyped.stderr.endswith("nothing of a tenant other was recorded here; check --tenant\n")
    turngate("apply", written(tmp_path / "other", MESSAGE, tenant="other", at=AT + 3_600_000), "--log", log)
    assert turngate(*of_other).stdout == "0 decisions, 0 would be others\n"


def test_what_another_policy_would_do_is_gone_on_with_too(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    nobody, kept = policy(tmp_path / "nobody.yaml", "version: 2\n"), tmp_path / "kept"
    of = ("replay", "--log", log, "--resume", kept, "--policy", nobody)
    assert turngate(*of).stdout.endswith("3 decisions, 3 would be others\n")
    more = written(tmp_path / "more", (DRAFT[0], DRAFT[1] | {"turn": "t4"}), at=AT + 3_600_000)
    assert turngate("apply", more, "--log", log).exit_code == 0
    whole = turngate("replay", "--log", log, "--policy", nobody, "--json").stdout.splitlines()
    *told, summary = turngate(*of, "--json").stdout.splitlines()
    assert (told, summary) == (whole[3:-1], whole[-1])  # what was told before is not told again, and counts
    assert len(told) > 0
    same = policy(tmp_path / "same.yaml", "version: 1\nagents: {mesh: {accounts: ['slack:T1/UBOT']}}\n")
    for other in (("--policy", same), ("--policy", nobody, "--tenant", "acme"), ()):
        refused = turngate(*of[:5], *other)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "that replay is not under the same policy, of the same tenant; use a new directory" in refused.stderr


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("version: none\n", (), "line 1: version: must be a whole number"),
        ("version: 2\nagents: [mesh]\n", (), "line 2: agents: must be a mapping"),
        (None, (), "no such file"),
        ("version: 2\n", ("--shadow-tenant", "acme"), "127.0.0.1:1"),  # it is one, and no broker is there
    ],
)
def test_a_worker_shadows_nothing_but_a_policy(
    turngate: Turngate, tmp_path: Path, text: str | None, more: tuple[str, ...], says: str
) -> None:
    file = tmp_path / "new.yaml"
    if text is not None:
        policy(file, text)
    at = ("--bootstrap-servers", "127.0.0.1:1")
    result = turngate("worker", *at, "--shadow", file, *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr.lower()
    if more:
        alone = turngate("worker", *at, *more)
        assert (alone.exit_code, "give --shadow too" in alone.stderr) == (2, True)


def test_it_says_where_the_record_is_another(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    changed(log, "turn-verdicts", 0, turn="t9")
    result = turngate("replay", "--log", log, "--policy", policy(tmp_path / "nobody.yaml", "version: 2\n"))
    assert result.exit_code == 0
    assert result.stderr.startswith("1 recorded decisions are not what this engine comes to again")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--tenant", "acme"), "give --policy too"),
        (("--policy", "no-such.yaml"), "no-such.yaml: No such file or directory"),
        (("--policy", "bad.yaml"), "bad.yaml: line 1: version"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(
    turngate: Turngate, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    policy(tmp_path / "bad.yaml", "version: none\n")
    result = turngate("replay", "--log", log, *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
