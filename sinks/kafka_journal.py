"""Decides how a delivery reads a broker's log up to its end, and writes to it (R-DLV-1, R-RUN-2).

What was acknowledged before a question is known when it is answered: the high watermarks are asked of the broker, and
the committed records are read up to there, since a revocation that only lies on the log counts (R-POL-2).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from turngate.schemas.catalog import APPLIED
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.sinks.facts import LATE, MESSAGES, WHOLE, Facts
from turngate.streams.kafka.clients import named, plain_consumer, plain_producer
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError, Message

#: Seconds in which the log's end must have been reached.
PATIENCE = 5.0
#: Milliseconds for which verdicts, deliveries and the like are of late when a delivery starts: a question's and more.
RECENT_MS = 1_200_000
_WAIT_MS = 50


class KafkaJournal:
    """The contract's topics under a prefix, for `async with`: then everything there is has been read."""

    def __init__(self, settings: KafkaSettings, codec: Codec, prefix: str, clock: Callable[[], int]) -> None:
        self.facts = Facts()
        self._settings = settings
        self._codec = codec
        self._prefix = prefix
        self._clock = clock
        self._partitions: dict[str, int] = {}
        self._reader: AIOKafkaConsumer = plain_consumer(settings, committed=True)
        self._marks: AIOKafkaConsumer = plain_consumer(settings, committed=False)
        self._producer = plain_producer(settings, enable_idempotence=True)
        self._moved = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None
        self._places: defaultdict[int, list[TopicPartition]] = defaultdict(list)

    async def __aenter__(self) -> Self:
        try:
            for client in (self._reader, self._marks, self._producer):
                await client.start()
            places = await self._assign()
            self._reading = asyncio.create_task(self._read())
            await self._until_read(places, None)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        for client in (self._producer, self._reader, self._marks):
            await client.stop()

    def note(self, tenant: str, partition: int) -> None:
        """A tenant's records are in this partition."""
        self._partitions[tenant] = partition

    def failures(self) -> None:
        """Raise what has ended the reading."""
        if self._reading is not None and self._reading.done():
            self._reading.result()

    async def publish(self, topic: str, records: Sequence[Record]) -> None:
        """See `Journal`."""
        sent = [
            await self._producer.send(self._prefix + topic, self._codec.encode(r), key=r.tenant.encode())
            for r in records
        ]
        await asyncio.gather(*sent)

    async def reach_end(self, tenant: str) -> bool:
        """See `Journal`."""
        self.failures()
        places = self._places[self._partitions[tenant]]
        try:
            return await self._until_read(places, PATIENCE)
        except KafkaError:
            return False

    async def applied(self, tenant: str, topics: Sequence[str]) -> bool:
        """See `Journal`."""
        partition = self._partitions[tenant]
        places = {TopicPartition(self._prefix + topic, partition): topic for topic in topics}
        try:
            async with asyncio.timeout(PATIENCE):
                ends = await self._marks.end_offsets(list(places))
                async with self._moved:
                    while any(self.facts.applied(places[p], partition) < end for p, end in ends.items()):
                        self.failures()
                        await self._moved.wait()
        except (TimeoutError, KafkaError):
            return False
        return await self.reach_end(tenant)

    async def look_back(self, tenant: str, topic: str, before: int, count: int) -> list[Message]:
        """See `Journal`."""
        place = TopicPartition(self._prefix + topic, self._partitions[tenant])
        consumer = plain_consumer(self._settings, committed=True)
        found: list[Message] = []
        try:
            await consumer.start()
            consumer.assign([place])
            begins = (await consumer.beginning_offsets([place]))[place]
            end = min(before, (await consumer.end_offsets([place]))[place])
            consumer.seek(place, max(begins, before - count))
            while await consumer.position(place) < end:
                for records in (await consumer.getmany(timeout_ms=_WAIT_MS)).values():
                    found += [self._message(r) for r in records if r.offset < end]
        finally:
            await consumer.stop()
        return found

    async def _assign(self) -> list[TopicPartition]:
        """Where each topic is read from: all of it, of late, or, of rooms, from now on."""
        topics = [self._prefix + topic for topic in (*WHOLE, *LATE, APPLIED)]
        described = await self._marks._client.fetch_all_metadata()
        places: list[TopicPartition] = []
        for topic in topics:
            partitions = described.partitions_for_topic(topic)
            if not partitions:
                raise LogError(f"there is no topic {topic}; create the topics with `turngate topics create`")
            places += [TopicPartition(topic, number) for number in sorted(partitions)]
        for place in places:
            self._places[place.partition].append(place)
        await self._marks._client.set_topics(
            [*topics, self._prefix + MESSAGES]
        )  # a question about an unknown one takes a second
        self._reader.assign(places)
        from_now, *of_late = ([p for p in places if p.topic == self._prefix + topic] for topic in (*LATE, APPLIED))
        lately = [place for group in of_late for place in group]
        begins = await self._marks.beginning_offsets(places)
        ends = await self._marks.end_offsets(places)
        recent = await self._marks.offsets_for_times(dict.fromkeys(lately, self._clock() - RECENT_MS))
        starts = begins | {place: ends[place] for place in from_now}
        starts |= {place: ends[place] if recent[place] is None else recent[place].offset for place in lately}
        for place, start in starts.items():
            self._reader.seek(place, start)
        return places

    def _message(self, r: ConsumerRecord) -> Message:
        topic = r.topic.removeprefix(self._prefix)
        return Message(topic, r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))

    async def _read(self) -> None:
        while True:
            for records in (await self._reader.getmany(timeout_ms=_WAIT_MS)).values():
                for record in records:
                    self.facts.read(self._codec, self._message(record))
            async with self._moved:
                self._moved.notify_all()

    async def _until_read(self, places: Iterable[TopicPartition], patience: float | None) -> bool:
        """Whether everything before the places' high watermarks of now was read in time."""
        try:
            async with asyncio.timeout(patience):
                behind = dict(await self._marks.end_offsets(list(places)))
                async with self._moved:
                    while behind:
                        self.failures()
                        behind = {p: end for p, end in behind.items() if await self._reader.position(p) < end}
                        if behind:
                            await self._moved.wait()
        except TimeoutError:
            return False
        return True


def broken(settings: KafkaSettings, error: BaseException) -> LogError:
    """What is said of a broker that cannot be used."""
    return LogError(f"{settings.bootstrap_servers}: {named(error)}")
