"""`turngate deliver` as a process that is killed at the worst moments, on an embedded log and on a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Turngate
from tests.cli.processes import Running
from tests.cli.slack_commands import running, slack_file
from tests.sinks.stage import Stage
from tests.slack import Call, Fault, Slack


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Slack() as slack:
        made = Stage(tmp_path / "log", slack)
        made.authorize("t1", "t2")
        made.log.close()  # it is the process'
        yield made


def outcomes(turngate: Turngate, log: Path) -> dict[str, str]:
    shown = turngate("tail", "deliveries", "--log", log, "--from", "beginning", "--no-follow", "--json")
    records = [json.loads(line)["value"] for line in shown.stdout.splitlines()]
    return {record["turn"]: record["status"] for record in records}


def until_recorded(turngate: Turngate, log: Path, process: Running, *turns: str) -> dict[str, str]:
    def found() -> dict[str, str] | None:
        return told if set(told := outcomes(turngate, log)) == set(turns) else None

    return process.wait(found)


def test_turns_go_out_and_their_records_are_applied(turngate: Turngate, stage: Stage, tmp_path: Path) -> None:
    file = slack_file(tmp_path / "slack.json", stage.acme)
    with running(tmp_path, stage.slack, file, "deliver", "--log", stage.path) as delivering:
        assert until_recorded(turngate, stage.path, delivering, "t1", "t2") == {"t1": "sent", "t2": "sent"}
        delivering.stop()
    assert sorted(stage.said()) == ["this is t1", "this is t2"]
    assert "this is" not in delivering.said
    assert stage.acme.token not in delivering.said
    assert "ERROR" not in delivering.said


@pytest.mark.parametrize(
    ("method", "fault", "became"),
    [
        ("conversations.members", Fault.REFUSED, {"t1": "sent", "t2": "sent"}),
        ("chat.postMessage", None, {"t1": "sent", "t2": "sent"}),  # said, and not recorded
        ("chat.postMessage", Fault.REFUSED, {"t1": "uncertain", "t2": "sent"}),  # for all that anybody knows, said
    ],
)
def test_killed_at_any_moment_nothing_is_said_twice_and_nothing_lost(
    turngate: Turngate, stage: Stage, tmp_path: Path, method: str, fault: Fault | None, became: dict[str, str]
) -> None:  # R-DLV-2
    file = slack_file(tmp_path / "slack.json", stage.acme)
    alive: list[Running] = []

    def kill(call: Call) -> Fault | None:
        if not alive or call.method != method:
            return None
        running_one = alive.pop()
        running_one.process.kill()
        running_one.process.wait()
        return fault

    stage.slack.faults = kill
    with running(tmp_path, stage.slack, file, "deliver", "--log", stage.path) as first:
        alive.append(first)
        stage.slack.wait(lambda: not alive, "call to be killed in")
        assert first.process.wait(60) == -9
    with running(tmp_path, stage.slack, file, "deliver", "--log", stage.path) as second:
        found = until_recorded(turngate, stage.path, second, "t1", "t2")
        second.stop()
    assert sorted(stage.said()) == [f"this is {turn}" for turn, status in became.items() if status == "sent"]
    assert found == became


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bootstrap-servers", "127.0.0.1:1"], "no database to claim turns in: give --postgres-dsn"),
        (["--slack-api", "http://slack.example/api/"], "--slack-api: must be an https:// URL"),
    ],
)
def test_what_it_cannot_do_it_says(
    turngate: Turngate, stage: Stage, tmp_path: Path, arguments: list[str], message: str
) -> None:
    file = slack_file(tmp_path / "slack.json", stage.acme)
    result = turngate("deliver", "--slack-file", file, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
