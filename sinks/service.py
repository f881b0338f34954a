"""Decides how deliveries run beside a broker: who delivers what, and which position is committed when.

At least once from the log, at most once into a room: a position is committed when everything before it has its final
record, and claims keep whatever is taken up again from being sent again (R-DLV-2, R-RUN-4).
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

from turngate.schemas.authority import Role
from turngate.schemas.codec import Codec
from turngate.sinks.asking import Asking
from turngate.sinks.claims import Claims
from turngate.sinks.courier import OUTPUTS, Courier
from turngate.sinks.delivery import Delivery
from turngate.sinks.errands import Patience
from turngate.sinks.kafka_journal import KafkaJournal, broken
from turngate.sinks.ports import Connector
from turngate.streams.clock import now_ms
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.reading import unreachable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError, Message

#: Seconds between two commits of positions, and for which what is under way may go on when a delivery is stopped.
COMMIT_EVERY, GRACE = 1.0, 15.0
#: Milliseconds from which on outputs other than turns are taken up where nobody has delivered before.
REACH_MS = 3_600_000
_WAIT_MS = 200

log = logging.getLogger(__name__)


class DeliveryService:
    """Delivers what workers authorize. Any number of these share the partitions."""

    def __init__(
        self,
        settings: KafkaSettings,
        codec: Codec,
        claims: Claims,
        connector: Connector,
        *,
        names: Names | None = None,
        clock: Callable[[], int] = now_ms,
        patience: Patience | None = None,
    ) -> None:
        self._settings = settings
        self._codec = codec
        self._claims = claims
        self._connector = connector
        self._names = Names() if names is None else names
        self._clock = clock
        self._patience = patience
        #: Set when partitions were assigned for the first time.
        self.ready = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set, then finish what is under way. Raises `LogError` where the broker is no use."""
        try:
            async with KafkaJournal(self._settings, self._codec, self._names.prefix, self._clock) as journal:
                delivery = Delivery(journal, self._claims, self._connector, self._clock, self._patience)
                await delivery.resume()
                asking = Asking(delivery, journal, self._connector, self._codec)
                await self._serve(journal, Courier(delivery, asking, self._codec), stop)
        except KafkaConnectionError:
            raise LogError(unreachable(self._settings)) from None
        except KafkaError as error:
            raise broken(self._settings, error) from error

    async def _serve(self, journal: KafkaJournal, courier: Courier, stop: asyncio.Event) -> None:
        consumer = AIOKafkaConsumer(
            group_id=self._names.group_id(Role.SINK),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            **self._settings.client_options(),
        )
        listener = _Listener(self, consumer, courier)
        committed = time.monotonic()
        try:
            consumer.subscribe([self._names.prefix + topic for topic in OUTPUTS], listener=listener)
            await consumer.start()
            while not stop.is_set():
                journal.failures()
                read = await consumer.getmany(timeout_ms=_WAIT_MS)
                messages = [self._message(r) for records in read.values() for r in records]
                for message in messages:
                    journal.note((message.key or b"").decode("utf-8", "replace"), message.partition)
                await courier.take_all(messages)
                courier.failures()
                if time.monotonic() - committed >= COMMIT_EVERY:
                    committed = time.monotonic()
                    await self._commit(consumer, courier)
            await courier.stop(GRACE)
            await self._commit(consumer, courier)
        finally:
            await courier.stop(0)
            await consumer.stop()

    def _message(self, r: ConsumerRecord) -> Message:
        return Message(self.plain(r.topic), r.partition, r.offset, r.timestamp, r.key, r.value)

    def plain(self, topic: str) -> str:
        """A topic's name in the contract."""
        return topic.removeprefix(self._names.prefix)

    async def begin_at(self, consumer: AIOKafkaConsumer, assigned: Iterable[TopicPartition]) -> None:
        """Where nobody has committed: turns from the first one, all else from a while ago."""
        since = self._clock() - REACH_MS
        for place in assigned:
            if await consumer.committed(place) is not None or place.topic == self._names.prefix + OUTPUTS[0]:
                continue
            found = (await consumer.offsets_for_times({place: since}))[place]
            end = (await consumer.end_offsets([place]))[place]
            consumer.seek(place, end if found is None else found.offset)
        if not self.ready.is_set():
            log.info("delivering")
        self.ready.set()

    async def _commit(self, consumer: AIOKafkaConsumer, courier: Courier) -> None:
        places = {
            TopicPartition(self._names.prefix + topic, partition): position
            for (topic, partition), position in courier.progress.take().items()
        }
        mine = {place: at for place, at in places.items() if place in consumer.assignment()}
        if mine:
            # A partition that was lost meanwhile: its new owner finds every claim as it stands.
            with contextlib.suppress(CommitFailedError, IllegalStateError):
                await consumer.commit(mine)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    def __init__(self, service: DeliveryService, consumer: AIOKafkaConsumer, courier: Courier) -> None:
        self._service = service
        self._consumer = consumer
        self._courier = courier

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        for place in revoked:
            self._courier.drop(self._service.plain(place.topic), place.partition)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        await self._service.begin_at(self._consumer, assigned)
