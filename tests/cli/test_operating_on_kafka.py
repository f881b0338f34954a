"""Operators' commands on a live broker: they return when a worker has applied them, with what came of them."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from tests.broker import Broker
from tests.cli.conftest import DRAFT, MESSAGE, POLICY, Line, Turngate, listing, written
from tests.cli.test_on_kafka import tailed, worker
from tests.cli.test_operating import ASKED, NOTE, WHO
from turngate.processors.keys import is_code
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka


def test_commands_wait_for_a_worker_and_report_what_it_answered(
    turngate: Turngate, own_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert turngate("keys", "new", tmp_path / "keys").exit_code == 0
    monkeypatch.setenv("TURNGATE_KEYS_FILE", str(tmp_path / "keys"))  # the worker's, in a process of its own
    at = ("--bootstrap-servers", own_broker.bootstrap)
    assert turngate("topics", "create", *at, "--partitions", 3).exit_code == 0

    began = time.monotonic()
    alone = turngate("pause", "mesh", "--room", "slack:T1/D9", *WHO, *at, "--wait", "1")
    assert time.monotonic() - began < 15
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "no worker applied it within 1 s; it is on operator-commands[" in alone.stderr

    began_ms = now_ms()
    lines: tuple[Line, ...] = (POLICY, listing(began_ms), MESSAGE, NOTE, ASKED)
    with worker(own_broker.bootstrap):
        for number, line in enumerate(lines):
            assert turngate("send", written(tmp_path / str(number), line, at=began_ms), *at).exit_code == 0
        granted = turngate("grant", "plan@1", "--memory", "plan", "--agent", "mesh", "--public", *WHO, *at)
        assert granted.exit_code == 0, granted.stderr
        assert granted.stdout.startswith("granted; the grant is grantcommanded-")
        grant = granted.stdout.split()[-1]
        refused = turngate("grant", "plan@9", "--memory", "plan", "--agent", "mesh", "--public", *WHO, *at)
        assert (refused.exit_code, refused.stdout) == (1, "refused: 409 base_not_current\n")
        revoked = turngate("revoke", grant, "--agent", "mesh", *WHO, *at)
        assert (revoked.exit_code, revoked.stdout) == (0, f"revoked {grant}\n")

        (offered,) = (r for r in tailed(turngate, own_broker.bootstrap, "grants") if r["record"] == "SharingOffered")
        assert isinstance(offered["value"], dict)
        assert is_code(offered["value"]["code"])

        assert turngate("pause", "mesh", *WHO, *at).stdout == "mesh is paused everywhere\n"
        assert turngate("send", written(tmp_path / "draft", DRAFT, at=began_ms), *at).exit_code == 0
        assert turngate("resume", "mesh", *WHO, *at).exit_code == 0  # applied, so the draft before it was decided
        erased = turngate("forget", "--room", "slack:T1/D1", *WHO, *at, "--json")
        assert erased.exit_code == 0, erased.stderr
        mistyped = turngate("pause", "msh", *WHO, *at)
        assert (mistyped.exit_code, mistyped.stdout) == (0, "msh is paused everywhere\n")
        assert mistyped.stderr.splitlines()[1:] == [
            "no policy of acme names an agent msh, so nobody was stopped: check the name"
        ]
        asyncio.run(ended_by_retention(own_broker.bootstrap, "policies", 3))
        unsure = turngate("pause", "nobody", *WHO, *at)  # a policy that is gone may have named it
        assert (unsure.exit_code, len(unsure.stderr.splitlines())) == (0, 1)
        assert turngate("policy", "suggest", "--tenant", "acme", *at).exit_code == 0
    told = json.loads(erased.stdout)
    assert told["refs"] == ["message:slack:T1/D1/1", "revision:plan@1"]
    assert "purged_records" not in told  # what lies in input topics ends with their own retention
    (decided,) = (d["value"] for d in tailed(turngate, own_broker.bootstrap, "turn-verdicts"))
    assert isinstance(decided, dict)
    assert [reason["code"] for reason in decided["reasons"]] == ["paused"]


async def ended_by_retention(bootstrap: str, topic: str, partitions: int) -> None:
    """Everything that is on the topic is gone, as after its retention."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    gone = {TopicPartition(topic, n): RecordsToDelete(before_offset=-1) for n in range(partitions)}
    await admin.delete_records(gone, timeout_ms=10_000)
    await admin.close()


def test_a_broker_that_is_not_there_is_one_sentence(turngate: Turngate) -> None:
    result = turngate("pause", "mesh", *WHO, "--bootstrap-servers", "127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no broker answers at 127.0.0.1:1" in result.stderr.splitlines()[-1]


def test_a_broker_without_topics_is_one_sentence(turngate: Turngate, own_broker: Broker) -> None:
    result = turngate("pause", "mesh", *WHO, "--bootstrap-servers", own_broker.bootstrap)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "turngate: there is no topic operator-commands; create the topics with `turngate topics create`"
    )
