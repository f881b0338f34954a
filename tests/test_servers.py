"""The servers that the tests start: ready means usable, and a killed broker comes back with all it acknowledged."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker import Broker

pytestmark = pytest.mark.kafka


def test_a_killed_broker_comes_back_at_its_address_with_its_records(own_broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(10)
    producer = Producer({"bootstrap.servers": own_broker.bootstrap, "acks": "all"})
    producer.produce("kept", b"value", partition=0)
    assert producer.flush(10) == 0

    own_broker.kill()
    assert not own_broker.running
    own_broker.restart()

    consumer = Consumer({"bootstrap.servers": own_broker.bootstrap, "group.id": "any"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert message.value() == b"value"


def test_the_shared_broker_takes_topics(kafka: str, unique: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(unique, 1, 1)])[unique].result(10)
    assert unique in admin.list_topics(unique, timeout=10).topics
