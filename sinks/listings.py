"""Decides when a room is listed for delivery, and which turns one listing serves (R-DLV-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from turngate.sinks.ports import Connector, Journal, Listed

#: Rooms that are listed at once: of more, each would take so long that it is stale before anything is said.
AT_ONCE = 16
#: Rooms whose last listing is kept; of more, the oldest are forgotten and would be listed again.
MOST = 1_000
_Room = tuple[str, str, str]


class Listings:
    """Live listings, one at a time for each room. Each is published, whoever asked for it."""

    def __init__(self, connector: Connector, journal: Journal, clock: Callable[[], int]) -> None:
        self._connector = connector
        self._journal = journal
        self._clock = clock
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._running: dict[_Room, tuple[int, asyncio.Task[Listed]]] = {}
        self._last: dict[_Room, tuple[int, Listed]] = {}

    async def get(self, room: _Room, since: int, fresh_for: int) -> Listed:
        """A listing of a room (tenant, agent, room) that began at or after `since` and is not older than `fresh_for`.

        One that is under way serves everybody who came before it began; who came later shares the next.
        """
        while True:
            began, last = self._last.get(room, (0, Listed()))
            if not last.failed and began >= since and self._clock() - began < fresh_for:
                return last
            began, running = self._running.get(room) or self._begin(room)
            if began >= since:
                return await asyncio.shield(running)
            await asyncio.wait([running])

    async def stop(self) -> None:
        """Break off what is under way."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, room: _Room) -> tuple[int, asyncio.Task[Listed]]:
        began = self._clock()
        self._running[room] = began, asyncio.create_task(self._list(room, began))
        return self._running[room]

    async def _list(self, room: _Room, began: int) -> Listed:
        try:
            async with self._turn:
                listed = await self._connector.listing(*room)
            await self._journal.publish("membership-refreshes", listed.pages)
        finally:
            del self._running[room]
        self._last.pop(room, None)
        self._last[room] = began, listed
        if len(self._last) > MOST:
            del self._last[next(iter(self._last))]
        return listed
