"""A draft on a broker goes out into Slack: a worker decides, `turngate deliver` sends, and is killed in between."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.broker import Broker
from tests.cli.conftest import DRAFT, MESSAGE, POLICY, Turngate, listing, written
from tests.cli.slack_commands import running, slack_file
from tests.cli.test_on_kafka import tailed, worker
from tests.slack import Call, Fault, Slack
from turngate.cli.files import now

pytestmark = pytest.mark.kafka


def test_killed_between_sending_and_recording_a_turn_is_found_and_recorded(
    turngate: Turngate, own_broker: Broker, postgres: str, unique: str, tmp_path: Path
) -> None:  # R-DLV-2
    at = ("--bootstrap-servers", own_broker.bootstrap)
    command = ("deliver", *at, "--postgres-dsn", postgres)
    assert turngate("topics", "create", *at, "--partitions", 1).exit_code == 0
    with Slack() as slack:
        acme = slack.workspace("T1", bot="UBOT")
        acme.user("UALEX")
        slack.direct("D1", acme, "UALEX")
        file = slack_file(tmp_path / "slack.json", acme, tenant=unique)
        with worker(own_broker.bootstrap), running(tmp_path, slack, file, *command) as first:
            first.until("delivering")

            def kill(call: Call) -> Fault | None:
                if call.method == "chat.postMessage":
                    first.process.kill()
                return None

            slack.faults = kill
            for number, line in enumerate((POLICY, listing(now()), MESSAGE, DRAFT)):
                lines = written(tmp_path / str(number), line, tenant=unique, at=now())
                assert turngate("send", lines, *at).exit_code == 0
            assert first.process.wait(60) == -9
            slack.faults = lambda call: None
            with running(tmp_path, slack, file, *command) as second:
                deadline = time.monotonic() + 60
                while not (recorded := tailed(turngate, own_broker.bootstrap, "deliveries")):
                    assert time.monotonic() < deadline, second.said
                second.stop()
        (post,) = slack.posts
    values = [json.loads(json.dumps(line["value"])) for line in recorded]
    assert (post.args["text"], post.room) == ("hello", "D1")
    assert [(v["status"], v["message"]) for v in values] == [("sent", f"slack:T1/D1/{post.ts}")]
    assert "hello" not in first.said + second.said
