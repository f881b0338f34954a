"""Decides how the assessor runs beside a broker: which writes it is asked about, how many at once, and what it commits.

At least once: a position is committed when the answers before it were acknowledged, and the engine takes the first
answer to a write (R-SEN-1). No text is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaConnectionError, KafkaError

from turngate.connectors.assessor.assessment import UNCERTAIN, Assess, Wanted
from turngate.schemas.authority import Role
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import MemoryWrite
from turngate.streams.clock import now_ms
from turngate.streams.kafka.clients import plain_producer
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.reading import Start, follow, unreachable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError
from turngate.streams.progress import Progress

#: Where memory writes lie; their assessments go to the first.
WRITES = ("memory-writes", "operator-commands")
POLICIES = "policies"
#: Writes that are assessed at once; further ones wait on the topic.
AT_ONCE = 64
#: Milliseconds of the engine's patience that are kept for publishing the answer.
MARGIN_MS = 250
#: Milliseconds by which this clock and a broker's may differ before a write counts as one whose time is over.
SKEW_MS = 30_000
#: Seconds between two commits of positions.
COMMIT_EVERY = 1.0
_WAIT_MS = 200

log = logging.getLogger(__name__)


class Assessor:
    """Reads writes and policies, and publishes what `assess` says of each write that the engine waits for."""

    def __init__(self, settings: KafkaSettings, codec: Codec, assess: Assess, names: Names | None = None) -> None:
        self._settings = settings
        self._codec = codec
        self._assess = assess
        self._names = Names() if names is None else names
        self._wanted = Wanted()
        self._progress: Progress[TopicPartition] = Progress()
        self._tasks: set[asyncio.Task[None]] = set()
        self._assigned = False
        #: Set when partitions were assigned for the first time: from now on every write is seen, whatever is restarted.
        self.ready = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Assess until `stop` is set, then finish what is under way.

        Raises `LogError` where the broker or a topic cannot be used.
        """
        await self._learn(forever=False)
        try:
            async with self._clients() as (consumer, producer):
                await self._serve(consumer, producer, stop)
        except KafkaConnectionError:
            raise LogError(unreachable(self._settings)) from None
        except KafkaError as error:
            raise LogError(f"{self._settings.bootstrap_servers}: {error}") from error

    @asynccontextmanager
    async def _clients(self) -> AsyncIterator[tuple[AIOKafkaConsumer, AIOKafkaProducer]]:
        consumer = AIOKafkaConsumer(
            group_id=self._names.group_id(Role.ASSESSOR),
            enable_auto_commit=False,
            auto_offset_reset="latest",  # what was written before anybody assessed has been decided without
            isolation_level="read_committed",
            **self._settings.client_options(),
        )
        producer = plain_producer(self._settings, enable_idempotence=True)
        try:
            consumer.subscribe([self._names.prefix + topic for topic in WRITES], listener=_Listener(self))
            await producer.start()
            await consumer.start()
            yield consumer, producer
        finally:
            await consumer.stop()
            await producer.stop()

    async def _serve(self, consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, stop: asyncio.Event) -> None:
        learning = asyncio.create_task(self._learn(forever=True))
        committed = time.monotonic()
        try:
            while not stop.is_set():
                if learning.done():
                    learning.result()
                    raise LogError(f"{POLICIES}: reading it has ended")
                for place, records in (await consumer.getmany(timeout_ms=_WAIT_MS, max_records=AT_ONCE)).items():
                    for record in records:
                        await self._begin(producer, place, record)
                await self._failures()
                if self._assigned:
                    self._assigned = False
                    await self._begin_here(consumer)
                if time.monotonic() - committed >= COMMIT_EVERY:
                    committed = time.monotonic()
                    await self._commit(consumer)
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self._failures()
            await self._commit(consumer)
        finally:
            for task in (learning, *self._tasks):
                task.cancel()
            await asyncio.gather(learning, *self._tasks, return_exceptions=True)

    async def _begin_here(self, consumer: AIOKafkaConsumer) -> None:
        """Commit where partitions begin that nobody has committed in, or else a restart would begin at their end."""
        for place in consumer.assignment():
            if await consumer.committed(place) is None:
                with contextlib.suppress(CommitFailedError, IllegalStateError):
                    await consumer.commit({place: await consumer.position(place)})
        if not self.ready.is_set():
            log.info("assessing")
        self.ready.set()

    async def _begin(self, producer: AIOKafkaProducer, place: TopicPartition, record: ConsumerRecord) -> None:
        """Take a record up; where too many are under way, wait for one of them first."""
        self._progress.begin(place, record.offset)
        try:
            write = self._wanted.wants(self._codec.decode(record.value))
        except Undecodable:
            write = None  # the engine says what it is
        if write is None:
            self._progress.end(place, record.offset)
            return
        while len(self._tasks) >= AT_ONCE:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            await self._failures()
        self._tasks.add(asyncio.create_task(self._one(producer, place, record, write)))

    async def _one(
        self, producer: AIOKafkaProducer, place: TopicPartition, record: ConsumerRecord, write: MemoryWrite
    ) -> None:
        deadline = self._wanted.deadline(write.tenant)
        now = now_ms()
        over = now - record.timestamp > deadline + SKEW_MS
        # Of a write whose time is over the engine has thought already, so its text is given to nobody.
        seconds = max(0, deadline - MARGIN_MS) / 1000
        assessment = UNCERTAIN if over or seconds == 0 else await self._assess(write, seconds)
        answer = assessment.record(write, now)
        await producer.send_and_wait(
            self._names.prefix + WRITES[0], self._codec.encode(answer), key=write.tenant.encode()
        )
        self._progress.end(place, record.offset)
        log.info("%s[%d] at %d: %s", record.topic, record.partition, record.offset, assessment.label)

    async def _failures(self) -> None:
        """Raise what a finished task raised: its record is then assessed again after a restart."""
        done = {task for task in self._tasks if task.done()}
        self._tasks -= done
        for task in done:
            task.result()

    async def _commit(self, consumer: AIOKafkaConsumer) -> None:
        positions = self._progress.take()
        mine = {place: at for place, at in positions.items() if place in consumer.assignment()}
        if mine:
            # A partition that was lost meanwhile: its new owner assesses again, and the engine takes the first.
            with contextlib.suppress(CommitFailedError, IllegalStateError):
                await consumer.commit(mine)

    async def _learn(self, *, forever: bool) -> None:
        """Read the policies, from the first one."""
        async for message in follow(self._settings, self._names.prefix + POLICIES, Start(), forever=forever):
            with contextlib.suppress(Undecodable):
                self._wanted.learn(self._codec.decode(message.value))

    def assigned(self) -> None:
        """Partitions are this process' from now on."""
        self._assigned = True

    def revoked(self, places: Iterable[TopicPartition]) -> None:
        """Partitions are somebody else's: what is under way is answered, and not committed."""
        for place in places:
            self._progress.drop(place)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._assessor.revoked(revoked)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._assessor.assigned()
