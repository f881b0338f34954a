"""Decides how recorded topics are read from a broker by somebody who is no part of a loop: committed records only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from turngate.schemas.catalog import APPLIED
from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.reading import places_of
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError, Message

#: Bytes that a partition of a topic holds ready at most; a larger record still comes, alone.
_FETCH_BYTES = 1 << 20
#: Milliseconds for which one question waits for records.
_WAIT_MS = 200
#: Seconds without any progress after which reading has failed.
PATIENCE = 30.0

T = TypeVar("T")


class BrokerRecords:
    """The contract's topics on a broker (`streams.recorded.Records`), for `with`. Not for use inside an event loop.

    `prefix` stands before the topics' names. Raises `LogError`, here and in every method, where they cannot be read.
    """

    def __init__(self, settings: KafkaSettings, prefix: str = "") -> None:
        self._settings = settings
        self._prefix = prefix
        self._runner = asyncio.Runner()
        self._scanning: list[AIOKafkaConsumer] = []
        self._asking: AIOKafkaConsumer | None = None
        self._count = len(self._call(APPLIED, lambda: places_of(settings, prefix + APPLIED)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the broker."""
        try:
            for consumer in [*self._scanning, *([] if self._asking is None else [self._asking])]:
                self._runner.run(consumer.stop())
        finally:
            self._runner.close()

    @property
    def partitions(self) -> int:
        """How many partitions each topic has."""
        return self._count

    def first(self, topic: str, partition: int) -> int:
        """The offset before which nothing is there any more."""
        place = TopicPartition(self._prefix + topic, partition)
        found: int = self._call(topic, lambda: self._asked(lambda c: c.beginning_offsets([place])))[place]
        return found

    def end(self, topic: str, partition: int) -> int:
        """The offset before which everything is committed or aborted now."""
        place = TopicPartition(self._prefix + topic, partition)
        found: int = self._call(topic, lambda: self._asked(lambda c: c.end_offsets([place])))[place]
        return found

    def scan(self, topic: str, partition: int = 0, start: int = 0, end: int | None = None) -> Iterator[Message]:
        """The committed records from `start` up to, not including, `end`."""
        end = self.end(topic, partition) if end is None else end
        if start >= end:
            return
        place = TopicPartition(self._prefix + topic, partition)
        consumer = self._call(topic, lambda: self._started(place, start))
        self._scanning.append(consumer)
        at, deadline = start, time.monotonic() + PATIENCE
        while at < end:
            before = at
            fetched, at = self._call(topic, lambda: _next(consumer, place))
            if at == before and time.monotonic() > deadline:
                raise LogError(
                    f"{place.topic}[{partition}]: nothing was read for {PATIENCE:.0f} s; is the broker well?"
                )
            for r in fetched:
                if r.offset < end:
                    yield Message(topic, partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
            deadline = deadline if at == before else time.monotonic() + PATIENCE
        self._scanning.remove(consumer)
        self._call(topic, consumer.stop)

    async def _started(self, place: TopicPartition, start: int) -> AIOKafkaConsumer:
        consumer = plain_consumer(self._settings, committed=True, fetch_max_bytes=_FETCH_BYTES)
        try:
            await consumer.start()
            consumer.assign([place])
            consumer.seek(place, start)
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    async def _asked(self, question: Callable[[AIOKafkaConsumer], Awaitable[T]]) -> T:
        if self._asking is None:
            self._asking = plain_consumer(self._settings, committed=True)
            await self._asking.start()
        return await question(self._asking)

    def _call(self, topic: str, call: Callable[[], Awaitable[T]]) -> T:
        async def called() -> T:
            return await call()

        try:
            return self._runner.run(called())
        except KafkaError as error:
            raise LogError(
                f"{self._settings.bootstrap_servers}: {self._prefix}{topic} cannot be read: {error}"
            ) from error


async def _next(consumer: AIOKafkaConsumer, place: TopicPartition) -> tuple[list[Any], int]:
    """The next records, and the position after them: a broker's control records have offsets of their own."""
    fetched = (await consumer.getmany(place, timeout_ms=_WAIT_MS)).get(place, [])
    return fetched, await consumer.position(place)
