"""Decides what is due, and what waits for a room, in the order in which it came (R-TIME-4, R-TURN-6)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

from turngate.processors.rows import Waiting, WaitKind
from turngate.processors.state import Key
from turngate.processors.tables import Tables

_FOR_A_ROOM = (WaitKind.CONTEXT, WaitKind.DRAFT)


class Queue:
    """What waits in a partition. The rows are the state; time and rooms are an index over them, made anew on demand."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._times: list[tuple[int, int, Key]] = []
        self._rooms: dict[Key, dict[Key, Waiting]] = {}
        self._asks: dict[Key, dict[Key, Waiting]] = {}

    def index(self) -> None:
        """Find anew what waits, after the rows were loaded or undone."""
        self._times, self._rooms, self._asks = [], {}, {}
        for key, waiting in self._in_order():
            self._note(key, waiting)

    def _in_order(self) -> list[tuple[Key, Waiting]]:
        return sorted(self._tables.waiting.rows.items(), key=lambda row: row[1].since)

    def _note(self, key: Key, waiting: Waiting) -> None:
        heapq.heappush(self._times, (waiting.until, waiting.since, key))
        place = self._place(waiting)
        if place is not None:
            place[0].setdefault(place[1], {})[key] = waiting

    def _place(self, waiting: Waiting) -> tuple[dict[Key, dict[Key, Waiting]], Key] | None:
        """The index in which it is found by its room, and the key of the room there."""
        if waiting.room is None:
            return None
        if waiting.kind in _FOR_A_ROOM:
            return self._rooms, (waiting.tenant, waiting.agent, waiting.room)
        return (self._asks, (waiting.tenant, waiting.room)) if waiting.kind is WaitKind.ASK else None

    def add(self, waiting: Waiting | None) -> None:
        """Let something wait."""
        if waiting is not None:
            key = (waiting.tenant, f"{waiting.since:020}")
            self._tables.waiting.put(key, waiting)
            self._note(key, waiting)

    def drop(self, key: Key, waiting: Waiting) -> None:
        """It waits no more."""
        self._tables.waiting.drop(key)
        place = self._place(waiting)
        if place is not None:
            index, room = place
            index[room].pop(key)
            if not index[room]:
                del index[room]

    def due(self, now: int) -> list[tuple[Key, Waiting]]:
        """Everything whose time has come, in order of arrival (R-TIME-4)."""
        if not self._times or self._times[0][0] > now:
            return []
        found: dict[Key, Waiting] = {}
        while self._times and self._times[0][0] <= now:
            key = heapq.heappop(self._times)[2]
            waiting = self._tables.waiting.get(key)
            if waiting is not None and waiting.until <= now:  # it may wait for something else meanwhile
                found[key] = waiting
        return sorted(found.items(), key=lambda row: row[1].since)

    def in_room(self, tenant: str, agent: str, room: str) -> list[tuple[Key, Waiting]]:
        """What waits for a room as an agent knows it, in order of arrival."""
        return list(self._rooms.get((tenant, agent, room), {}).items())

    def shorten(self, tenant: str, ends: Callable[[Waiting], int]) -> None:
        """A tenant's drafts that ask may end earlier than was noted."""
        for (of, _), asks in self._asks.items():
            for key, waiting in list(asks.items()) if of == tenant else ():
                until = ends(waiting)
                if until < waiting.until:
                    asks[key] = replace(waiting, until=until)
                    self._tables.waiting.put(key, asks[key])
                    heapq.heappush(self._times, (until, waiting.since, key))

    def asking(self, tenant: str, room: str) -> list[tuple[Key, Waiting]]:
        """The drafts for a room that ask, in order of arrival."""
        return list(self._asks.get((tenant, room), {}).items())

    def drafts_of(self, tenant: str, agent: str, room: str | None) -> Iterator[tuple[Key, Waiting]]:
        """An agent's drafts that wait, everywhere or in one room, in order of arrival."""
        for key, waiting in self._in_order():
            mine = (
                waiting.tenant == tenant and waiting.agent == agent and waiting.kind in (WaitKind.DRAFT, WaitKind.ASK)
            )
            if mine and room in (None, waiting.room):
                yield key, waiting
