"""What a worker refuses, says and leaves behind, on a live broker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from aiokafka.admin.records_to_delete import RecordsToDelete

from tests.broker import Broker
from tests.kafka.chained import Chained
from tests.kafka.cluster import CODEC, Cluster, Sent, until
from tests.kafka.exactness import assert_exact
from tests.kafka.feeding import mixture
from tests.streams.world import ROOMS, draft, message, policy
from turngate.processors.engine import Engine
from turngate.processors.errors import StateVersionError
from turngate.schemas.catalog import DRAFTS, TICKS
from turngate.schemas.inputs import Record, Tick
from turngate.schemas.outputs import TurnDecided
from turngate.schemas.shapes import Position
from turngate.streams.kafka.checkpoint import POSITIONS_KEY, Layout
from turngate.streams.kafka.clients import plain_producer
from turngate.streams.kafka.memory import SHARE, Memory, StateTooLarge, give_back
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.partition import Restore
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.kafka.transport import ConsumerThread
from turngate.streams.log import Commit, LogError

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]


@pytest.fixture
async def cluster(kafka: str, unique: str) -> Cluster:
    made = Cluster(KafkaSettings.read(kafka), f"{unique}-", 2)
    await made.make_topics()
    return made


def worker(cluster: Cluster, restore: Restore = Chained.restore, memory_limit: int | None = None) -> Worker:
    names = Names(cluster.prefix, cluster.prefix)
    options = WorkerOptions(names=names, memory_limit=memory_limit, session=6.0, heartbeat=0.5, test_time=False)
    return Worker(cluster.settings, CODEC, options, restore)


@asynccontextmanager
async def owning(cluster: Cluster, restore: Restore = Chained.restore) -> AsyncIterator[Worker]:
    """A worker that has loaded both partitions."""
    async with worker(cluster, restore) as made:

        async def owns() -> bool:
            return len(made.committed()) == 2

        await until(owns)
        yield made


async def applied(made: Worker, ends: dict[TopicPartition, int]) -> None:
    async def there() -> bool:
        committed = made.committed()
        return all(committed[place.partition][place.topic] >= end for place, end in ends.items())

    await until(there)


async def test_a_second_worker_in_turn_goes_on_where_the_first_ended(cluster: Cluster) -> None:
    ends = await cluster.send(mixture(200, 2))
    async with owning(cluster) as first:
        await applied(first, ends)
        assert first.runtime.counters.loads == 2
    more = await cluster.send(mixture(200, 2, start=200))
    async with owning(cluster) as second:
        await applied(second, more)
        assert sum((await second.lag()).values()) < 10  # but for ticks that have just come
    assert await assert_exact(cluster, Chained.restore, more) == 0


async def test_ticks_come_every_second_in_each_partition(cluster: Cluster) -> None:
    """R-TIME-3."""
    async with owning(cluster) as made:
        await applied(made, {TopicPartition(TICKS, p): 2 for p in (0, 1)})
    for place, messages in (await cluster.read(TICKS)).items():
        ticks = [CODEC.decode(m.value) for m in messages]
        assert [t.tenant for t in ticks if isinstance(t, Tick)] == [str(place.partition)] * len(messages)
        gaps = [b.timestamp - a.timestamp for a, b in pairwise(messages)]
        assert all(gap >= 900 for gap in gaps)


class Big(Chained):
    """Its state has one entry of so many bytes as the last record said, up to 1.5 MB."""

    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__(fail_at)
        self.bulk = self.state.table("bulk", str)

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        if not isinstance(record, Tick):
            self.bulk.put(("all",), "x" * (1_500_000 - 700_000 * position.offset))
        return super().apply(record, position, timestamp, raw)


async def test_an_entry_larger_than_a_record_may_be_survives_a_restart_and_shrinks(cluster: Cluster) -> None:
    one = [message(n, ROOMS[0], n) for n in range(3)]
    for n, m in enumerate(one):
        ends = await cluster.send([Sent(m.topic, 0, m.key, m.value)])
        async with owning(cluster, Big.restore) as made:
            await applied(made, ends)
            (size,) = [len(v) for k, v in made.runtime.owned[0].held.engine.state.entries() if b"bulk" in k]  # type: ignore[attr-defined]
            assert size == 1_500_000 - 700_000 * n + 2
    await assert_exact(cluster, Big.restore, ends)


@pytest.mark.parametrize("room", [30, 400], ids=["too little", "enough"])
async def test_a_state_is_loaded_if_there_is_memory_for_it_and_refused_with_a_sentence_if_not(
    cluster: Cluster, room: int
) -> None:
    """Sixty entries of one megabyte, for a worker that may grow by so many megabytes."""
    entries = [(f'["bulk","{n}"]'.encode(), b'"' + b"x" * 1_000_000 + b'"') for n in range(60)]
    producer = plain_producer(cluster.settings)
    await producer.start()
    for key, value, headers in Layout().records(Commit([], [*entries], {}, Big.version)):
        await producer.send(cluster.prefix + STATE_TOPIC, value, key, partition=1, headers=list(headers))
    await producer.stop()
    give_back()  # or what an earlier test freed would be taken again unseen
    limit = int((Memory().used() + (room << 20)) / SHARE)
    async with worker(cluster, Big.restore, memory_limit=limit) as made:

        async def owns() -> bool:
            return len(made.committed()) == 2

        if room > 60:
            await until(owns)
            return
        said = r"the state of partition 1 does not fit: \d+ MB in use, of \d+ MB allowed; .*--memory-limit"
        with pytest.raises(StateTooLarge, match=said):
            await asyncio.wait_for(made.failed(), 30)


class Verbose(Chained):
    """What comes of a draft is larger than a topic takes, and this engine does not look."""

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        out = super().apply(record, position, timestamp, raw)
        return [r.model_copy(update={"policy": "x" * 17_000_000}) if isinstance(r, TurnDecided) else r for r in out]


async def test_an_output_that_the_broker_does_not_take_stops_its_partition_and_says_why(cluster: Cluster) -> None:
    ends = await cluster.send([s for s in mixture(80, 2) if s.topic != DRAFTS or s.partition == 1])
    async with worker(cluster, Verbose.restore) as made:

        async def judged() -> bool:
            return set(made.runtime.unusable) == {1}

        await until(judged)
        said = f"{cluster.prefix}turn-verdicts[1]: the broker does not take a record of 17000"
        assert made.runtime.unusable[1].startswith(said)
        await applied(made, {place: end for place, end in ends.items() if place.partition == 0})
    async with owning(cluster) as made:  # its twin, whose outputs are small
        await applied(made, ends)
    await assert_exact(cluster, Chained.restore, ends)  # nothing was lost: no part of the refused commit was written


#: Only aiokafka without its extensions lets us write such a header.
NO_TEXT = """
import asyncio, sys
from aiokafka import AIOKafkaProducer
class Name(str):
    def encode(self, *_): return b"\\xff"
async def main():
    producer = AIOKafkaProducer(bootstrap_servers=sys.argv[1])
    await producer.start()
    await producer.send_and_wait(sys.argv[2], b"v", b"acme", partition=0, headers=[(Name("x"), b"")])
    await producer.stop()
asyncio.run(main())
"""


async def test_bytes_that_are_no_record_halt_their_partition_and_leave_no_gap(cluster: Cluster) -> None:
    before = await cluster.send(mixture(40, 2))
    async with owning(cluster) as made:
        await applied(made, before)
        topic = f"{cluster.prefix}observed-messages"
        environment = os.environ | {"AIOKAFKA_NO_EXTENSIONS": "1"}
        command = [sys.executable, "-c", NO_TEXT, cluster.settings.bootstrap_servers, topic]
        await asyncio.to_thread(subprocess.run, command, env=environment, check=True)
        after = await cluster.send(mixture(40, 2, start=40))
        await applied(made, {place: end for place, end in after.items() if place.partition == 1})

        async def halted() -> bool:
            return made.runtime.owned[0].partition.halted is not None

        await until(halted)
        why = made.runtime.owned[0].partition.halted
        assert why == f"{topic}[0]: what lies from 5 on is no record: UnicodeDecodeError"
        assert made.committed()[0]["observed-messages"] == 5


async def test_headers_without_a_value_are_no_obstacle(cluster: Cluster) -> None:
    producer = plain_producer(cluster.settings)
    await producer.start()
    given = draft(0, ROOMS[0], "t1", ())
    nothing = [("traceparent", None), ("", None)]
    sent = await producer.send_and_wait(cluster.prefix + DRAFTS, given.value, given.key, partition=0, headers=nothing)
    await producer.stop()
    async with owning(cluster) as made:
        await applied(made, {TopicPartition(DRAFTS, 0): sent.offset + 1})


async def test_a_topic_that_grows_ends_the_worker(cluster: Cluster) -> None:
    """Its new partition would take some of a tenant's records away from the others."""
    async with owning(cluster) as made:
        admin = AIOKafkaAdminClient(**cluster.settings.client_options())
        await admin.start()
        await admin.create_partitions({cluster.prefix + DRAFTS: NewPartitions(total_count=3)})
        await admin.close()
        await made._app.consumer._thread.call_thread(refreshed, made._app.consumer._thread)
        with pytest.raises(LogError, match="equal numbers of partitions"):
            await asyncio.wait_for(made.failed(), 30)


async def refreshed(thread: ConsumerThread) -> None:
    """The client learns of it now, and not when its metadata is five minutes old."""
    await thread._ensure_consumer()._client.force_metadata_update()


async def test_state_of_a_newer_engine_ends_the_worker(cluster: Cluster) -> None:
    producer = plain_producer(cluster.settings)
    await producer.start()
    newer = [("engine", b"999")]
    await producer.send_and_wait(cluster.prefix + STATE_TOPIC, b"{}", POSITIONS_KEY, partition=1, headers=newer)
    await producer.stop()
    async with worker(cluster, Engine.restore) as old:
        with pytest.raises(StateVersionError, match="999"):
            await asyncio.wait_for(old.failed(), 30)


async def test_input_that_retention_has_passed_is_not_skipped(cluster: Cluster) -> None:
    """The partition is not worked on, and says which records are missing; the others are."""
    ends = await cluster.send(mixture(40, 2))
    async with owning(cluster) as made:
        await applied(made, ends)
    more = await cluster.send(mixture(40, 2, start=40))
    gone = TopicPartition(cluster.prefix + "observed-messages", 0)
    admin = AIOKafkaAdminClient(**cluster.settings.client_options())
    await admin.start()
    await admin.delete_records({gone: RecordsToDelete(before_offset=8)}, timeout_ms=10_000)
    await admin.close()
    async with worker(cluster) as made:

        async def judged() -> bool:
            return set(made.runtime.unusable) == {0} and set(made.committed()) == {1}

        await until(judged)
        assert f"{gone.topic}[0]: its records from 5 on are needed, and it holds 8 to 10" in made.runtime.unusable[0]
        await applied(made, {place: end for place, end in more.items() if place.partition == 1})


async def test_topics_whose_writers_choose_the_time_halt_the_partition(kafka: str, unique: str) -> None:
    cluster = Cluster(KafkaSettings.read(kafka), f"{unique}-", 2, create_time=True)
    await cluster.make_topics()
    async with owning(cluster) as made:
        given = policy(0)
        await cluster.send([Sent(given.topic, 0, given.key, given.value, given.timestamp)])

        async def halted() -> bool:
            return made.runtime.owned[0].partition.halted is not None

        await until(halted)
        assert "LogAppendTime" in (made.runtime.owned[0].partition.halted or "")
        assert made.committed()[0]["policies"] == 0


@pytest.mark.parametrize("topics", [True, False], ids=["with topics", "without"])
def test_the_command_ends_in_order_or_says_what_is_missing(own_broker: Broker, topics: bool) -> None:
    command = str(Path(sys.executable).with_name("turngate"))
    at = ["--bootstrap-servers", own_broker.bootstrap]
    if topics:
        created = subprocess.run([command, "topics", "create", "--partitions", "2", *at], check=False)
        assert created.returncode == 0
    process = subprocess.Popen([command, "worker", *at], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said: list[str] = []
    try:
        for line in process.stderr:
            said.append(line)
            if "partitions assigned: [0, 1]" in line:
                process.terminate()
        assert process.wait(20) == (0 if topics else 2), said
    finally:
        process.kill()
        process.wait()
    assert ("worker stopped" in said[-1]) if topics else ("turngate topics create" in said[-1]), said
