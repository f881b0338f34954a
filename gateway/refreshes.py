"""Decides which listings a connector is asked for: those of its own rooms, each once, in the log's order (R-TURN-6)."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple

from turngate.schemas.outputs import RefreshRequested

#: Milliseconds for which a request can still be asked for; nobody waits for a listing for so long.
KEPT_MS = 600_000


class Place(NamedTuple):
    """How far a connector has read: `told` of the tenant's requests of the time `at`. Every gateway counts alike."""

    at: int = 0
    told: int = 0


class Refreshes:
    """The requests for listings of late, by tenant. For one event loop."""

    def __init__(self) -> None:
        self._asked: defaultdict[str, deque[RefreshRequested]] = defaultdict(deque)
        self._came = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Let everybody who waits go on with what is known."""
        self.closed = True
        self._came.set()

    def learn(self, record: RefreshRequested) -> None:
        """Take notice of a request on the log; again, it changes nothing."""
        asked = self._asked[record.tenant]
        if record in asked:
            return
        asked.append(record)
        while asked[0].at <= record.at - KEPT_MS:
            asked.popleft()
        self._came.set()
        self._came = asyncio.Event()

    def after(
        self, tenant: str, place: Place, mine: Callable[[RefreshRequested], bool]
    ) -> tuple[list[RefreshRequested], Place]:
        """The requests behind a place that are `mine`, and the place behind all there are."""
        found: list[RefreshRequested] = []
        at, count = place.at, 0
        for record in self._asked.get(tenant, ()):
            if record.at < place.at:
                continue
            at, count = record.at, count + 1 if record.at == at else 1
            if (at > place.at or count > place.told) and mine(record):
                found.append(record)
        return found, Place(at, max(count, place.told if at == place.at else 0))

    async def wait(self, patience: float) -> None:
        """Until another request has come, of whomever, or for so many seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._came.wait()
        except TimeoutError:
            return
