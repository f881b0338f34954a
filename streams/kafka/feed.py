"""Decides how a program beside the workers appends to a broker's input topics, and follows its topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self

from aiokafka.errors import KafkaConnectionError, KafkaError

from turngate.schemas.catalog import topic_of
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record
from turngate.streams.kafka.clients import forget, plain_producer
from turngate.streams.kafka.reading import Start, follow, unreachable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError


class KafkaFeed:
    """A broker (`streams.feed.Feed`), for `async with`. `prefix`: of every topic's name."""

    def __init__(self, settings: KafkaSettings, codec: Codec, prefix: str = "") -> None:
        self._settings = settings
        self._codec = codec
        self._prefix = prefix
        self._producer = plain_producer(settings, enable_idempotence=True)

    async def __aenter__(self) -> Self:
        try:
            await self._producer.start()
        except KafkaError:
            await self._producer.stop()
            raise LogError(unreachable(self._settings)) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._producer.stop()

    async def append(self, records: Sequence[Record]) -> None:
        """Send records keyed by tenant, and wait until the broker has acknowledged each."""
        waiting: list[asyncio.Future[object]] = []
        try:
            for record in records:
                topic = self._prefix + topic_of(type(record).__name__, {"by": None})
                value = self._codec.encode(record)
                waiting.append(await self._producer.send(topic, value, key=record.tenant.encode()))
            await asyncio.gather(*waiting)
        except KafkaConnectionError:
            raise LogError(unreachable(self._settings)) from None
        except KafkaError as error:
            raise LogError(f"{self._settings.bootstrap_servers}: {error}") from error
        finally:
            forget(waiting)

    async def follow(self, topic: str, since: int, *, forever: bool = True) -> AsyncIterator[Record]:
        """The committed records of a topic."""
        async with aclosing(self.stamped(topic, since, forever=forever)) as stamped:
            async for _, record in stamped:
                yield record

    async def stamped(self, topic: str, since: int, *, forever: bool = True) -> AsyncGenerator[tuple[int, Record]]:
        """The same, each with its timestamp."""
        start = Start(time=since)
        async for message in follow(self._settings, self._prefix + topic, start, forever=forever):
            try:
                yield message.timestamp, self._codec.decode(message.value)
            except Undecodable:
                continue
