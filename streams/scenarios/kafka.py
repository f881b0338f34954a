"""Decides how scenarios run on a broker: each in a partition of its own, under the worker, with simulated time.

Topics have a prefix of their own and go away at the end. Several scenarios share a set of topics and a worker, one
after the other, until its partitions are used up.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError

from turngate.processors.engine import Engine
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.streams.kafka.clients import plain_consumer, plain_producer
from turngate.streams.kafka.owner import Names
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC, allow_create_time, topic_configs
from turngate.streams.log import LogError, Message
from turngate.streams.scenarios.backend import Incoming, Session

T = TypeVar("T")

#: Scenarios that share one set of topics. More partitions start slower than they save.
_PARTITIONS = 16
#: Seconds in which a record must have been applied, and a worker must have loaded its partitions.
_PATIENCE = 60.0
_PAUSE = 0.005


class KafkaBackend:
    """A broker on this machine; a context manager.

    Raises `LogError` unless time may be simulated (`TURNGATE_TEST_TIME=1`, loopback), or where it does not answer.
    """

    def __init__(self, settings: KafkaSettings, partitions: int = _PARTITIONS) -> None:
        allow_create_time(settings)
        self._settings = settings
        self._partitions = partitions
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scenarios-on-kafka", daemon=True)
        self._topics: _Topics | None = None
        self._free: list[int] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._put_away()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The next partition that has seen nothing."""
        if not self._free:
            self._put_away()
            self._topics = self._run(_made(self._settings, self._partitions))
            self._run(self._topics.start())
            self._free = list(range(self._partitions))
        assert self._topics is not None
        yield _KafkaSession(self._topics, self._free.pop(0), self._run)

    def _put_away(self) -> None:
        topics, self._topics = self._topics, None
        if topics is not None:
            self._run(topics.stop())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except KafkaError as error:
            raise LogError(f"{self._settings.bootstrap_servers}: {error}") from error


async def _made(settings: KafkaSettings, partitions: int) -> _Topics:
    return _Topics(settings, partitions)  # inside the loop, to which Kafka's clients bind when they are made


class _KafkaSession:
    """One partition, and how far each of its output topics has been read."""

    def __init__(
        self, topics: _Topics, partition: int, run: Callable[[Coroutine[Any, Any, list[Message]]], list[Message]]
    ) -> None:
        self.partition = partition
        self._topics = topics
        self._run = run
        self._read: dict[str, int] = dict.fromkeys(OUTPUT_TOPICS, 0)

    def send(self, records: Sequence[Incoming]) -> list[Message]:
        """Send the records one by one, each waited for until the worker has committed it; what came of them."""
        return self._run(self._topics.send(self.partition, records, self._read))


class _Topics:
    """A set of the contract's topics under a prefix, and a worker on them. All of it in one event loop."""

    def __init__(self, settings: KafkaSettings, partitions: int) -> None:
        self._settings = settings
        self._partitions = partitions
        self._prefix = f"scenarios-{uuid.uuid4().hex[:12]}-"
        self._names = [self._prefix + name for name in (*INPUT_TOPICS, *OUTPUT_TOPICS, STATE_TOPIC)]
        self._ends = plain_consumer(settings, committed=False)
        self._reader = AIOKafkaConsumer(
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            fetch_max_wait_ms=20,
            **settings.client_options(),
        )
        self._producer = plain_producer(settings)
        options = WorkerOptions(names=Names(self._prefix, self._prefix), test_time=True)
        self._worker = Worker(settings, Codec(), options, Engine.restore)
        self._started = False

    async def start(self) -> None:
        await self._make()
        for client in (self._ends, self._reader, self._producer):
            await client.start()
        await self._worker.__aenter__()
        self._started = True
        await self._until(lambda: len(self._worker.committed()) == self._partitions, "the worker has not started")

    async def stop(self) -> None:
        if self._started:
            await self._worker.__aexit__(None, None, None)
        for client in (self._ends, self._reader, self._producer):
            await client.stop()
        admin = AIOKafkaAdminClient(**self._settings.client_options())
        await admin.start()
        try:
            await admin.delete_topics(self._names)
        finally:
            await admin.close()

    async def send(self, partition: int, records: Sequence[Incoming], read: dict[str, int]) -> list[Message]:
        for r in records:
            sent = await self._producer.send_and_wait(
                self._prefix + r.topic, r.value, r.key, partition=partition, timestamp_ms=r.timestamp
            )
            at = sent.offset
            await self._until(
                lambda topic=r.topic, at=at: self._worker.committed().get(partition, {}).get(topic, 0) > at,  # type: ignore[misc]
                f"{r.topic}[{partition}]: the record at {at} was not applied",
            )
        return await self._outputs(partition, read)

    async def _outputs(self, partition: int, read: dict[str, int]) -> list[Message]:
        """What was committed on the output topics since they were last read.

        A commit is acknowledged before each topic shows it, so everything that has been written is waited for.
        """
        places = [TopicPartition(self._prefix + name, partition) for name in OUTPUT_TOPICS]
        ends = await self._ends.end_offsets(places)
        places = [p for p in places if ends[p] > read[p.topic.removeprefix(self._prefix)]]
        out: list[Message] = []
        self._reader.assign(places)
        for place in places:
            self._reader.seek(place, read[place.topic.removeprefix(self._prefix)])
        deadline = time.monotonic() + _PATIENCE
        behind = set(places)
        while behind:
            if time.monotonic() > deadline:
                raise LogError(f"partition {partition}: what was committed cannot be read within {_PATIENCE:.0f} s")
            for place, records in (await self._reader.getmany(*behind, timeout_ms=20)).items():
                name = place.topic.removeprefix(self._prefix)
                out += [Message(name, r.partition, r.offset, r.timestamp, r.key, r.value) for r in records]
            behind = {p for p in behind if await self._reader.position(p) < ends[p]}
        for place in places:
            read[place.topic.removeprefix(self._prefix)] = await self._reader.position(place)
        return out

    async def _make(self) -> None:
        admin = AIOKafkaAdminClient(**self._settings.client_options())
        await admin.start()
        try:
            new = [
                NewTopic(
                    name,
                    self._partitions,
                    1,
                    topic_configs=topic_configs(name.removeprefix(self._prefix), replication=1, create_time=True),
                )
                for name in self._names
            ]
            answer = await admin.create_topics(new, timeout_ms=int(_PATIENCE * 1000))
            wrong = [m for _, code, m in answer.topic_errors if code not in (0, TopicAlreadyExistsError.errno)]
            if wrong:
                raise LogError(f"{self._settings.bootstrap_servers}: topics for scenarios were not created: {wrong[0]}")
            deadline = time.monotonic() + _PATIENCE
            while not await self._described(admin):
                if time.monotonic() > deadline:
                    raise LogError("the topics for scenarios were created and are not there")
                await asyncio.sleep(_PAUSE)
        finally:
            await admin.close()

    async def _described(self, admin: AIOKafkaAdminClient) -> bool:
        there = {t["topic"] for t in await admin.describe_topics() if not t["error_code"]}
        return there.issuperset(self._names)

    async def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            if self._worker.runtime.failed.done():
                await self._worker.failed()
            halted = [p.partition.halted for p in self._worker.runtime.owned.values() if p.partition.halted is not None]
            if halted:
                raise LogError(halted[0])
            if time.monotonic() > deadline:
                raise LogError(f"{otherwise} within {_PATIENCE:.0f} s")
            await asyncio.sleep(_PAUSE)
