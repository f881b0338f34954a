"""Decides how a checkpoint is read while the engine is made of it, so that it is never held as a whole (R-RUN-4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition

from turngate.streams.kafka.checkpoint import Change, CheckpointUnread, Gathered
from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.settings import KafkaSettings

#: Bytes of entries that are gathered before the engine takes them in: of those among them that changed often, once.
SLICE_BYTES = 4_000_000
#: Seconds without any progress after which reading a checkpoint has failed.
PATIENCE = 30.0

Made = TypeVar("Made")


async def load(
    settings: KafkaSettings,
    place: TopicPartition,
    end: int | None,
    gathered: Gathered,
    make: Callable[[Iterator[Change]], Made],
) -> Made:
    """What `make` makes of a partition of the state topic, in a thread of its own.

    It is read up to its high watermark `end`, asked once its former owner was fenced. None is for somebody who only
    looks while the owner goes on: up to its last committed transaction, and then up to the last one since, lest an
    entry be missed that was compacted away meanwhile because it had changed. Raises what `make` raises,
    `CheckpointUnread` where nothing comes for `PATIENCE` seconds, and `CheckpointError` where it is not whole.
    """
    consumer = plain_consumer(settings, committed=True)
    await consumer.start()
    try:
        slices = _Slices(consumer, place, end, gathered)
        await slices.begin()
        return await asyncio.to_thread(make, slices.changes(asyncio.get_running_loop()))
    finally:
        await consumer.stop()  # where this was cancelled, it ends the thread at its next slice


class _Slices:
    """A partition of the state topic, read by position and not by count: control records and compaction leave gaps."""

    def __init__(self, consumer: AIOKafkaConsumer, place: TopicPartition, end: int | None, gathered: Gathered) -> None:
        self._consumer = consumer
        self._place = place
        self._at, self._end = 0, end or 0
        self._looks = end is None
        self._gathered = gathered

    async def begin(self) -> None:
        """Go to the first record that there is."""
        self._consumer.assign([self._place])
        self._at = (await self._consumer.beginning_offsets([self._place]))[self._place]
        self._consumer.seek(self._place, self._at)
        if self._looks:
            self._end = await self._committed()

    def changes(self, loop: asyncio.AbstractEventLoop) -> Iterator[Change]:
        """Every entry in the order of the topic, the last of each being the one that stands. Not called on the loop."""
        yield from self._up_to_end(loop)
        if self._looks:
            self._end = asyncio.run_coroutine_threadsafe(self._committed(), loop).result()
            yield from self._up_to_end(loop)
        yield from self._gathered.rest()

    def _up_to_end(self, loop: asyncio.AbstractEventLoop) -> Iterator[Change]:
        while self._at < self._end:
            yield from asyncio.run_coroutine_threadsafe(self._slice(), loop).result().items()

    async def _committed(self) -> int:
        """The end of the last committed transaction: a `read_committed` consumer is told no other end."""
        end: int = (await self._consumer.end_offsets([self._place]))[self._place]
        return end

    async def _slice(self) -> dict[bytes, bytes | None]:
        changed: dict[bytes, bytes | None] = {}
        size, place = 0, self._place
        deadline = time.monotonic() + PATIENCE
        while self._at < self._end and size < SLICE_BYTES:
            for record in (await self._consumer.getmany(place, timeout_ms=100)).get(place, ()):
                change = self._gathered.take(record.key, record.value, tuple(record.headers))
                if change is not None:
                    changed[change[0]] = change[1]
                    size += len(change[0]) + len(change[1] or b"")
            before, self._at = self._at, await self._consumer.position(place)
            if self._at > before:
                deadline = time.monotonic() + PATIENCE
            elif time.monotonic() > deadline:
                raise CheckpointUnread(
                    f"{place.topic}[{place.partition}]: nothing was read for {PATIENCE:.0f} s at {self._at} of"
                    f" {self._end}; is the broker well?"
                )
        return changed
