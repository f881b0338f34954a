"""Decides how a partition is taken over: former owner fenced, state read whole, input still there (R-RUN-4).

The order is what makes it exact. After `InitProducerId` nobody else can add to the state topic, so its high watermark
asked then is the end of the state; reading it earlier could miss the former owner's last commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import MessageSizeTooLargeError

from turngate.schemas.codec import Codec
from turngate.streams.fold import Fold
from turngate.streams.kafka.checkpoint import Change, CheckpointError, Gathered, Layout
from turngate.streams.kafka.clients import LOST, Entry, TooLarge, forget, send_all, transactional_producer
from turngate.streams.kafka.loading import load
from turngate.streams.kafka.memory import Memory
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.partition import Folds, Held, Restore
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.kafka.watermarks import Watermarks
from turngate.streams.log import Commit

#: Bytes of state entries between two looks at how much memory there still is, while a state is built, and what an entry
#: counts beside its own.
LOOK_EVERY, BESIDE = 4_000_000, 4_000
#: Seconds that a producer which is no longer needed may take to end.
STOP_PATIENCE = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Engines:
    """How an engine is made from a checkpoint, and how its records become bytes."""

    restore: Restore
    codec: Codec


class Writer:
    """Writes one partition's commits, each in one transaction of that partition's producer."""

    def __init__(self, producer: AIOKafkaProducer, partition: int, prefix: str) -> None:
        self.layout = Layout()
        self._producer = producer
        self._partition = partition
        self._prefix = prefix

    async def write(self, commit: Commit) -> None:
        """Outputs, changed state and positions, all together. Raises one of `clients.LOST` if it is not certain."""
        by_topic: dict[str, list[Entry]] = {}
        for out in commit.outputs:
            by_topic.setdefault(out.topic, []).append((out.key, out.value, out.headers))
        by_topic[STATE_TOPIC] = self.layout.records(commit)
        await self._transaction(by_topic)

    async def still_owns(self) -> bool:
        """Whether nobody has taken the partition since: a transaction that succeeds proves it.

        A generation of the group proves nothing, since a group without committed offsets may be forgotten.
        """
        try:
            await self._transaction({STATE_TOPIC: [(b"t", None, ())]})
        except LOST:
            return False
        return True

    async def stop(self) -> None:
        """End the producer, whatever state it is in."""
        with contextlib.suppress(*LOST, TimeoutError):
            await asyncio.wait_for(self._producer.stop(), STOP_PATIENCE)

    async def _transaction(self, by_topic: dict[str, list[Entry]]) -> None:
        await self._producer.begin_transaction()
        futures: list[asyncio.Future[object]] = []
        try:
            for topic, records in by_topic.items():
                futures += await send_all(self._producer, self._prefix + topic, self._partition, records)
            # Every delivery before the commit: aiokafka commits a transaction without the batches that were refused.
            await asyncio.gather(*futures)
        except MessageSizeTooLargeError:
            forget(futures)
            await self._producer.abort_transaction()
            raise self._too_large(by_topic) from None
        except BaseException:
            forget(futures)
            raise
        await self._producer.commit_transaction()

    def _too_large(self, by_topic: dict[str, list[Entry]]) -> TooLarge:
        size, topic = max((len(value or b""), topic) for topic, records in by_topic.items() for _, value, _ in records)
        return TooLarge(
            f"{self._prefix}{topic}[{self._partition}]: the broker does not take a record of {size} bytes;"
            " raise max.message.bytes of the topic, then restart the worker"
        )


class Owner:
    """Takes partitions over for one worker."""

    def __init__(
        self, settings: KafkaSettings, names: Names, watermarks: Watermarks, engines: Engines, memory: Memory
    ) -> None:
        self.names = names
        self.watermarks = watermarks
        self._settings = settings
        self._engines = engines
        self._memory = memory

    async def take(self, number: int) -> Held:
        """Own a partition, with the state that its last commit left.

        Raises `CheckpointUnread` or one of `clients.LOST` where it may be tried again, `CheckpointError` where the
        checkpoint is not whole or its input is gone, `StateTooLarge`, or the engine's `StateVersionError`.
        """
        began = time.monotonic()
        producer = transactional_producer(self._settings, self.names.transactional_id(number))
        writer = Writer(producer, number, self.names.prefix)
        try:
            await producer.start()  # fences the former owner, and returns when its transaction has ended
            end = (await self.watermarks.ends(number, [STATE_TOPIC]))[STATE_TOPIC]
            place = TopicPartition(self.names.prefix + STATE_TOPIC, number)
            saved = Gathered(number, lambda version: self._engines.restore((), version))
            engine = await load(self._settings, place, end, saved, partial(self._restored, number))
            writer.layout = Layout(saved.parts)
            positions = await self._positions(number, saved.positions)
        except BaseException:
            await writer.stop()
            raise
        log.info("partition %d: state loaded from %d records in %.2f s", number, saved.count, time.monotonic() - began)
        return Held(Fold(number, engine, self._engines.codec, positions), engine, writer)

    def _restored(self, number: int, changes: Iterator[Change]) -> Folds:
        try:
            return self._engines.restore(self._watched(number, changes), None)
        except ValueError:  # its message may quote the state
            raise CheckpointError(f"partition {number}: an entry of the state is none that this engine knows") from None

    def _watched(self, number: int, changes: Iterator[Change]) -> Iterator[Change]:
        """The entries, as long as there is memory for them."""
        since = LOOK_EVERY
        for key, value in changes:
            if since >= LOOK_EVERY:
                self._memory.check(f"the state of partition {number}")
                since = 0
            since += len(key) + len(value or b"") + BESIDE
            yield key, value

    async def _positions(self, number: int, saved: dict[str, int]) -> dict[str, int]:
        """Where each input topic goes on: at the position of the checkpoint, or at the first record there is."""
        begins, ends = await self.watermarks.begins(number), await self.watermarks.ends(number)
        for topic, at in saved.items():
            if topic in begins and not begins[topic] <= at <= ends[topic]:
                raise CheckpointError(
                    f"{self.names.prefix}{topic}[{number}]: its records from {at} on are needed, and it holds"
                    f" {begins[topic]} to {ends[topic]}: retention has passed them, or the topic was made anew."
                    " Start again with a new application name and empty topics"
                )
        return begins | {topic: at for topic, at in saved.items() if topic in begins}
