"""Decides how a delivery reads an embedded log and writes to it, beside whoever applies it in the same process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.sinks.asking import Asking
from turngate.sinks.claims import Claims
from turngate.sinks.courier import OUTPUTS, Courier
from turngate.sinks.delivery import Delivery
from turngate.sinks.errands import Patience
from turngate.sinks.facts import LATE, WHOLE, Facts
from turngate.sinks.local_claims import LocalClaims
from turngate.sinks.ports import Connector
from turngate.streams.clock import now_ms
from turngate.streams.feed import Feed
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Message

#: Writes input records to the log, and, where an engine is on it, applies them.
AppendRecords = Callable[[Sequence[Record]], Awaitable[None]]
#: Seconds between two looks at how far everything has been dealt with.
NOTE_EVERY = 1.0
#: Records that are of late when a delivery starts; before it did, no listing of its own began.
RECENT = 10_000

log = logging.getLogger(__name__)


class LocalJournal:
    """One partition of an embedded log. `append` writes input records, and may have them applied at once."""

    def __init__(self, log: LocalLog, codec: Codec, partition: int, append: AppendRecords | None) -> None:
        self.facts = Facts()
        self._log = log
        self._codec = codec
        self._partition = partition
        self._append = append
        self._read = dict.fromkeys(WHOLE, 0) | {t: max(0, log.end(t, partition) - RECENT) for t in LATE}

    async def publish(self, topic: str, records: Sequence[Record]) -> None:
        """See `Journal`."""
        if self._append is not None:
            await self._append(records)
            return
        values = [(r.tenant.encode(), self._codec.encode(r)) for r in records]
        self._log.append_many(Append(topic, key, value, now_ms(), self._partition) for key, value in values)

    async def reach_end(self, tenant: str) -> bool:
        """See `Journal`."""
        for topic, start in self._read.items():
            end = self._log.end(topic, self._partition)
            for message in self._log.scan(topic, self._partition, start, end):
                self.facts.read(self._codec, message)
            self._read[topic] = end
        return True

    async def applied(self, tenant: str, topics: Sequence[str]) -> bool:
        """See `Journal`."""
        if self._behind(topics) and self._append is not None:
            await self._append([])
        return not self._behind(topics) and await self.reach_end(tenant)

    def _behind(self, topics: Sequence[str]) -> bool:
        reached = self._log.positions(self._partition)
        return any(reached.get(topic, 0) < self._log.end(topic, self._partition) for topic in topics)

    async def look_back(self, tenant: str, topic: str, before: int, count: int) -> list[Message]:
        """See `Journal`."""
        return list(self._log.scan(topic, self._partition, max(0, before - count), before))


class EmbeddedDelivery:
    """Delivers what is authorized on one partition of an embedded log, for `async with`. Claims lie in the log's file.

    Whoever applies the log calls `look` after that. A crash at any moment sends nothing twice and forgets nothing.
    """

    def __init__(
        self,
        log: LocalLog,
        codec: Codec,
        connector: Connector,
        *,
        partition: int = 0,
        clock: Callable[[], int] = now_ms,
        append: AppendRecords | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._log = log
        self._partition = partition
        self._claims = LocalClaims(log)
        self.journal = LocalJournal(log, codec, partition, append)
        claims: Claims = self._claims
        # Only one process has the log, so nobody else can be sending what is found under way.
        patience = Patience(sending=0) if patience is None else patience
        self._delivery = Delivery(self.journal, claims, connector, clock, patience)
        self._courier = Courier(self._delivery, Asking(self._delivery, self.journal, connector, codec), codec)
        self._taken = {topic: self._claims.reached(topic, partition) for topic in OUTPUTS}

    async def start(self) -> None:
        """Read what the log has said so far, and go on looking for what was uncertain."""
        await self.journal.reach_end("")
        await self._delivery.resume()

    async def run(self, feed: Feed) -> None:
        """Deliver whatever is authorized on the log that this feed shares, until cancelled; then stop in good order."""
        come = asyncio.Event()

        async def watch(topic: str) -> None:
            async for _ in feed.follow(topic, now_ms()):
                come.set()

        watching = [asyncio.create_task(watch(topic)) for topic in OUTPUTS]
        try:
            await self.start()
            log.info("delivering")
            while True:
                come.clear()
                await self.look()
                for task in watching:
                    if task.done():
                        task.result()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(come.wait(), NOTE_EVERY)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            await self.stop()

    async def look(self) -> None:
        """Take up everything that was authorized meanwhile, and note what has been dealt with."""
        for topic, start in self._taken.items():
            end = self._log.end(topic, self._partition)
            for message in self._log.scan(topic, self._partition, start, end):
                await self._courier.take(message)
                self._taken[topic] = message.offset + 1
        self._note()

    async def finish(self) -> None:
        """Wait until everything taken up has been dealt with."""
        await self._courier.finish()
        self._note()

    async def stop(self, patience: float = 15) -> None:
        """Let what is under way end for so many seconds, and break off the rest."""
        await self._courier.stop(patience)
        self._note()

    def _note(self) -> None:
        self._courier.failures()
        for (topic, partition), position in self._courier.progress.take().items():
            self._claims.reach(topic, partition, position)
