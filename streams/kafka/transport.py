"""Decides how Faust carries records to us: its lifecycle and group membership, our assignor, isolation and hand-over.

Found by Faust as the entry point `faust.transports: turngate`, for the broker URL `turngate://host:port`. What of Faust
0.15.3 is not relied on, and why, is in docs/runtime.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Set
from typing import Any, NamedTuple, Protocol, cast

import aiokafka
import faust
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import ConsumerStoppedError, CorruptRecordException, KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from turngate.streams.kafka.assignor import CoPartitioned
from turngate.streams.kafka.settings import KafkaSettings

#: Milliseconds that the broker may hold a fetch open. Topics without news delay the next fetch of those with some.
FETCH_WAIT_MS = 100
#: Seconds that one wait for records lasts at most.
POLL = 0.5
#: Records of one hand-over at most.
POLL_RECORDS = 1000

#: What Faust says of its services is no line of ours.
_FAUST = logging.getLogger("faust.carrying")


class Fetched(NamedTuple):
    """What was fetched, and the consumer's positions before and after, which count a broker's control records too.

    `broken`: where something lies after `before` that is no record of Kafka's.
    """

    before: Mapping[TopicPartition, int]
    records: Mapping[TopicPartition, list[ConsumerRecord]]
    after: Mapping[TopicPartition, int]
    broken: Mapping[TopicPartition, Exception]


class Carried(Protocol):
    """Where this transport carries to."""

    def wanted(self) -> Set[TopicPartition]:
        """The partitions of topics of which records may be handed over now."""

    def handed(self, fetched: Fetched) -> dict[TopicPartition, int]:
        """Take what was fetched; where the consumer must seek to before it fetches more."""

    async def assigned(self, consumer: Consumer, partitions: Set[int]) -> None:
        """Own these partitions from now on; awaited within the rebalance, before any record is fetched."""

    async def revoked(self) -> None:
        """Finish and commit; awaited within the rebalance."""


class App(faust.App):
    """A Faust app, and where its records are carried to."""

    logger = _FAUST
    carried: Carried
    settings: KafkaSettings


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread in which the consumer lives, so that heartbeats go on while the fold computes."""

    logger = _FAUST
    _waiter: asyncio.Future[None] | None = None
    _nudged = False

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        # Faust's own would read uncommitted records, split a partition number over workers, and wait 1.5 s for a fetch.
        conf, settings = self.app.conf, cast(App, self.app).settings
        self._assignor = self._ours = CoPartitioned()
        return aiokafka.AIOKafkaConsumer(
            client_id=conf.broker_client_id,
            group_id=conf.id,
            group_instance_id=conf.consumer_group_instance_id,
            partition_assignment_strategy=[self._assignor],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=FETCH_WAIT_MS,
            check_crcs=conf.broker_check_crcs,
            max_poll_records=POLL_RECORDS,
            max_poll_interval_ms=int(conf.broker_max_poll_interval * 1000),
            request_timeout_ms=int(conf.broker_request_timeout * 1000),
            session_timeout_ms=int(conf.broker_session_timeout * 1000),
            rebalance_timeout_ms=int(conf.broker_rebalance_timeout * 1000),
            heartbeat_interval_ms=int(conf.broker_heartbeat_interval * 1000),
            metadata_max_age_ms=conf.consumer_metadata_max_age_ms,
            **settings.client_options(),
        )

    async def fetch(self, wanted: Set[TopicPartition], patience: float) -> Fetched | None:
        """As `_fetch`; raises `LogError` where the assignor has refused the topics as they are."""
        try:
            return await self._fetch(wanted, patience)
        except KafkaError:
            if self._ours.refusal is not None:
                raise self._ours.refusal from None
            raise

    async def _fetch(self, wanted: Set[TopicPartition], patience: float) -> Fetched | None:
        """Records of the wanted partitions, or news of positions, or None when there was neither; in this thread.

        Exact because nothing is awaited between the two notes of positions: `fetched_records(timeout=0)` does not
        suspend while an assignment stands. With a timeout it may sleep through a whole rebalance, and then returns
        records of the new assignment from a position of aiokafka's own beside a note of the old one.
        """
        consumer = self._ensure_consumer()
        fetcher, end = consumer._fetcher, self.thread_loop.time() + patience
        self._nudged = False
        while self.consumer.flow_active:
            if consumer._closed or fetcher._closed:
                raise ConsumerStoppedError()
            consumer._coordinator.check_errors()
            left = end - self.thread_loop.time()
            if consumer._subscription.reassignment_in_progress:
                if left <= 0:
                    return None
                await asyncio.sleep(min(left, 0.01))
                continue
            with fetcher._subscriptions.fetch_context():
                before = _positions(consumer)
                records, broken = await self._drain(wanted)
                after = _positions(consumer)
            if records or broken or after != before or left <= 0 or self._nudged:
                return Fetched(before, records, after, broken)
            self._waiter = fetcher._create_fetch_waiter()
            await asyncio.wait([self._waiter], timeout=left)
            waiter, self._waiter = self._waiter, None
            if not waiter.done():
                waiter.cancel()
            else:
                waiter.result()  # raises what the fetcher met, such as a missing authorization
        return None

    async def _drain(
        self, wanted: Set[TopicPartition]
    ) -> tuple[dict[TopicPartition, list[ConsumerRecord]], dict[TopicPartition, Exception]]:
        """What has been fetched, without suspending; one by one, so that bytes which are no records harm their own."""
        consumer = self._ensure_consumer()
        fetcher, room = consumer._fetcher, consumer._max_poll_records
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        broken: dict[TopicPartition, Exception] = {}
        for place in [p for p in fetcher._records if p in wanted] or list(wanted)[:1]:
            try:
                records |= await fetcher.fetched_records([place], timeout=0, max_records=room)
            except (UnicodeDecodeError, CorruptRecordException) as error:
                broken[place] = error
            room -= len(records.get(place, ()))
            if room <= 0:
                break
        return records, broken

    def nudge(self) -> None:
        """Let a wait for records end, because more partitions are wanted; in this thread."""
        self._nudged = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def seek_assigned(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Seek those of these partitions that are assigned; in this thread."""
        consumer = self._ensure_consumer()
        for place, offset in offsets.items():
            if consumer._subscription.is_assigned(place):
                consumer.seek(place, offset)


class Consumer(driver.Consumer):
    """Hands whole batches to `app.carried`. Consumer-group offsets are neither read nor written."""

    logger = _FAUST
    _thread: ConsumerThread

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def seek_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Seek in the consumer's own thread."""
        await self._thread.call_thread(self._thread.seek_assigned, offsets)

    def wake(self) -> None:
        """Fetch again at once, with what is wanted now."""
        self._thread.thread_loop.call_soon_threadsafe(self._thread.nudge)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Commit before the group gives the partitions to others."""
        await cast(App, self.app).carried.revoked()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Load and seek before Faust lets records flow."""
        if not self.app.should_stop:
            await cast(App, self.app).carried.assigned(self, {place.partition for place in assigned})
        await super().on_partitions_assigned(assigned, generation_id)

    async def perform_seek(self) -> None:
        """Nothing: after a rebalance Faust would seek to the group's committed offsets here."""

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: Faust's stall warning compares two different clocks; lag is a metric of our own."""

    async def _drain_messages(self, fetcher: Any) -> None:
        """Runs as long as Faust's fetcher does."""
        carried = cast(App, self.app).carried
        try:
            while not (self._stopped.is_set() or fetcher._stopped.is_set()):
                if not self.flow_active:
                    await self.wait(self.can_resume_flow.wait())
                wanted = carried.wanted()
                if not wanted:
                    await asyncio.sleep(0.01)
                    continue
                fetched = await self._thread.call_thread(self._thread.fetch, wanted, POLL)
                if fetched is None:
                    await asyncio.sleep(0.01)
                    continue
                back = carried.handed(fetched)
                if back:
                    await self.seek_to(back)
                await asyncio.sleep(0)
        except self.consumer_stopped_errors:
            if not self.transport.app.should_stop:
                raise
        except asyncio.CancelledError:
            # Cancelled during a rebalance, Faust's fetcher would crash, and then call a supervisor that it has not.
            if not (self.transport.app.should_stop or fetcher._stopped.is_set()):
                raise


class Producer(driver.Producer):
    """Faust's own producer, which nothing is sent with; it starts with every app."""

    logger = _FAUST

    def _settings_auth(self) -> Mapping[str, Any]:
        return cast(App, self.app).settings.client_options()


class Transport(driver.Transport):
    """What Faust makes its consumer and producer with."""

    Consumer = Consumer
    Producer = Producer


def _positions(consumer: aiokafka.AIOKafkaConsumer) -> dict[TopicPartition, int]:
    subscription = consumer._subscription.subscription
    assignment = subscription.assignment if subscription is not None else None
    if assignment is None:
        return {}
    positions = {place: assignment.state_value(place)._position for place in assignment.tps}
    return {place: position for place, position in positions.items() if position is not None}
