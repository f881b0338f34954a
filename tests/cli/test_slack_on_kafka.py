"""Events, a worker and the roster on a broker: what is said in Slack becomes evidence that is known."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.broker import Broker
from tests.cli.conftest import POLICY, Turngate, written
from tests.cli.slack_commands import running, slack_file
from tests.cli.test_on_kafka import tailed, worker
from tests.slack import Slack
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka


def test_what_is_said_becomes_known_evidence(turngate: Turngate, own_broker: Broker, tmp_path: Path) -> None:
    at = ("--bootstrap-servers", own_broker.bootstrap)
    assert turngate("topics", "create", *at, "--partitions", 2).exit_code == 0
    assert turngate("send", written(tmp_path / "policy", POLICY, at=now_ms()), *at).exit_code == 0
    with Slack() as slack:
        acme = slack.workspace("T1", bot="UBOT")
        acme.user("UALEX")
        room = slack.channel("C1", acme, ["UBOT", "UALEX"], private=True)
        file = slack_file(tmp_path / "slack.json", acme)
        with (
            worker(own_broker.bootstrap) as deciding,
            running(tmp_path, slack, file, "roster", *at) as roster,
            running(tmp_path, slack, file, "events", "--listen", "127.0.0.1:0", *at) as events,
        ):
            url = "http://" + events.until(r"listening on (\S+)")[1] + "/slack/events"
            roster.until("listing for 1 workspaces")
            slack.say(room, "UALEX", "the zebra is out")
            assert slack.post(slack.queue[0], url).status == 200
            deadline = time.monotonic() + 90
            while len(evidence := tailed(turngate, own_broker.bootstrap, "source-evidence")) < 2:
                assert time.monotonic() < deadline, roster.said
            slack.share(room, slack.workspace("T2", bot="UBOT2").id)
            assert slack.post(slack.queue[-1], url).status == 200
            roster.stop()
            deciding.send_signal(signal.SIGTERM)
            assert deciding.wait(30) == 0
            own_broker.kill()
            slack.say(room, "UALEX", "is anybody there")
            assert slack.post(slack.queue[-1], url).status == 503  # so Slack sends it again
            own_broker.restart()
            while slack.post(slack.queue[-1], url).status != 200:
                assert time.monotonic() < deadline, events.said
            events.stop()
    assert [e["value"]["status"] for e in evidence] == ["unknown", "known"]  # type: ignore[index]
    assert "bots: in no room with one was a turn refused" in turngate("doctor", "--bots", *at).stdout
    texts = [m["value"]["text"] for m in tailed(turngate, own_broker.bootstrap, "observed-messages")]  # type: ignore[index]
    assert set(texts) == {"the zebra is out", "is anybody there"}
    records = [r["record"] for r in tailed(turngate, own_broker.bootstrap, "membership-refreshes")]
    assert records.count("RoomChanged") == 1
    assert set(records) == {"MembershipPage", "RoomChanged"}  # the room may have been listed again since
