"""Decides which partitions this worker owns from moment to moment, and what becomes of those it loses (R-RUN-4).

A former owner is told by nobody that it is fenced. Whoever loses a partition's producer drops that partition's memory,
waits for a rebalance, and takes it again if none comes. Correctness rests on the producer's epoch alone: two workers
that both believe they own everything stay exact.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiokafka import TopicPartition

from turngate.schemas.catalog import INPUT_TOPICS
from turngate.streams.kafka.append_time import AppendTime
from turngate.streams.kafka.checkpoint import CheckpointError, CheckpointUnread
from turngate.streams.kafka.clients import LOST, TooLarge, named
from turngate.streams.kafka.intake import message_of
from turngate.streams.kafka.owner import Owner
from turngate.streams.kafka.partition import Held, Hooks, Partition
from turngate.streams.kafka.transport import Consumer, Fetched
from turngate.streams.log import LogError

#: Seconds that a rebalance waits for state to load, well within the session's timeout, for which no heartbeat is sent
#: meanwhile. Loading that takes longer goes on after it.
LOAD_IN_REBALANCE = 2.0
#: Seconds that a rebalance waits for commits under way; after it they are given up, and their partitions loaded anew.
LEAVE = 5.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counters:
    """What happened to this worker's partitions since it started."""

    loads: int = 0
    kept: int = 0
    lost: int = 0
    rewinds: int = 0


@dataclass(slots=True)
class Owned:
    """A partition that is being worked on, and the task that does it."""

    partition: Partition
    held: Held
    task: asyncio.Task[bool]


class Runtime:
    """Carries a worker's partitions (`transport.Carried`). `failed` ends with the error that must end the worker."""

    def __init__(self, owner: Owner, clock: AppendTime, reload_after: float) -> None:
        self.owned: dict[int, Owned] = {}
        self.counters = Counters()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: Partitions of this worker whose checkpoint cannot be used, and why.
        self.unusable: dict[int, str] = {}
        self._owner = owner
        self._watermarks = owner.watermarks
        self._topics = {owner.names.prefix + topic: topic for topic in INPUT_TOPICS}
        self._clock = clock
        self._reload_after = reload_after
        self._changed = asyncio.Event()
        self._kept: dict[int, Held] = {}
        self._assigned: frozenset[int] = frozenset()
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._checking: dict[int, asyncio.Task[None]] = {}
        self._consumer: Consumer | None = None
        self._narrow = self._closed = False

    # -- ownership --

    async def assigned(self, consumer: Consumer, partitions: Set[int]) -> None:
        """Keep what is provably still ours, and load the rest."""
        if self._closed:
            return
        self._consumer = consumer
        self._assigned = frozenset(partitions)
        self.unusable.clear()
        kept, self._kept = self._kept, {}
        for number in sorted(self._assigned):
            self._loading[number] = asyncio.create_task(self._load(number, kept.pop(number, None)))
        await asyncio.gather(*(held.writer.stop() for held in kept.values()))
        if self._loading:
            await asyncio.wait(self._loading.values(), timeout=LOAD_IN_REBALANCE)
        log.info("partitions assigned: %s, of which still loading: %s", sorted(partitions), sorted(self._loading))

    async def revoked(self) -> None:
        """Write what was applied; keep the state, in case the partition comes back."""
        self._assigned = frozenset()
        await _cancel([*self._loading.values(), *self._checking.values()])
        self._loading.clear()
        owned, self.owned = self.owned, {}
        for one in owned.values():
            one.partition.close()
        if owned:
            _, hanging = await asyncio.wait([one.task for one in owned.values()], timeout=LEAVE)
            await _cancel(hanging)
        for number, one in owned.items():
            if one.task.cancelled():
                log.warning("partition %d: its last commit took too long; the next owner decides", number)
                await one.held.writer.stop()
            elif one.task.result():
                self._kept[number] = one.held
        log.info("partitions revoked: %s, of which kept: %s", sorted(owned), sorted(self._kept))
        self._notify()

    async def close(self) -> None:
        """Finish, commit, and let go of everything; nothing is taken any more."""
        self._closed = True
        await self.revoked()
        kept, self._kept = self._kept, {}
        await asyncio.gather(*(held.writer.stop() for held in kept.values()))

    async def _load(self, number: int, held: Held | None) -> None:
        """Own a partition, now or as soon as it can be; ends early only when it is cancelled or the worker fails."""
        try:
            while True:
                try:
                    await self._own(number, await self._held(number, held))
                    return
                except CheckpointError as error:
                    self._give_up(number, error)
                    return
                except (*LOST, CheckpointUnread) as error:
                    log.warning("partition %d: not loaded yet: %s", number, named(error))
                    held = None
                    await asyncio.sleep(self._reload_after)
        except Exception as error:  # state that does not fit, that a newer engine wrote, or a fault of ours
            self._fail(error)
        finally:
            if self._loading.get(number) is asyncio.current_task():
                del self._loading[number]

    async def _held(self, number: int, held: Held | None) -> Held:
        if held is not None:
            try:
                ours = await held.writer.still_owns()
            except BaseException:
                await held.writer.stop()
                raise
            if ours:
                self.counters.kept += 1
                return held
            log.info("partition %d: another worker has had it meanwhile", number)
            await held.writer.stop()
        self.counters.loads += 1
        return await self._owner.take(number)

    async def _own(self, number: int, held: Held) -> None:
        try:
            marks = await self._watermarks.barrier(number)
            partition = Partition(number, held, marks, Hooks(self._watermarks.barrier, self._wake, self._notify))
            await self._seek(number, held.fold.positions)
        except BaseException:
            await held.writer.stop()
            raise
        task = asyncio.create_task(self._run(partition, held))
        self.owned[number] = Owned(partition, held, task)
        self._wake()
        self._notify()

    async def _run(self, partition: Partition, held: Held) -> bool:
        """Work on a partition until it is closed; whether its state may be kept."""
        try:
            await partition.run()
        except TooLarge as error:
            self._give_up(partition.number, error)
            await held.writer.stop()
            return False
        except LOST as error:
            await self._lost(partition.number, held, error)
            return False
        except Exception as error:
            await held.writer.stop()
            self._fail(error)
            return False
        return True

    def _give_up(self, number: int, error: LogError) -> None:
        """Do not work on a partition until it is assigned again: trying once more would come to the same."""
        self.owned.pop(number, None)
        self.unusable[number] = str(error)
        log.error("partition %d is not worked on: %s", number, error)
        self._notify()

    async def _lost(self, number: int, held: Held, error: BaseException) -> None:
        """Drop the memory; if the group still says that the partition is ours, take it again after a while."""
        self.counters.lost += 1
        log.warning("partition %d is lost: %s", number, named(error))
        self.owned.pop(number, None)
        self._notify()
        if number in self._assigned:
            self._loading[number] = asyncio.create_task(self._load_later(number))
        await held.writer.stop()

    async def _load_later(self, number: int) -> None:
        try:
            await asyncio.sleep(self._reload_after)  # a heartbeat: if another worker has it, a rebalance is on its way
        except asyncio.CancelledError:
            self._loading.pop(number, None)
            raise
        await self._load(number, None)

    # -- records --

    def wanted(self) -> Set[TopicPartition]:
        """Every topic of the partitions being worked on that has room."""
        wanted = {
            TopicPartition(name, number)
            for number, one in self.owned.items()
            if one.partition.halted is None
            for name, topic in self._topics.items()
            if one.partition.intake.has_room(topic)
        }
        self._narrow = len(wanted) < len(self._topics) * len(self._assigned)
        return wanted

    def handed(self, fetched: Fetched) -> dict[TopicPartition, int]:
        """Take what begins where its partition stands; where to seek for the rest."""
        back = {}
        now_ms = time.time() * 1000
        for place, after in fetched.after.items():
            one = self.owned.get(place.partition)
            if one is None or one.partition.halted is not None:
                continue  # it will seek when it is loaded
            records = fetched.records.get(place, [])
            complaint = next(filter(None, (self._clock.complaint(r, now_ms) for r in records)), None)
            if complaint is not None:
                one.partition.halt(complaint)
                continue
            topic = self._topics[place.topic]
            messages = [message_of(topic, record) for record in records]
            at = one.partition.hand(topic, fetched.before.get(place), messages, after)
            if at is not None:
                back[place] = at
        for place, error in fetched.broken.items():
            one = self.owned.get(place.partition)
            if one is not None:
                where = f"{place.topic}[{place.partition}]"
                at = one.partition.intake.at[self._topics[place.topic]]
                one.partition.halt(f"{where}: what lies from {at} on is no record: {named(error)}")
        if back:
            self._rewound({place.partition for place in back})
        return back

    def _rewound(self, numbers: Set[int]) -> None:
        """A hand-over did not fit, after a seek or a rebalance; or retention has passed where a partition stands."""
        self.counters.rewinds += 1
        for number in numbers - self._checking.keys():
            task = self._checking[number] = asyncio.create_task(self._check_retention(number))
            task.add_done_callback(partial(self._checked, number))

    def _checked(self, number: int, _: asyncio.Task[None]) -> None:
        self._checking.pop(number, None)

    async def _check_retention(self, number: int) -> None:
        try:
            begins = await self._watermarks.begins(number)
        except LOST as error:
            log.warning("partition %d: first positions: %s", number, named(error))
            return
        one = self.owned.get(number)
        for topic, begin in begins.items():
            if one is not None and one.partition.intake.at[topic] < begin:
                one.partition.halt(f"{topic}: its records from {one.partition.intake.at[topic]} to {begin} are gone")

    async def _seek(self, number: int, positions: dict[str, int]) -> None:
        assert self._consumer is not None  # set before anything is loaded
        places = {TopicPartition(name, number): positions[topic] for name, topic in self._topics.items()}
        await self._consumer.seek_to(places)

    # -- news --

    async def wait_changed(self) -> None:
        """Return when next a commit is acknowledged or the ownership of a partition changes."""
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _wake(self) -> None:
        if self._narrow and self._consumer is not None:
            self._consumer.wake()

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
