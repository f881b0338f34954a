"""`turngate send` and `turngate tail` on an embedded log; on a broker, see `test_on_kafka`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import DAY, INSTALLED, MESSAGE, POLICY, Turngate, listing, written
from turngate.streams.clock import now_ms


@pytest.fixture
def log(turngate: Turngate, tmp_path: Path) -> Path:
    """A log onto which a day was sent, all but the listing being of now."""
    path = tmp_path / "kept.log"
    result = turngate("send", written(tmp_path / "day.jsonl", *DAY, at=now_ms()), "--log", path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "4 records sent\n")
    return path


def tail(turngate: Turngate, *arguments: object) -> list[str]:
    result = turngate("tail", *arguments, "--from", "beginning", "--no-follow")
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_what_is_sent_is_applied_and_what_comes_of_it_can_be_seen(turngate: Turngate, log: Path) -> None:
    (message,) = tail(turngate, "observed-messages", "--log", log)
    assert " observed-messages[0]@0 acme MessageObserved agent=mesh room=slack:T1/D1 " in message
    assert ' text="good morning" ' in message
    # the listing of the file is from long ago by the log's own clock, so the draft waits
    (decided,) = tail(turngate, "turn-verdicts", "--log", log)
    assert " acme TurnDecided turn=t1 agent=mesh room=slack:T1/D1 verdict=hold " in decided


def test_json_is_for_other_programs(turngate: Turngate, log: Path) -> None:
    (line,) = tail(turngate, "observed-messages", "--log", log, "--json")
    shown = json.loads(line)
    assert (shown["topic"], shown["partition"], shown["offset"], shown["record"]) == (
        "observed-messages",
        0,
        0,
        "MessageObserved",
    )
    assert shown["value"]["text"] == "good morning"


def test_a_record_is_one_line_whatever_an_agent_calls_itself(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    forged = {"agent": "\x1b[2J\n2026-12-01T00:00:00.000Z\tturn-verdicts[0]@9", "text": "a\u202eb\x9b c"}
    turngate("send", written(tmp_path / "forged", (MESSAGE[0], MESSAGE[1] | forged)), "--log", log)
    shown = tail(turngate, "observed-messages", "--log", log)
    assert len(shown) == 2
    assert all(line.isprintable() for line in shown)
    assert r" agent=\x1b[2J\n2026-" in shown[1]
    (_, line) = (json.loads(line) for line in tail(turngate, "observed-messages", "--log", log, "--json"))
    assert line["value"]["agent"] == forged["agent"]


def test_one_tenants_records_can_be_picked(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    turngate("send", written(tmp_path / "other.jsonl", MESSAGE, tenant="other"), "--log", log)
    assert len(tail(turngate, "observed-messages", "--log", log)) == 2
    assert len(tail(turngate, "observed-messages", "--log", log, "--tenant", "other")) == 1
    assert tail(turngate, "observed-messages", "--log", log, "--tenant", "nobody") == []


@pytest.mark.parametrize(
    ("start", "count"),
    [("beginning", 2), ("end", 0), ("0", 2), ("1", 1), ("2", 0), ("2026-01-01", 2), ("9999-01-01T00:00:00Z", 0)],
)
def test_it_begins_where_it_is_told_to(turngate: Turngate, log: Path, tmp_path: Path, start: str, count: int) -> None:
    turngate("send", written(tmp_path / "other.jsonl", MESSAGE, tenant="other"), "--log", log)
    result = turngate("tail", "observed-messages", "--log", log, "--from", start, "--no-follow")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, count)


def test_it_shows_what_comes_while_it_looks(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    command = [INSTALLED, "tail", "observed-messages", "--log", log, "--from", "beginning", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["value"]["tenant"] == "acme"
        turngate("send", written(tmp_path / "other.jsonl", MESSAGE, tenant="other"), "--log", log)
        assert json.loads(process.stdout.readline())["value"]["tenant"] == "other"
        process.terminate()


@pytest.mark.parametrize(
    ("record", "fields", "message"),
    [
        ("MessageObserved", {**MESSAGE[1], "author_kind": "robot"}, "MessageObserved: author_kind: Input should be"),
        ("MessageObserved", {**MESSAGE[1], "message": "slack:T1/D2/1"}, "must lie under its room"),
        ("MessageObserved", {"room": "slack:T1/D1"}, "MessageObserved: agent: Field required; message: Field required"),
        ("MessageObserved", {**MESSAGE[1], "tenant": "7"}, "MessageObserved: tenant: is a partition's"),
        ("PolicyPublished", {"version": "1", "document": "version: x"}, "document: line 1: version: must be a whole"),
    ],
)
def test_an_invalid_record_is_named_by_its_line_and_nothing_is_sent(
    turngate: Turngate, tmp_path: Path, record: str, fields: dict[str, object], message: str
) -> None:
    records = written(tmp_path / "bad.jsonl", POLICY, listing(0), (record, fields))
    result = turngate("send", records, "--log", tmp_path / "log")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"turngate: {records}: line 3: ")
    assert message in result.stderr
    assert not (tmp_path / "log").exists()


def test_a_record_on_a_topic_that_is_not_its_own_is_not_sent(turngate: Turngate, tmp_path: Path) -> None:
    line = {"record": "MessageDeleted", "topic": "policies", "value": {}}
    result = turngate("send", "-", "--log", tmp_path / "log", input=json.dumps(line))
    assert result.stderr == "turngate: -: line 1: MessageDeleted does not belong on policies\n"


def test_a_log_and_a_broker_at_once_are_refused(turngate: Turngate, log: Path) -> None:
    result = turngate("tail", "outbound", "--log", log, "--bootstrap-servers", "127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "give one of them" in result.stderr


def test_neither_is_refused_too(turngate: Turngate) -> None:
    result = turngate("tail", "outbound")
    assert result.exit_code == 2
    assert "give --bootstrap-servers or TURNGATE_BOOTSTRAP_SERVERS" in result.stderr


def test_a_topic_that_there_is_not_is_answered_with_those_there_are(turngate: Turngate, log: Path) -> None:
    result = turngate("tail", "verdicts", "--log", log)
    assert result.exit_code == 2
    assert result.stderr.startswith("turngate: verdicts is no topic of the contract; there are membership-refreshes, ")


def test_a_place_that_is_none_is_answered_with_what_to_write(turngate: Turngate, log: Path) -> None:
    result = turngate("tail", "outbound", "--log", log, "--from", "yesterday")
    assert result.stderr == (
        "turngate: --from yesterday: write beginning, end, an offset, or a time like 2026-01-01T00:00:00Z\n"
    )


def test_a_log_that_is_not_there_is_not_made_by_looking(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("tail", "outbound", "--log", tmp_path / "absent", "--no-follow")
    assert result.exit_code == 2
    assert not (tmp_path / "absent").exists()
