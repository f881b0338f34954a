"""Decides how the store is filled beside a broker: who reads which partitions, and from where.

The positions are the store's own, in the transaction of the rows; those of the consumer group are written after it, for
whoever watches a group's lag, and never read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaConnectionError, KafkaError
from aiokafka.structs import ConsumerRecord

from turngate.schemas.authority import STORED, Role
from turngate.sinks.store.batch import Batch, Moved, Place
from turngate.sinks.store.errors import StoreUnavailable
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.pruning import prune
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.reading import places_of, unreachable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import OUTPUT_BYTES
from turngate.streams.log import LogError, Message

#: Records that are written at once.
RECORDS = 5_000
#: Seconds between two commits of the group's offsets, between two looks at what has ended, and until a database that
#: did not answer is asked again.
COMMIT_EVERY, PRUNE_EVERY, RETRY = 5.0, 3_600.0, 1.0
_WAIT_MS = 200

log = logging.getLogger(__name__)


class StoreService:
    """Takes what workers decide into a store. Any number of these share the partitions."""

    def __init__(
        self,
        settings: KafkaSettings,
        store: PostgresStore,
        clock: Callable[[], int],
        names: Names | None = None,
        *,
        session: float = 10.0,
    ) -> None:
        """Make one; `session`: seconds after which the partitions of a process that says nothing go to others."""
        self._settings = settings
        self._store = store
        self._clock = clock
        self._names = Names() if names is None else names
        self._session_ms = int(session * 1000)
        self._at: dict[Place, int] = {}
        self._pruned = self._committed = -PRUNE_EVERY
        #: Why this cannot go on, found where a rebalance must not be broken off.
        self._failed: LogError | None = None
        #: Set when partitions were assigned for the first time.
        self.ready = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Fill the store until `stop` is set.

        Raises `LogError` where the broker is no use or lacks a topic, or a worker's record cannot be read. A database
        that does not answer is waited for.
        """
        topics = [self._names.prefix + topic for topic in STORED]
        await asyncio.gather(*(places_of(self._settings, topic) for topic in topics))
        consumer = AIOKafkaConsumer(
            group_id=self._names.group_id(Role.STORE),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=self._session_ms,
            heartbeat_interval_ms=self._session_ms // 4,
            max_partition_fetch_bytes=OUTPUT_BYTES,
            **self._settings.client_options(),
        )
        try:
            consumer.subscribe(topics, listener=_Listener(self, consumer))
            await consumer.start()
            while not stop.is_set():
                if self._failed is not None:
                    raise self._failed
                await self._step(consumer)
        except KafkaConnectionError:
            raise LogError(unreachable(self._settings)) from None
        except KafkaError as error:
            raise LogError(f"{self._settings.bootstrap_servers}: {error}") from error
        finally:
            await consumer.stop()

    async def _step(self, consumer: AIOKafkaConsumer) -> None:
        read = await consumer.getmany(timeout_ms=_WAIT_MS, max_records=RECORDS)
        try:
            await self._take(consumer, read)
            await self._now_and_then(consumer)
        except StoreUnavailable as error:
            log.error("%s; asked again in %g s", error, RETRY)
            await asyncio.sleep(RETRY)
            await self._go_to(consumer, self._at)  # what was read is read again

    async def _take(self, consumer: AIOKafkaConsumer, read: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        batch = self._store.batch()
        await self._count_gone(consumer, read)
        for where in consumer.assignment():
            place, end = self.place(where), await _position(consumer, where)
            start = self._at.get(place)
            if start is None or end is None or end <= start:
                continue  # not this process' own yet, or any more, or nothing has come
            batch.begin(place, start)
            for r in read.get(where, ()):
                if r.offset >= start:
                    batch.add(Message(*place, r.offset, r.timestamp, r.key, r.value))
                if batch.full:
                    if not await self._written(consumer, batch):
                        return
                    batch = self._store.batch()
                    batch.begin(place, r.offset + 1)
            batch.reach(place, end)
        await self._written(consumer, batch)

    async def _written(self, consumer: AIOKafkaConsumer, batch: Batch) -> bool:
        """Whether it was; where the store is elsewhere, all that has not been written is read again from there."""
        try:
            if batch.spans:
                await self._store.write(batch)
        except Moved as elsewhere:
            await self._go_to(consumer, self._at | elsewhere.at)
            return False
        self._at |= {place: span.end for place, span in batch.spans.items() if place in self._at}
        return True

    async def _count_gone(self, consumer: AIOKafkaConsumer, read: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        """What retention took while this process was behind: the consumer has gone on at what is there."""
        ahead = [w for w, rs in read.items() if rs and rs[0].offset > self._at.get(self.place(w), rs[0].offset)]
        if ahead:
            firsts = {self.place(w): first for w, first in (await consumer.beginning_offsets(ahead)).items()}
            gone = {place: first for place, first in firsts.items() if first > self._at.get(place, first)}
            if gone:
                log.error("%s: records were gone before they were read", ", ".join(f"{t}[{p}]" for t, p in gone))
                self._at |= await self._store.begin(gone)

    async def _go_to(self, consumer: AIOKafkaConsumer, at: dict[Place, int]) -> None:
        """Read on from there, in what is still this process' own."""
        for where in consumer.assignment():
            place = self.place(where)
            if place in at and place in self._at:
                self._at[place] = at[place]
                consumer.seek(where, at[place])

    async def begin_at(self, consumer: AIOKafkaConsumer, assigned: Iterable[TopicPartition]) -> None:
        """Where the store is, in partitions that are this process' own from now on."""
        places = list(assigned)
        firsts, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        while True:
            try:
                at = await self._store.begin({self.place(where): first for where, first in firsts.items()})
                break
            except StoreUnavailable as error:
                log.error("%s; asked again in %g s", error, RETRY)
                await asyncio.sleep(RETRY)
        for where, end in ends.items():
            if at[self.place(where)] > end:
                self._failed = LogError(
                    f"{where.topic}[{where.partition}] ends at {end}, and the store has read it up to "
                    f"{at[self.place(where)]}: it is another cluster's store; name another database"
                )
                return
        self._at |= at
        await self._go_to(consumer, at)
        if not self.ready.is_set():
            log.info("filling the store")
        self.ready.set()

    def lose(self, revoked: Iterable[TopicPartition]) -> None:
        """These partitions are somebody else's from now on."""
        for where in revoked:
            self._at.pop(self.place(where), None)

    def place(self, where: TopicPartition) -> Place:
        """A partition by the topic's name in the contract."""
        return where.topic.removeprefix(self._names.prefix), where.partition

    async def _now_and_then(self, consumer: AIOKafkaConsumer) -> None:
        now = time.monotonic()
        if now - self._committed >= COMMIT_EVERY:
            self._committed = now
            at = {w: self._at[self.place(w)] for w in consumer.assignment() if self.place(w) in self._at}
            if at:
                # Of partitions that were lost meanwhile, the new owner commits.
                with contextlib.suppress(CommitFailedError, IllegalStateError):
                    await consumer.commit(at)
        if now - self._pruned >= PRUNE_EVERY:
            self._pruned = now
            await prune(self._store, self._clock())


async def _position(consumer: AIOKafkaConsumer, where: TopicPartition) -> int | None:
    """The offset after what was read, which counts the broker's own control records; None of what was lost."""
    try:
        at: int = await consumer.position(where)
    except IllegalStateError:
        return None
    return at


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    def __init__(self, service: StoreService, consumer: AIOKafkaConsumer) -> None:
        self._service = service
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._service.lose(revoked)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        await self._service.begin_at(self._consumer, assigned)
