"""`turngate up --slack`: one process on one file, killed at the worst moments, loses nothing and says nothing twice."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.conftest import Turngate
from tests.cli.slack_commands import running, slack_file
from tests.gateway.conftest import Keyring, draft
from tests.sinks.records import ROOM
from tests.sinks.stage import Stage, once
from tests.slack import Slack
from turngate.gateway.tokens import Scope


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Slack() as slack:
        made = Stage(tmp_path / "log", slack)
        made.authorize(*(f"t{n}" for n in range(6)))
        made.log.close()  # it is the process'
        yield made


def on_log(turngate: Turngate, log: Path, topic: str) -> list[dict[str, Any]]:
    shown = turngate("tail", topic, "--log", log, "--from", "beginning", "--no-follow", "--json")
    return [json.loads(line) for line in shown.stdout.splitlines()]


def dealt_with(turngate: Turngate, log: Path, turns: set[str]) -> bool:
    return turns <= {delivery["value"]["turn"] for delivery in on_log(turngate, log, "deliveries")}


def test_events_rooms_decisions_and_deliveries(turngate: Turngate, stage: Stage, tmp_path: Path) -> None:
    file = slack_file(tmp_path / "slack.json", stage.acme)
    with running(tmp_path, stage.slack, file, "up", "--slack", "--socket-mode", "--log", stage.path) as up:
        stage.slack.say(stage.room, "UALEX", "the zebra is out")
        stage.slack.wait_acknowledged(stage.slack.push(stage.slack.queue[0]))
        evidence = lambda: on_log(turngate, stage.path, "source-evidence")  # noqa: E731
        up.wait(lambda: [e["value"]["status"] for e in evidence()] == ["unknown", "known"])  # R-AUD-9
        sent = lambda: [d["value"]["status"] for d in on_log(turngate, stage.path, "deliveries")]  # noqa: E731
        up.wait(lambda: sent() == ["sent"] * 6)
        up.stop()
    assert sorted(stage.said()) == [f"this is t{n}" for n in range(6)]
    assert "zebra" not in up.said
    assert stage.acme.token not in up.said
    assert "ERROR" not in up.said


def test_killed_again_and_again_it_loses_nothing_acknowledged_and_says_nothing_twice(
    turngate: Turngate, stage: Stage, tmp_path: Path
) -> None:
    """Drafts come over HTTP meanwhile; each is sent again until it is answered."""
    file, chance = slack_file(tmp_path / "slack.json", stage.acme), random.Random(6)
    keyring = Keyring(tmp_path / "tokens.json")
    token, verdicts = keyring.make(Scope.AGENT), {}
    for number in range(40):
        stage.slack.say(stage.room, "UALEX", str(number))
    waiting, acknowledged = list(stage.slack.queue), set()
    listen = ("--listen", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--tokens-file", keyring.path)
    for last in (False, False, False, True):
        with running(tmp_path, stage.slack, file, "up", "--slack", *listen, "--log", stage.path) as up:
            gateway = up.until(r"turngate.gateway.service listening on (\S+)")[1]
            url = "http://" + up.until(r"slack_parts listening on (\S+)")[1] + "/slack/events"
            for envelope in waiting if last else waiting[: chance.randint(5, 15)]:
                with suppress(OSError, http.client.HTTPException):
                    if stage.slack.post(envelope, url).status == 200:
                        acknowledged.add(envelope["event"]["text"])
            heard = [f"message:{m['value']['message']}" for m in on_log(turngate, stage.path, "observed-messages")]
            for turn in (f"h{number}" for number in range(6)):
                body = draft(turn, f"this is {turn}", room=ROOM, trigger=None, exposed=heard[:1])
                headers = {"Authorization": f"Bearer {token}"}
                wait = 20 if last else 0
                answer = httpx2.post(f"http://{gateway}/v1/drafts?wait={wait}", json=body, headers=headers, timeout=30)
                verdicts[turn] = answer.json().get("verdict")
            if last:
                let_out = {f"t{n}" for n in range(6)} | {turn for turn, said in verdicts.items() if said == "deliver"}
                up.wait(partial(dealt_with, turngate, stage.path, let_out))
                up.stop()
            else:
                up.process.kill()  # in the middle of deciding, listing and sending
                up.process.wait()
        there = {m["value"]["text"] for m in on_log(turngate, stage.path, "observed-messages")}
        assert acknowledged <= there
        waiting = [envelope for envelope in waiting if envelope["event"]["text"] not in acknowledged]
    assert acknowledged == {str(number) for number in range(40)}
    assert set(verdicts.values()) == {"deliver"}
    said = [text for text in stage.said() if text is not None]
    assert once(said)
    outcomes = {d["value"]["turn"]: d["value"]["status"] for d in on_log(turngate, stage.path, "deliveries")}
    assert {f"this is {turn}" for turn, status in outcomes.items() if status == "sent"} <= set(said)
    assert set(outcomes.values()) <= {"sent", "uncertain", "withheld"}


def test_what_is_to_be_connected_is_said(turngate: Turngate, stage: Stage, tmp_path: Path) -> None:
    file = slack_file(tmp_path / "slack.json", stage.acme)
    refused = turngate("up", "--log", tmp_path / "other", "--slack-file", file)
    assert (refused.exit_code, "nothing to connect: give --slack" in refused.stderr) == (2, True)
    refused = turngate("up", "--slack", "--log", tmp_path / "other", "--slack-file", file)
    assert (refused.exit_code, "give either --listen HOST:PORT or --socket-mode" in refused.stderr) == (2, True)
    assert not (tmp_path / "other").exists()
