"""The servers that the tests start: ready means usable, and a killed broker comes back with all it acknowledged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import Broker, quiet
from tests.jvm import ROOT

pytestmark = pytest.mark.kafka


def test_a_killed_broker_comes_back_at_its_address_with_its_records(own_broker: Broker) -> None:
    admin = AdminClient(quiet(own_broker.bootstrap))
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(10)
    producer = Producer(quiet(own_broker.bootstrap) | {"acks": "all"})
    producer.produce("kept", b"value", partition=0)
    assert producer.flush(10) == 0

    own_broker.kill()
    assert not own_broker.running
    own_broker.restart()

    consumer = Consumer(quiet(own_broker.bootstrap) | {"group.id": "any"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert message.value() == b"value"


def test_the_shared_broker_takes_topics(kafka: str, unique: str) -> None:
    admin = AdminClient(quiet(kafka))
    admin.create_topics([NewTopic(unique, 1, 1)])[unique].result(10)
    assert unique in admin.list_topics(unique, timeout=10).topics


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_java_a_live_test_is_skipped_and_in_ci_it_fails(tmp_path: Path, ci: str, outcome: str) -> None:
    test = "tests/test_servers.py::test_the_shared_broker_takes_topics"
    environment = {name: value for name, value in os.environ.items() if name != "TURNGATE_TEST_BOOTSTRAP"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env=environment | {"PATH": str(tmp_path), "CI": ci},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert outcome in done.stdout
    assert "no Kafka broker: java is not installed" in done.stdout
    assert (done.returncode == 0) == (ci == "")
