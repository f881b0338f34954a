"""Topics are made with broker time and equal partitions; what a worker could not trust is refused in one sentence."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewPartitions

from tests.broker import Broker
from tests.conftest import missing
from tests.jvm import Unavailable
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.policy import Policy
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import (
    RETENTION,
    STATE_TOPIC,
    allow_create_time,
    check_topics,
    create_topics,
    topic_configs,
)
from turngate.streams.log import LogError

pytestmark = pytest.mark.kafka

EVERY = [*INPUT_TOPICS, *OUTPUT_TOPICS, STATE_TOPIC]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        made = Broker(tmp_path_factory.mktemp("topics"))
    except Unavailable as reason:
        missing("no Kafka broker", reason)
    with made:
        yield made


@pytest.fixture
async def settings(broker: Broker, admin: AdminClient) -> KafkaSettings:
    """A broker without any of the topics."""
    there = [name for name in admin.list_topics(timeout=5).topics if name in EVERY]
    for future in (admin.delete_topics(there) if there else {}).values():
        future.result(10)
    await _until(lambda: not set(EVERY) & set(admin.list_topics(timeout=5).topics))
    return KafkaSettings(broker.bootstrap)


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


@pytest.fixture
def silent() -> Iterator[KafkaSettings]:
    """An address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield KafkaSettings(f"127.0.0.1:{server.getsockname()[1]}")


async def test_topics_are_made_once_and_pass_the_check(settings: KafkaSettings) -> None:
    assert sorted(await create_topics(settings, 3, 1)) == sorted(EVERY)
    assert await create_topics(settings, 3, 1) == []
    found = await check_topics(settings)
    assert sorted(found) == sorted(EVERY)
    assert {topic.partitions for topic in found.values()} == {3}
    assert {topic.timestamps for topic in found.values()} == {"LogAppendTime"}
    assert {name for name, topic in found.items() if topic.cleanup == "compact"} == {STATE_TOPIC}
    assert {found[name].largest for name in OUTPUT_TOPICS} == {16 * 1024 * 1024}


async def test_what_is_missing_is_made_and_named(settings: KafkaSettings, admin: AdminClient) -> None:
    with pytest.raises(LogError, match="none of Turngate's topics; create them with `turngate topics create`"):
        await check_topics(settings)
    await create_topics(settings, 1, 1)
    for future in admin.delete_topics(["grants", "ticks"]).values():
        future.result(10)
    await _until(lambda: "grants" not in admin.list_topics(timeout=5).topics)
    with pytest.raises(LogError, match="missing topics: ticks, grants; create them with `turngate topics create`"):
        await check_topics(settings)
    assert sorted(await create_topics(settings, 1, 1)) == ["grants", "ticks"]


async def test_unequal_partition_counts_are_refused(settings: KafkaSettings, admin: AdminClient) -> None:
    await create_topics(settings, 2, 1)
    admin.create_partitions([NewPartitions("policies", 3)])["policies"].result(10)
    await _until(lambda: len(admin.list_topics("policies", timeout=5).topics["policies"].partitions) == 3)
    said = "all topics must have the same number of partitions: policies has 3, the others have 2"
    with pytest.raises(LogError, match=said):
        await check_topics(settings)
    with pytest.raises(LogError, match=said):
        await create_topics(settings, 2, 1)


@pytest.mark.parametrize(
    ("topic", "key", "value", "said"),
    [
        # A writer would choose the time of a decision. R-TIME-1
        (
            "approvals",
            "message.timestamp.type",
            "CreateTime",
            "message.timestamp.type must be LogAppendTime: approvals",
        ),
        ("turn-drafts", "cleanup.policy", "compact", "cleanup.policy must be delete, or records are lost: turn-drafts"),
        (STATE_TOPIC, "cleanup.policy", "delete", "cleanup.policy of turngate-state must be compact, or state is lost"),
        (
            "outbound",
            "max.message.bytes",
            "16777215",
            "max.message.bytes must be 16777216 or more, or a large room stops its partition: outbound;",
        ),
        (STATE_TOPIC, "max.message.bytes", "1000000", "max.message.bytes must be 1048576 or more"),
    ],
)
async def test_an_unfit_topic_is_refused(
    settings: KafkaSettings, admin: AdminClient, topic: str, key: str, value: str, said: str
) -> None:
    await create_topics(settings, 1, 1)
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(10)
    await _until_refused(settings, said)


async def test_more_replicas_than_brokers_is_the_brokers_refusal(settings: KafkaSettings) -> None:
    with pytest.raises(LogError, match=r"topic .* was not created: .*replication"):
        await create_topics(settings, 1, 3)


async def test_simulated_time_needs_a_word_and_loopback(
    settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LogError, match="TURNGATE_TEST_TIME=1"):
        await create_topics(settings, 1, 1, create_time=True)
    monkeypatch.setenv("TURNGATE_TEST_TIME", "1")
    await create_topics(settings, 1, 1, create_time=True)
    found = await check_topics(settings, create_time=True)
    assert {found[name].timestamps for name in INPUT_TOPICS} == {"CreateTime"}
    with pytest.raises(LogError, match=r"message\.timestamp\.type must be LogAppendTime"):
        await check_topics(settings)


@pytest.mark.parametrize("servers", ["kafka.example:9092", "127.0.0.1:9092,192.0.2.1:9092", "localhost.example:9092"])
def test_no_other_machine_gets_simulated_time(servers: str) -> None:
    with pytest.raises(LogError, match="on loopback"):
        allow_create_time(KafkaSettings(servers), {"TURNGATE_TEST_TIME": "1"})


async def test_a_closed_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(LogError, match=f"no broker answered at 127.0.0.1:{port} by PLAINTEXT within 3 s: is it"):
        await check_topics(KafkaSettings(f"127.0.0.1:{port}"), patience=3)


async def test_a_silent_port_is_one_sentence_in_bounded_time(silent: KafkaSettings) -> None:
    begun = time.monotonic()
    with pytest.raises(LogError, match="no broker answered at "):
        await create_topics(silent, 1, 1, patience=1)
    assert time.monotonic() - begun < 5


def test_every_topic_has_a_retention_no_shorter_than_the_default_policy_needs() -> None:
    assert sorted(RETENTION) == sorted([*INPUT_TOPICS, *OUTPUT_TOPICS])
    kept = Policy(version=0).retention
    assert RETENTION["observed-messages"] == RETENTION["applied"] == kept.messages
    assert RETENTION["audit"] == kept.log  # R-RET-2
    # The hold of a draft is seconds: an input that were gone before it is decided would be a gap.
    assert min(RETENTION[name] for name in INPUT_TOPICS) > 1000 * Policy(version=0).stale.hold


async def _until_refused(settings: KafkaSettings, said: str, seconds: float = 15) -> None:
    """A changed configuration reaches the brokers a moment after it was acknowledged."""
    deadline = time.monotonic() + seconds
    refused = ""
    while not refused:
        assert time.monotonic() < deadline, "never refused"
        try:
            await check_topics(settings)
        except LogError as error:
            refused = str(error)
    assert said in refused


async def _until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not within time"
        await asyncio.sleep(0.05)


def test_simulated_times_neither_expire_nor_are_refused() -> None:
    """A broker judges by the stamps: scenarios of last January would be deleted half a minute into a run."""
    config = topic_configs("turn-drafts", replication=1, create_time=True)
    assert config["retention.ms"] == "-1"
    assert config["message.timestamp.after.max.ms"] == str(2**63 - 1)
    assert topic_configs("turn-drafts", replication=1)["retention.ms"] != "-1"
