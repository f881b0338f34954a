"""`turngate apply`: a file of events in, every record that comes of them out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import AT, DAY, DRAFT, MESSAGE, POLICY, Turngate, installed, listing, written


def records(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(x["record"], x["value"]) for x in map(json.loads, text.splitlines())]


def test_it_prints_what_comes_of_each_event_in_order_and_no_stretches(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("apply", written(tmp_path / "day.jsonl", *DAY))
    assert result.exit_code == 0
    came = records(result.stdout)
    assert [name for name, _ in came if name != "DecisionTraced"] == [
        "EvidenceRecorded",
        "TurnDecided",
        "TurnAuthorized",
    ]
    (decided,) = (v for name, v in came if name == "TurnDecided")
    assert (decided["verdict"], decided["at"]) == ("deliver", AT + 3000)


def test_a_line_is_json_with_sorted_keys(turngate: Turngate, tmp_path: Path) -> None:
    for line in turngate("apply", written(tmp_path / "day.jsonl", *DAY)).stdout.splitlines():
        assert line == json.dumps(json.loads(line), sort_keys=True, ensure_ascii=False)


def test_each_event_is_waited_for_before_the_next(turngate: Turngate, tmp_path: Path) -> None:
    # In one stretch the draft would come after the listing (R-RUN-2); one by one it is held, and then delivered.
    events = written(tmp_path / "day.jsonl", POLICY, MESSAGE, DRAFT, listing(AT + 3000))
    text = "".join(json.dumps({**json.loads(x), "at": AT}) + "\n" for x in events.read_text().splitlines())
    result = turngate("apply", "-", input=text)
    assert next(v["verdict"] for name, v in records(result.stdout) if name == "TurnDecided") == "hold"


def test_tenants_in_one_file_are_kept_apart(turngate: Turngate, tmp_path: Path) -> None:
    acme = written(tmp_path / "a.jsonl", *DAY).read_text()
    other = written(tmp_path / "b.jsonl", POLICY, DRAFT, tenant="other", at=AT + 10_000).read_text()
    came = records(turngate("apply", "-", input=acme + other).stdout)
    verdicts = {str(v["tenant"]): v["verdict"] for name, v in came if name == "TurnDecided"}
    assert verdicts == {"acme": "deliver", "other": "hold"}


def test_a_kept_log_goes_on_where_it_stood(turngate: Turngate, tmp_path: Path) -> None:
    log = tmp_path / "kept.log"
    assert turngate("apply", written(tmp_path / "a.jsonl", *DAY[:3]), "--log", log).exit_code == 0
    second = turngate("apply", written(tmp_path / "b.jsonl", DRAFT, at=AT + 5000), "--log", log)
    assert [v["verdict"] for name, v in records(second.stdout) if name == "TurnDecided"] == ["deliver"]
    # and the same draft once more is no second decision (R-TURN-8)
    assert turngate("apply", tmp_path / "b.jsonl", "--log", log).stdout == ""


def test_a_value_that_no_schema_can_say_is_refused_by_the_pipeline(turngate: Turngate, tmp_path: Path) -> None:
    robot = ("MessageObserved", {**MESSAGE[1], "author_kind": "robot"})
    result = turngate("apply", written(tmp_path / "day.jsonl", POLICY, robot, listing(AT), MESSAGE))
    assert result.exit_code == 0
    (refused, value), *others = records(result.stdout)
    assert (refused, value["code"], value["topic"]) == ("RecordRefused", "invalid", "observed-messages")
    assert [name for name, _ in others] == ["EvidenceRecorded"]


def test_a_topic_of_its_own_stands_before_the_records(turngate: Turngate, tmp_path: Path) -> None:
    line = {"record": POLICY[0], "at": AT, "topic": "turn-drafts", "value": {"tenant": "acme", "at": AT, **POLICY[1]}}
    ((name, value),) = records(turngate("apply", "-", input=json.dumps(line)).stdout)
    assert (name, value["code"], value["topic"]) == ("RecordRefused", "not_operator", "turn-drafts")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is no JSON"),
        ("[1]", "names no record"),
        ('{"record": 3}', "names no record"),
        ('{"record": "Nothing", "at": 1, "value": {}}', "names a record that is none of the contract's"),
        ('{"record": "Tick", "at": 1}', "Tick: value is no map of fields"),
        ('{"record": "Tick", "value": {}}', "Tick: has no at, the broker's time in ms"),
        ('{"record": "Tick", "at": "1s", "value": {}}', "Tick: at is no time in milliseconds"),
        ('{"record": "Tick", "at": -1, "value": {}}', "Tick: at is no time from 1970 to 9999"),
        ('{"record": "Tick", "at": 1, "topic": "x", "value": {}}', "Tick: its topic is no input topic"),
        ('{"record": "TurnDecided", "at": 1, "value": {}}', "TurnDecided: its topic is no input topic"),
    ],
)
def test_a_line_that_is_no_event_is_named_and_what_stood_before_it_is_applied(
    turngate: Turngate, tmp_path: Path, line: str, message: str
) -> None:
    events = written(tmp_path / "day.jsonl", *DAY)
    events.write_text(events.read_text() + "\n" + line + "\n", "utf-8")
    result = turngate("apply", events)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"turngate: {events}: line 6: ")
    assert message in result.stderr
    assert [v["verdict"] for name, v in records(result.stdout) if name == "TurnDecided"] == ["deliver"]


def test_bytes_that_are_no_text_are_named_by_their_line(turngate: Turngate, tmp_path: Path) -> None:
    events = written(tmp_path / "day.jsonl", *DAY)
    events.write_bytes(events.read_bytes() + b'{"record": "\xff"}\n')
    assert turngate("apply", events).stderr == f"turngate: {events}: line 5: is not UTF-8\n"


def test_a_file_that_is_not_there_is_exit_code_2(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("apply", tmp_path / "absent")
    assert (result.exit_code, result.stderr) == (2, f"turngate: {tmp_path / 'absent'}: No such file or directory\n")


def test_it_reads_standard_input_as_it_is_installed(tmp_path: Path) -> None:
    done = installed("apply", "-", input=written(tmp_path / "day.jsonl", *DAY).read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert "TurnAuthorized" in [name for name, _ in records(done.stdout)]
