"""Decides how programs in one process share an embedded log: what is appended is applied at once, and seen by all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial

from turngate.processors.engine import Engine
from turngate.processors.keys import NO_KEYS, Keys
from turngate.schemas.catalog import topic_of
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record, Tick
from turngate.streams.clock import now_ms
from turngate.streams.local_log import LocalLog
from turngate.streams.local_runtime import Restore, Runtime
from turngate.streams.log import Message

#: Seconds between two ticks (contract section 3).
EVERY = 1.0
#: Who append at one time and are synced to the disk together, at most.
_TOGETHER = 1_000


class LocalFeed:
    """An embedded log of one partition, with the engine on it (`streams.feed.Feed`). For one event loop.

    `clock`: what time it is, in milliseconds since the epoch; records are stamped by it. `restore`: makes another
    engine than the product's with these keys.
    """

    def __init__(
        self,
        log: LocalLog,
        keys: Keys = NO_KEYS,
        clock: Callable[[], int] = now_ms,
        restore: Restore[Engine] | None = None,
    ) -> None:
        self._log = log
        self._codec = Codec()
        self._clock = clock
        self._runtime = Runtime(log, restore or partial(Engine.restore, keys=keys), self._codec)
        self._followers: list[tuple[str, asyncio.Queue[Message]]] = []
        self._waiting: list[tuple[list[Message], asyncio.Future[None]]] = []

    async def append(self, records: Sequence[Record]) -> None:
        """Append records, apply them, and tell those who follow of them and of what came of them.

        What is appended while the event loop is busy with others who append is one commit: it is synced to the disk
        once, however many wait.
        """
        loop, now = asyncio.get_running_loop(), self._clock()
        fed = [
            Message(topic_of(type(r).__name__, {"by": None}), 0, -1, now, r.tenant.encode(), self._codec.encode(r))
            for r in records
        ]
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((fed, done))
        if len(self._waiting) == 1:
            loop.call_soon(self._write, 1)
        await done

    def _write(self, before: int) -> None:
        """Write what waits, in the order in which it came; where that fails, all who wait are told so.

        Not as long as others come: `before` waited a turn of the event loop ago.
        """
        if before < len(self._waiting) < _TOGETHER:
            asyncio.get_running_loop().call_soon(self._write, len(self._waiting))
            return
        waiting, self._waiting = self._waiting, []
        fed = [message for messages, _ in waiting for message in messages]
        error: Exception | None = None
        try:
            outputs: list[Message] = []
            for message in fed:
                outputs += self._runtime.feed(message.topic, message.key, message.value, message.timestamp)
            outputs += self._runtime.flush()
            self._tell(fed + outputs)
        except Exception as raised:  # it is whoever appends that has to know
            error = raised
        for _, done in waiting:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

    async def follow(self, topic: str, since: int, *, forever: bool = True) -> AsyncIterator[Record]:
        """The records of a topic."""
        async with aclosing(self.stamped(topic, since, forever=forever)) as stamped:
            async for _, record in stamped:
                yield record

    async def stamped(self, topic: str, since: int, *, forever: bool = True) -> AsyncGenerator[tuple[int, Record]]:
        """The same, each with its timestamp."""
        queue: asyncio.Queue[Message] = asyncio.Queue()
        follower = (topic, queue)
        self._followers.append(follower)
        end = self._log.end(topic, 0)  # what comes behind it is told; nothing else runs in between
        try:
            before = (message for message in self._log.scan(topic, 0, 0, end) if message.timestamp >= since)
            for found in self._decoded(before):
                yield found
            while forever:
                for found in self._decoded([await queue.get()]):
                    yield found
        finally:
            self._followers.remove(follower)

    async def tick(self) -> None:
        """Let time pass (R-TIME-3), until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            await self.append([Tick(tenant="0", at=self._clock())])

    def _tell(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for topic, queue in self._followers:
                if topic == message.topic:
                    queue.put_nowait(message)

    def _decoded(self, messages: Iterable[Message]) -> Iterable[tuple[int, Record]]:
        for message in messages:
            try:
                yield message.timestamp, self._codec.decode(message.value)
            except Undecodable:
                continue
