"""Decides which listings a connector is asked for: those of its own rooms, each once, in the log's order (R-TURN-6).

A tenant's requests lie in one partition, where time does not go back (R-TIME-1). An agent can name any number of rooms,
so what one more request costs does not grow with how many there are.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from itertools import takewhile
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
        self._known: set[RefreshRequested] = set()
        self._came = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Let everybody who waits go on with what is known."""
        self.closed = True
        self._came.set()

    def learn(self, record: RefreshRequested) -> None:
        """Take notice of a request on the log; again, it changes nothing."""
        asked = self._asked[record.tenant]
        if record in self._known or (asked and record.at <= asked[-1].at - KEPT_MS):
            return
        asked.append(record)
        self._known.add(record)
        while asked[0].at <= record.at - KEPT_MS:
            self._known.discard(asked.popleft())
        self._came.set()
        self._came = asyncio.Event()

    def after(
        self, tenant: str, place: Place, mine: Callable[[RefreshRequested], bool]
    ) -> tuple[list[RefreshRequested], Place]:
        """The requests behind a place that are `mine`, and the place behind all there are."""
        found: list[RefreshRequested] = []
        at, count = place.at, 0
        late = takewhile(lambda record: record.at >= place.at, reversed(self._asked.get(tenant, ())))
        for record in reversed([*late]):
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
