"""Decides how a program drives a worker of its own: topics under a prefix, simulated time, each step waited for.

For scenarios, tests and benchmarks on a broker of this machine. Everything runs in one event loop.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError

from turngate.processors.engine import Engine
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.streams.fold import pieces
from turngate.streams.kafka.clients import plain_consumer, plain_producer
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.partition import Restore
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC, allow_create_time, topic_configs
from turngate.streams.log import Headers, LogError, Message

#: Seconds in which topics must be there, a worker must own its partitions, and a record must be applied.
PATIENCE = 60.0


class KafkaDriver:
    """A set of the contract's topics and a worker on them, for `async with`; topics that it made go away at the end.

    `prefix` names topics that are there already, None makes new ones. Raises `LogError`, here and in every method,
    unless time may be simulated (`TURNGATE_TEST_TIME=1`, loopback), or where something is not done within `PATIENCE`.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        partitions: int = 1,
        prefix: str | None = None,
        codec: Codec | None = None,
        restore: Restore = Engine.restore,
    ) -> None:
        allow_create_time(settings)
        self.partitions = partitions
        self.prefix = f"driver-{uuid.uuid4().hex[:12]}-" if prefix is None else prefix
        self._settings = settings
        self._made = prefix is None
        self._codec = Codec() if codec is None else codec
        self._restore = restore
        self._sent: dict[int, dict[str, int]] = {}
        self._read: dict[TopicPartition, int] = {}
        self._reading = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Returns when the worker owns every partition."""
        if self._made:
            await make_topics(self._settings, self.prefix, self.partitions, create_time=True)
        self._producer: AIOKafkaProducer = plain_producer(self._settings)
        self._side: AIOKafkaConsumer = plain_consumer(self._settings, committed=False)
        # What it reads changes again and again, and a fetch that the broker holds open would delay the next.
        self._reader: AIOKafkaConsumer = plain_consumer(self._settings, committed=True, fetch_max_wait_ms=10)
        for client in (self._producer, self._side, self._reader):
            await client.start()
        await self._side._client.set_topics([self.prefix + topic for topic in (*INPUT_TOPICS, *OUTPUT_TOPICS)])
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.worker.__aexit__(kind, error, at)
        for client in (self._producer, self._side, self._reader):
            await client.stop()
        if self._made:
            await _with_admin(self._settings, lambda admin: admin.delete_topics(topic_names(self.prefix)))

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        *,
        partition: int = 0,
        headers: Headers = (),
    ) -> int:
        """Append one record at its own time; its offset, once the broker has acknowledged it."""
        sent = await self._producer.send_and_wait(
            self.prefix + topic, value, key, partition=partition, timestamp_ms=timestamp, headers=list(headers)
        )
        self._sent.setdefault(partition, {})[topic] = sent.offset + 1
        return int(sent.offset)

    async def feed(self, messages: Sequence[Message]) -> None:
        """Append records of one partition at their own times, each applied as if it was waited for before the next.

        They go out in as few stretches as give this order. Nobody else writes these topics, so that the offsets are
        known beforehand. Raises `LogError` where one turns out to be another.
        """
        for piece in pieces(messages):
            partition, ends = piece[0].partition, {m.topic: m.offset + 1 for m in piece}
            self.worker.runtime.owned[partition].partition.catch_up(ends)
            sending = [
                await self._producer.send(
                    self.prefix + m.topic, m.value, m.key, m.partition, m.timestamp, list(m.headers)
                )
                for m in piece
            ]
            for m, sent in zip(piece, await asyncio.gather(*sending), strict=True):
                if sent.offset != m.offset:
                    raise LogError(f"{self.prefix}{m.topic}[{m.partition}]: somebody else writes here too")
            self._sent.setdefault(partition, {}).update(ends)
            await self.applied(partition)

    async def applied(self, partition: int | None = None) -> None:
        """Wait until everything sent (to one partition) was applied, and what came of it was committed."""
        of = list(self._sent) if partition is None else [partition]
        await self._until(lambda: all(map(self._has_applied, of)), "what was sent was not applied")

    def _has_applied(self, partition: int) -> bool:
        one = self.worker.runtime.owned.get(partition)
        sent = self._sent.get(partition, {})
        return one is not None and all(one.partition.committed[topic] >= end for topic, end in sent.items())

    async def outputs(self, partition: int = 0, topics: Iterable[str] = OUTPUT_TOPICS) -> list[Message]:
        """What was committed on these topics since they were last read; of one topic in order.

        A commit is acknowledged before each topic shows it, so the high watermarks are waited for.
        """
        places = {TopicPartition(self.prefix + topic, partition): topic for topic in topics}
        ends = await self._side.end_offsets(list(places))
        async with self._reading:
            return await self._up_to({p: end for p, end in ends.items() if end > self._read.get(p, 0)}, places)

    async def _up_to(self, ends: dict[TopicPartition, int], topics: dict[TopicPartition, str]) -> list[Message]:
        behind = set(ends)
        self._reader.assign(list(behind))
        for place in behind:
            self._reader.seek(place, self._read.get(place, 0))
        out: list[Message] = []
        deadline = time.monotonic() + PATIENCE
        while behind:
            if time.monotonic() > deadline:
                raise LogError(f"what was committed was not read within {PATIENCE:.0f} s")
            for place, records in (await self._reader.getmany(*behind, timeout_ms=20)).items():
                out += [
                    Message(topics[place], r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
                    for r in records
                ]
            for place in list(behind):
                self._read[place] = await self._reader.position(place)
                if self._read[place] >= ends[place]:
                    behind.remove(place)
        return out

    async def _start(self) -> None:
        options = WorkerOptions(names=Names(self.prefix, self.prefix), test_time=True)
        self.worker = Worker(self._settings, self._codec, options, self._restore)
        await self.worker.__aenter__()
        await self._until(lambda: len(self.worker.committed()) == self.partitions, "the worker has not started")

    async def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        """Look again whenever the worker has news. Raises what ended it, and why a partition has halted."""
        runtime = self.worker.runtime
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if runtime.failed.done():
                await self.worker.failed()
            for why in (*(one.partition.halted for one in runtime.owned.values()), *runtime.unusable.values()):
                if why is not None:
                    raise LogError(why)
            left = deadline - time.monotonic()
            if left <= 0:
                raise LogError(f"{otherwise} within {PATIENCE:.0f} s")
            try:
                await asyncio.wait_for(runtime.wait_changed(), min(left, 0.5))
            except TimeoutError:
                continue


def topic_names(prefix: str) -> list[str]:
    """Every topic of the contract, and the state topic, under a prefix."""
    return [prefix + name for name in (*INPUT_TOPICS, *OUTPUT_TOPICS, STATE_TOPIC)]


async def make_topics(
    settings: KafkaSettings, prefix: str, partitions: int, *, create_time: bool = False, replication: int = 1
) -> None:
    """Make a set of topics under a prefix, and wait until they are there. Raises `LogError`."""
    names = topic_names(prefix)
    new = [
        NewTopic(
            name,
            partitions,
            replication,
            topic_configs=topic_configs(name.removeprefix(prefix), replication=replication, create_time=create_time),
        )
        for name in names
    ]

    async def make(admin: AIOKafkaAdminClient) -> None:
        answer = await admin.create_topics(new, timeout_ms=int(PATIENCE * 1000))
        wrong = [message for _, code, message in answer.topic_errors if code not in (0, TopicAlreadyExistsError.errno)]
        if wrong:
            raise LogError(f"{settings.bootstrap_servers}: topics were not created: {wrong[0]}")
        deadline = time.monotonic() + PATIENCE
        while not {t["topic"] for t in await admin.describe_topics() if not t["error_code"]}.issuperset(names):
            if time.monotonic() > deadline:
                raise LogError(f"{settings.bootstrap_servers}: topics were created and are not there")
            await asyncio.sleep(0.02)

    await _with_admin(settings, make)


async def _with_admin(settings: KafkaSettings, work: Callable[[AIOKafkaAdminClient], Awaitable[object]]) -> None:
    admin = AIOKafkaAdminClient(**settings.client_options())
    try:
        await admin.start()
        await work(admin)
    except KafkaError as error:
        raise LogError(f"{settings.bootstrap_servers}: {type(error).__name__}") from error
    finally:
        await admin.close()
