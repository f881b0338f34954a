"""A draft on a broker goes out into Slack: a worker decides, `turngate deliver` sends, and is killed in between.

What rests on a grant goes out too, though it waits for the worker.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.broker import Broker
from tests.cli.conftest import DRAFT, MESSAGE, POLICY, Line, Turngate, listing, written
from tests.cli.slack_commands import running, slack_file
from tests.cli.test_on_kafka import tailed, worker
from tests.slack import Call, Fault, Slack
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka

#: A memory that Kim may read, a grant of it to Alex, and a turn that repeats it to him.
_MEMORY = {"agent": "mesh", "memory": "m", "revision": "m@1"}
_WRITE = {**_MEMORY, "by": "operator", "kind": "note"}
GRANTED: tuple[Line, ...] = (
    ("MemoryWrite", {**_WRITE, "write": "w1", "op": "create", "text": "a secret"}),
    ("MemoryWrite", {**_WRITE, "write": "w2", "op": "review", "audience": {"readers": ["slack:T1/UKIM"]}}),
    ("GrantCommanded", {**_MEMORY, "command": "g1", "operator": "o", "op": "grant",
                        "audience": {"readers": ["slack:T1/UALEX"]}}),
    ("TurnDrafted", DRAFT[1] | {"turn": "t2", "exposed": ["revision:m@1"], "renderings": [{"text": "by leave"}]}),
)  # fmt: skip


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
            for number, line in enumerate((POLICY, listing(now_ms()), MESSAGE, DRAFT)):
                lines = written(tmp_path / str(number), line, tenant=unique, at=now_ms())
                assert turngate("send", lines, *at).exit_code == 0
            assert first.process.wait(60) == -9
            slack.faults = lambda call: None
            with running(tmp_path, slack, file, *command) as second:
                deadline = time.monotonic() + 60
                while not (recorded := tailed(turngate, own_broker.bootstrap, "deliveries")):
                    assert time.monotonic() < deadline, second.said
                # What rests on a grant waits until the worker has applied every message (R-GRT-9), and it does.
                assert (
                    turngate("send", written(tmp_path / "granted", *GRANTED, tenant=unique, at=now_ms()), *at).exit_code
                    == 0
                )
                while len(granted := tailed(turngate, own_broker.bootstrap, "deliveries")) < 2:
                    assert time.monotonic() < deadline, second.said
                outbound = tailed(turngate, own_broker.bootstrap, "outbound")
                second.stop()
        post, shared = slack.posts
    values = [json.loads(json.dumps(line["value"])) for line in recorded]
    assert (post.args["text"], post.room) == ("hello", "D1")
    assert [(v["status"], v["message"]) for v in values] == [("sent", f"slack:T1/D1/{post.ts}")]
    assert (shared.args["text"], granted[-1]["value"]["status"]) == ("by leave", "sent")
    assert [line["value"]["grants"] for line in outbound] == [[], ["g1"]]
    assert "hello" not in first.said + second.said
