"""Decides what is due, and what waits for a room, in the order in which it came (R-TIME-4, R-TURN-6)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from turngate.processors.rows import Tables, Waiting, WaitKind
from turngate.processors.state import Key

_FOR_A_ROOM = (WaitKind.CONTEXT, WaitKind.DRAFT)


class Queue:
    """What waits in a partition. The rows are the state; time and rooms are an index over them, made anew on demand."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._times: list[tuple[int, int, Key]] = []
        self._rooms: dict[Key, dict[Key, Waiting]] = {}

    def index(self) -> None:
        """Find anew what waits, after the rows were loaded or undone."""
        self._times, self._rooms = [], {}
        for key, waiting in self._in_order():
            self._note(key, waiting)

    def _in_order(self) -> list[tuple[Key, Waiting]]:
        return sorted(self._tables.waiting.rows.items(), key=lambda row: row[1].since)

    def _note(self, key: Key, waiting: Waiting) -> None:
        heapq.heappush(self._times, (waiting.until, waiting.since, key))
        if waiting.kind in _FOR_A_ROOM and waiting.room is not None:
            self._rooms.setdefault((waiting.tenant, waiting.agent, waiting.room), {})[key] = waiting

    def add(self, waiting: Waiting | None) -> None:
        """Let something wait."""
        if waiting is not None:
            key = (waiting.tenant, f"{waiting.since:020}")
            self._tables.waiting.put(key, waiting)
            self._note(key, waiting)

    def drop(self, key: Key, waiting: Waiting) -> None:
        """It waits no more."""
        self._tables.waiting.drop(key)
        if waiting.kind in _FOR_A_ROOM and waiting.room is not None:
            room = (waiting.tenant, waiting.agent, waiting.room)
            self._rooms[room].pop(key)
            if not self._rooms[room]:
                del self._rooms[room]

    def due(self, now: int) -> list[tuple[Key, Waiting]]:
        """Everything whose time has come, in order of arrival (R-TIME-4)."""
        found: dict[Key, Waiting] = {}
        while self._times and self._times[0][0] <= now:
            key = heapq.heappop(self._times)[2]
            waiting = self._tables.waiting.get(key)
            if waiting is not None:
                found[key] = waiting
        return sorted(found.items(), key=lambda row: row[1].since)

    def in_room(self, tenant: str, agent: str, room: str) -> list[tuple[Key, Waiting]]:
        """What waits for a room as an agent knows it, in order of arrival."""
        return list(self._rooms.get((tenant, agent, room), {}).items())

    def drafts_of(self, tenant: str, agent: str, room: str | None) -> Iterator[tuple[Key, Waiting]]:
        """An agent's drafts that wait, everywhere or in one room, in order of arrival."""
        for key, waiting in self._in_order():
            mine = waiting.tenant == tenant and waiting.agent == agent and waiting.kind is WaitKind.DRAFT
            if mine and room in (None, waiting.room):
                yield key, waiting
