"""Decides which records of the outputs are something to send, in which order that is done, and when each is dealt with.

What goes to one room goes in the order in which it was decided, but for what waits for somebody; rooms do not wait for
one another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from turngate.schemas.catalog import OUTPUT_TOPICS
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.outputs import SharingOffered, TurnAuthorized, TurnDecided, Verdict
from turngate.sinks.asking import Asking
from turngate.sinks.delivery import Delivery
from turngate.sinks.facts import FINAL
from turngate.streams.log import LogError, Message
from turngate.streams.progress import Progress

#: Topics of which something is sent.
OUTPUTS = ("outbound", "turn-verdicts", "grants")
#: What is under way at once, most of it waiting for its room; further records wait on the log.
AT_ONCE = 2_000
#: Partition of a topic.
At = tuple[str, int]
Job = Callable[[], Awaitable[object]]


class Courier:
    """Takes up records of `OUTPUTS`, and says how far all of them are dealt with."""

    def __init__(self, delivery: Delivery, asking: Asking, codec: Codec) -> None:
        self.progress: Progress[At] = Progress()
        self._delivery = delivery
        self._asking = asking
        self._codec = codec
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: dict[str, asyncio.Task[None]] = {}
        self._drops = 0

    async def take_all(self, messages: Iterable[Message]) -> None:
        """Take up what was read together; raises as `take` does.

        What is left of it when a partition is dropped comes again, to whoever has that then, from the position that was
        noted last. Taken up before, it would be noted past what lies between.
        """
        drops = self._drops
        for message in messages:
            if self._drops != drops:
                return
            await self.take(message)

    async def take(self, message: Message) -> None:
        """Begin what a record asks for; where too much is under way, wait for some of it first.

        Raises `LogError` for a record that cannot be read, and whatever an earlier one has come to that is no outcome.
        """
        at = (message.topic, message.partition)
        self.progress.begin(at, message.offset)
        found = self._job(message)
        if found is None:
            self.progress.end(at, message.offset)
            return
        while len(self._tasks) >= AT_ONCE:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self.failures()
        lane, job = found
        task = asyncio.create_task(self._run(self._last.get(lane), job, at, message.offset))
        self._last[lane] = task
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._last.pop(lane) if self._last.get(lane) is done else None)

    def drop(self, topic: str, partition: int) -> None:
        """A partition is somebody else's: what is under way is finished, and not counted."""
        self._drops += 1
        self.progress.drop((topic, partition))

    def failures(self) -> None:
        """Raise what a finished task raised; its record is then taken up again after a restart."""
        done = {task for task in self._tasks if task.done()}
        self._tasks -= done
        for task in done:
            task.result()

    async def finish(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)
            self.failures()

    async def stop(self, patience: float) -> None:
        """Let what is under way end for so many seconds, and break off the rest: that is found again as it stood."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = {task for task in self._tasks if not task.cancelled()}
        await self._delivery.stop()

    async def _run(self, before: asyncio.Task[None] | None, job: Job, at: At, offset: int) -> None:
        if before is not None:
            await asyncio.wait([before])
        await job()
        self.progress.end(at, offset)

    def _job(self, message: Message) -> tuple[str, Job] | None:
        try:
            record = self._codec.decode(message.value)
            if not isinstance(record, OUTPUT_TOPICS[message.topic]) or message.key != record.tenant.encode():
                raise Undecodable(type(record).__name__)
        except Undecodable:
            raise LogError(
                f"{message.topic}[{message.partition}]: the record at {message.offset} cannot be read: is this version "
                "older than the workers', or is a schema registry in use that is not named here?"
            ) from None
        read_at = self._delivery.now()
        match record:
            case TurnAuthorized():
                job: Job = partial(self._delivery.turn, record, read_at)
                if record.action is not None:  # it waits for that, and nobody else waits for it
                    return f"{record.tenant} {record.room} {record.turn}", job
            case TurnDecided(verdict=Verdict.ASK):  # it may wait for approvers' rooms, and no turn waits for it
                job = partial(self._asking.question, record, read_at)
                return f"{record.tenant} {record.room} {record.turn} ask", job
            case TurnDecided() if record.verdict in FINAL and self._asking.asked(record):
                job = partial(self._asking.answered, record)
                return f"{record.tenant} {record.room} {record.turn} ask", job
            case SharingOffered():
                job = partial(self._asking.offer, record, read_at)
            case _:
                return None
        return f"{record.tenant} {record.room}", job
