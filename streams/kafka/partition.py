"""Decides when an owned partition applies its next stretch, and what that holds: the barrier, the pace, the commit.

One task per partition. While one stretch is being written to the broker, what arrives is gathered for the next, and a
full slice is folded meanwhile (R-RUN-2).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiokafka.errors import KafkaError

from turngate.streams.fold import Applies, Fold
from turngate.streams.kafka.intake import SLICE, Intake
from turngate.streams.log import Commit, Message, Stretch

#: Seconds between the beginnings of two stretches while records keep coming.
INTERVAL = 0.1
#: Seconds without a record after which a stretch begins all the same.
QUIET = 0.003
#: Seconds after which a question for high watermarks that failed is asked again.
ASK_AGAIN = 0.1

log = logging.getLogger(__name__)


class Folds(Applies, Protocol):
    """What this runtime asks of an engine."""

    def hold_ms(self) -> int:
        """The least `stale.hold` of the policies in force, in milliseconds."""


#: Makes an engine of a checkpoint's entries, the last of each key, and the version that wrote them, where one is to be
#: looked at.
Restore = Callable[[Iterable[tuple[bytes, bytes | None]], str | None], Folds]


class Writes(Protocol):
    """Where commits go, and who proves that the partition is ours (see owner.py)."""

    async def write(self, commit: Commit) -> None:
        """Write a commit in one transaction, or raise one of `clients.LOST`."""

    async def still_owns(self) -> bool:
        """Whether nobody has taken the partition since."""

    async def stop(self) -> None:
        """Give up the proof."""


@dataclass(slots=True)
class _Barrier:
    """The high watermarks asked for the first `drafts` drafts, after these had been read.

    `unanswered`: the broker had not said by the deadline, so that nothing makes these drafts timely any more.
    """

    drafts: int
    deadline: float
    asked: asyncio.Task[dict[str, int]]
    ends: dict[str, int] | None = None
    unanswered: bool = False


@dataclass(slots=True)
class Hooks:
    """Whom a partition asks and tells.

    `ask` gives the high watermarks of every input topic but the drafts', asked when it is called; `on_room` is called
    when there may be room for more records, `on_commit` when the broker has acknowledged a commit.
    """

    ask: Callable[[int], Awaitable[dict[str, int]]]
    on_room: Callable[[], None]
    on_commit: Callable[[], None]


@dataclass(slots=True)
class Held:
    """A partition that this worker holds: its state, and the writer whose producer proves it."""

    fold: Fold
    engine: Folds
    writer: Writes


class Partition:
    """One partition that this worker owns, from its loaded state on.

    `marks` are the high watermarks up to which it catches up first.
    """

    def __init__(self, number: int, held: Held, marks: dict[str, int], hooks: Hooks) -> None:
        self.number = number
        self.held = held
        self.fold = held.fold
        self.intake = Intake(held.fold.positions)
        #: The positions of the last commit that the broker has acknowledged.
        self.committed = dict(held.fold.positions)
        #: Why nothing is applied until an operator acts, or None.
        self.halted: str | None = None
        self.stretches = self.late = 0
        self.hooks = hooks
        self._marks: dict[str, int] | None = marks
        self._barrier: _Barrier | None = None
        self._writing: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._hold: float | None = None
        self._closing = False
        self._formed = self._handed = self._progress = time.monotonic()

    def hand(self, topic: str, before: int | None, messages: list[Message], after: int) -> int | None:
        """Take what was fetched between two positions of the consumer; None, or where it must seek to."""
        back = self.intake.accept(topic, before, messages, after)
        if back is None and (messages or before != after):
            self._handed = time.monotonic()
            self._wake.set()
        return back

    def catch_up(self, marks: dict[str, int]) -> None:
        """Merge by timestamp up to these positions, as after a stop; for whoever knows what is about to be sent."""
        self._marks = marks
        self._progress = time.monotonic()

    def halt(self, why: str) -> None:
        """Apply nothing more until an operator acts."""
        if self.halted is None:
            self.halted = why
            log.error("partition %d is halted: %s", self.number, why)

    def close(self) -> None:
        """Let `run` end once the commit under way is written; what is not applied yet stays on the log."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Apply and commit until closed. Raises one of `clients.LOST` when the partition must be loaded anew."""
        try:
            while not self._closing:
                if self._writing is not None and self._writing.done():
                    await self._written()
                stretch, wait = self._next(time.monotonic())
                if stretch is None:
                    await self._sleep(wait)
                    continue
                self._formed = self._progress = time.monotonic()
                commit = self.fold.apply(stretch)
                self.stretches += 1
                self.late += stretch.late
                self.hooks.on_room()
                await self._written()  # one commit at a time
                self._writing = asyncio.create_task(self._write(commit))
                await asyncio.sleep(0)
            await self._written()
        finally:
            self._drop_barrier()
            if self._writing is not None:
                self._writing.cancel()
                await asyncio.wait([self._writing])

    async def _write(self, commit: Commit) -> None:
        try:
            await self.held.writer.write(commit)
            self.committed = commit.positions
            self.hooks.on_commit()
        finally:
            self._wake.set()

    async def _written(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _sleep(self, wait: float | None) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), wait)
        except TimeoutError:
            return
        self._wake.clear()

    # -- what comes next: a stretch, or how many seconds to wait for one (None: until something happens) --

    def _next(self, now: float) -> tuple[Stretch | None, float | None]:
        if self.halted is not None:
            return None, None
        if self._marks is not None:
            return self._catch_up(now, self._marks)
        if self.intake.drafts:
            return self._decide(now)
        if self.intake.others == 0:
            return None, None
        pause = self._pause(now)
        return (None, pause) if pause != 0 else (self._stretch(self.intake.take(SLICE)), None)

    def _catch_up(self, now: float, marks: dict[str, int]) -> tuple[Stretch | None, float | None]:
        """After a stop: the other topics merged by timestamp, the drafts wait. No clock runs for those meanwhile.

        A topic that is held up (by a foreign open transaction) ends it; the barrier then rules over the drafts.
        """
        if self.intake.reached(marks):
            self._marks = None
            return self._next(now)
        pause = self._pause(now)
        if pause != 0:
            return None, pause
        taken = self.intake.take(SLICE, marks=marks)
        if taken:
            return self._stretch(taken), None
        left = self._progress + self._patience() - now
        if left <= 0:
            self._marks = None
            return self._next(now)
        return None, left

    def _decide(self, now: float) -> tuple[Stretch | None, float | None]:
        """Drafts wait: ask for the high watermarks, wait for them or the deadline, then take everything up to there."""
        barrier = self._barrier
        if barrier is None:
            deadline = now + self._patience()
            barrier = _Barrier(min(self.intake.drafts, SLICE), deadline, asyncio.create_task(self._ask_ends()))
            barrier.asked.add_done_callback(lambda _: self._wake.set())
            self._barrier = barrier
        late = now >= barrier.deadline
        if not barrier.asked.done() and not late:
            return None, barrier.deadline - now
        if barrier.ends is None:
            barrier.unanswered = not barrier.asked.done()
            barrier.ends = dict(self.intake.at) if barrier.unanswered else barrier.asked.result()
        if late or self.intake.reached(barrier.ends):
            return self._conclude(barrier, barrier.ends, now)
        if self.intake.has_before(barrier.ends) and (self.intake.full or now >= self._formed + INTERVAL):
            taken = self.intake.take(SLICE, upto=barrier.ends) if self._pause(now) == 0 else []
            if taken:
                return self._stretch(taken), None
        return None, min(barrier.deadline - now, INTERVAL)

    def _conclude(self, barrier: _Barrier, ends: Mapping[str, int], now: float) -> tuple[Stretch | None, float | None]:
        """Everything up to the barrier, then the drafts; if that is more than a slice, they go with the last one."""
        pause = self._pause(now)
        if pause != 0:
            return None, pause
        taken = self.intake.take(SLICE, upto=ends)
        if len(taken) == SLICE:
            return self._stretch(taken), None
        late = barrier.unanswered or not self.intake.reached(ends)
        self._drop_barrier()
        return self._stretch(taken + self.intake.take_drafts(barrier.drafts), late=late), None

    def _patience(self) -> float:
        """Seconds for which a barrier may take: asked of the engine anew only when a policy has come."""
        if self._hold is None:
            self._hold = self.held.engine.hold_ms() / 1000
        return self._hold

    def _stretch(self, messages: list[Message], *, late: bool = False) -> Stretch:
        if any(message.topic == "policies" for message in messages):
            self._hold = None
        return Stretch(dict(self.fold.positions), self.intake.positions(), messages, late)

    def _pause(self, now: float) -> float | None:
        """Seconds until the pace allows the next stretch; None: as soon as the commit under way is written."""
        if self.intake.full:
            return 0
        if self._writing is not None and not self._writing.done():
            return None
        return max(0.0, min(self._formed + INTERVAL, self._handed + QUIET) - now)

    async def _ask_ends(self) -> dict[str, int]:
        while True:
            try:
                return await self.hooks.ask(self.number)
            except KafkaError as error:  # the deadline rules, whatever the broker does meanwhile
                log.warning("partition %d: high watermarks: %s", self.number, type(error).__name__)
                await asyncio.sleep(ASK_AGAIN)

    def _drop_barrier(self) -> None:
        if self._barrier is not None:
            self._barrier.asked.cancel()
            self._barrier = None
