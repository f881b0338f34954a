"""Decides what is forgotten when, and what is too old to be taken up (R-RET-1, R-RET-4)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from turngate.processors.ledger import Ledger
from turngate.processors.readings import forget
from turngate.processors.rows import Started
from turngate.processors.shelves import Shelf
from turngate.processors.state import Key, Table
from turngate.processors.tables import Tables
from turngate.schemas.outputs import Forgotten, RoomForgotten

#: So many rows past their time are removed with one record, so that no record waits for a long clean-up.
_SWEEP = 64
R = TypeVar("R")


def over_age(ledger: Ledger, room: str, since: int) -> bool:
    """Whether what happened or was observed at `since` counts no more, nor is taken up any more (R-RET-4)."""
    return ledger.now - since >= ledger.policy(room).kept_for


def takes_up(ledger: Ledger, ref: str, agent: str, room: str, at: int) -> bool:
    """Whether an observation or result is new: neither too old nor one that was forgotten with its room."""
    return not over_age(ledger, room, at) and (ledger.tenant, ref, agent) not in ledger.tables.gone


def room_ends(ledger: Ledger, room: str, row: Started) -> int:
    """When a room is forgotten if nothing happens there."""
    retention = ledger.policy(room).settings.retention
    if row.active_at is None:
        return row.at + retention.room_empty
    return row.active_at + retention.room_inactive


class Calendar:
    """When which room ends: an index over the rows, made anew on demand."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._ends: list[tuple[int, Key]] = []
        self._noted: dict[Key, int] = {}

    def index(self, ledger_of: Callable[[str], Ledger]) -> None:
        """Find anew what ends when, after the rows were loaded or undone."""
        self._ends, self._noted = [], {}
        for key in self._tables.started.rows:
            self.note_room(ledger_of(key[0]), key[1])

    def note_room(self, ledger: Ledger, room: str) -> None:
        """Note when a room would end; a later end is found when the earlier one comes."""
        key = (ledger.tenant, room)
        ends = room_ends(ledger, room, self._tables.started.rows[key])
        noted = self._noted.get(key)
        if noted is None or ends < noted:
            self._noted[key] = ends
            heapq.heappush(self._ends, (ends, key))

    def note_all(self, ledger: Ledger) -> None:
        """Note anew when each of a tenant's rooms would end: a policy may have shortened it (R-POL-1)."""
        for key in self._tables.started.rows:
            if key[0] == ledger.tenant:
                self.note_room(ledger, key[1])

    def ended(self, now: int, ledger_of: Callable[[str], Ledger]) -> list[tuple[int, Key]]:
        """Rooms that have ended, with the arrival from which they waited."""
        found: list[tuple[int, Key]] = []
        while self._ends and self._ends[0][0] <= now:
            noted, key = heapq.heappop(self._ends)
            row = self._tables.started.get(key)
            if self._noted.get(key) != noted:
                continue
            del self._noted[key]
            if row is None:  # a record that was refused had named it
                continue
            ledger = ledger_of(key[0])
            if room_ends(ledger, key[1], row) <= now:
                found.append((row.arrival if row.active_arrival is None else row.active_arrival, key))
            else:
                self.note_room(ledger, key[1])
        return found


def forget_room(ledger: Ledger, room: str) -> None:
    """A room's time is over: its evidence, its listings and its policy go with it; the ids remain known (R-RET-1)."""
    tables, key = ledger.tables, (ledger.tenant, room)
    retention = ledger.policy(room).settings.retention
    row = tables.started.rows[key]
    for known in tables.shelves.in_room(*key):
        at = tables.evidence.rows[known].at
        tables.evidence.drop(known)
        tables.gone.put(known, max(at, ledger.now) + retention.messages)
    log = ledger.room_log(room)
    for agent in log.agents:
        _forget_listings(ledger, agent, room)
    tables.room_logs.drop(key)
    forget(ledger, room)
    tables.started.drop(key)
    because = Forgotten.EMPTY if row.active_at is None else Forgotten.INACTIVE
    ledger.emit(RoomForgotten(tenant=ledger.tenant, at=ledger.now, room=room, because=because))


def _forget_listings(ledger: Ledger, agent: str, room: str) -> None:
    tables, key = ledger.tables, (ledger.tenant, agent, room)
    for refresh in ledger.room(agent, room).open_refreshes:
        under_way = tables.refreshes.get((ledger.tenant, refresh))
        for page in () if under_way is None else under_way.pages:
            tables.pages.drop((ledger.tenant, refresh, str(page)))
        tables.refreshes.drop((ledger.tenant, refresh))
    tables.rooms.drop(key)
    tables.rosters.drop(key)


class Ages:
    """Rows that are removed some time after they came, the oldest first: an index over the rows, made anew on demand.

    The order is that of age and key, never that in which a table happens to hold its rows: after a restart that is
    another, and the same rows must be removed with the same record (R-RUN-3).
    """

    def __init__(self, tables: Tables) -> None:
        self._ages: dict[str, Callable[[Any], int]] = {
            tables.gone.name: int,
            tables.contexts.name: lambda row: int(row.seen),
            tables.turns.name: lambda row: int(row.seen),
        }
        self._tables = tables
        #: Of which it wants to know what is written.
        self.tables = tuple(self._ages)
        self._heaps: dict[str, list[tuple[int, Key]]] = {}
        self._quiet: dict[str, int] = {}
        self.index()

    def index(self) -> None:
        """Find anew how old everything is, after the rows were loaded or undone."""
        for name, age in self._ages.items():
            rows = self._tables.state.tables[name].rows
            heap = self._heaps[name] = [(age(row), key) for key, row in rows.items()]
            heapq.heapify(heap)
        self.look_again()

    def look_again(self) -> None:
        """A policy has come: what was to be kept for long may be over now."""
        self._quiet.clear()

    def note(self, written: Iterable[tuple[str, Key, Any]]) -> None:
        """Note rows that are new, or as of another time than before."""
        for name, key, before in written:
            age = self._ages.get(name)
            row = None if age is None else self._tables.state.tables[name].rows.get(key)
            if age is None or row is None:
                continue
            entry = (age(row), key)
            if before is None or age(before) != entry[0]:
                heapq.heappush(self._heaps[name], entry)
                if self._heaps[name][0] == entry:
                    self._quiet.pop(name, None)

    def over(self, table: Table[R], until: Callable[[Key, R], int | None], now: int) -> Iterable[tuple[Key, R]]:
        """A few rows whose time is over; the first that is not, or has no end (None), ends the search."""
        # Nothing is over until the oldest is, and that was looked at before.
        quiet = not self._heaps[table.name] or now < self._quiet.get(table.name, now)
        return () if quiet else self._over(table, until, now)

    def _over(self, table: Table[R], until: Callable[[Key, R], int | None], now: int) -> Iterator[tuple[Key, R]]:
        heap, age = self._heaps[table.name], self._ages[table.name]
        for _ in range(_SWEEP):
            if not heap:
                return
            seen, key = heap[0]
            row = table.get(key)
            if row is not None and age(row) == seen:
                end = until(key, row)
                if end is None or end > now:
                    self._quiet[table.name] = now if end is None else end
                    return
                heapq.heappop(heap)
                yield key, row
            else:
                heapq.heappop(heap)


class Endings:
    """Which evidence ends next: an index over the shelves, made anew on demand.

    Of each shelf it knows when its oldest row ends. The order is that of the ends, then of the shelf, then of age and
    name, so that a restart changes nothing in it.
    """

    def __init__(self, tables: Tables) -> None:
        self._shelves = tables.shelves
        self.tables = (tables.evidence.name,)
        self._ends: list[tuple[int, Shelf]] = []
        self._noted: dict[Shelf, int] = {}

    def index(self, ledger_of: Callable[[str], Ledger], tenant: str | None = None) -> None:
        """Find anew what ends when: all, after the rows were loaded or undone; a tenant's, when its policy changes."""
        if tenant is None:
            self._ends, self._noted = [], {}
        for shelf in self._shelves.shelves(tenant):
            self._note(shelf, ledger_of)

    def note(self, written: Iterable[tuple[str, Key, Any]], ledger_of: Callable[[str], Ledger]) -> None:
        """Evidence was written: a shelf that was empty, or not known of, has an oldest row."""
        for name, key, _ in written:
            if name in self.tables:
                row = self._shelves.get(key)
                shelf = None if row is None else Shelf(key[0], key[2], row.room)
                if shelf is not None and shelf not in self._noted:
                    self._note(shelf, ledger_of)

    def _note(self, shelf: Shelf, ledger_of: Callable[[str], Ledger]) -> None:
        oldest = self._shelves.oldest(shelf)
        if oldest is not None:
            ends = _kept(ledger_of, shelf.tenant, shelf.room, oldest[1])
            if ends < self._noted.get(shelf, ends + 1):
                self._noted[shelf] = ends
                heapq.heappush(self._ends, (ends, shelf))

    def over(self, now: int, ledger_of: Callable[[str], Ledger]) -> Iterator[Key]:
        """A few keys whose time is over; each row must be gone before the next is asked for."""
        left = _SWEEP
        while left and self._ends and self._ends[0][0] <= now:
            noted, shelf = heapq.heappop(self._ends)
            if self._noted.get(shelf) != noted:
                continue
            del self._noted[shelf]
            oldest = self._shelves.oldest(shelf)
            if oldest is not None and _kept(ledger_of, shelf.tenant, shelf.room, oldest[1]) == noted:
                left -= 1
                yield oldest[0]
            self._note(shelf, ledger_of)


def sweep(tables: Tables, ages: Ages, endings: Endings, now: int, ledger_of: Callable[[str], Ledger]) -> None:
    """Remove a few rows whose time is over and that no decision looks at any more, the oldest first (R-RET-4)."""
    for key in endings.over(now, ledger_of):
        row = tables.evidence.rows[key]
        tables.evidence.drop(key)
        if row.at > row.seen:  # told before its own time: a redelivery would be taken up
            tables.gone.put(key, _kept(ledger_of, key[0], row.room, row.at))
    for key, _ in ages.over(tables.gone, lambda _, until: until, now):
        tables.gone.drop(key)
    # What still waits is looked at once more, however short a time the policy keeps it.
    for key, _ in ages.over(
        tables.contexts, lambda k, row: None if row.waiting else row.seen + _log(ledger_of, k), now
    ):
        tables.contexts.drop(key)
    for key, _ in ages.over(tables.turns, lambda k, row: None if row.waiting else row.seen + _log(ledger_of, k), now):
        tables.turns.drop(key)


def _kept(ledger_of: Callable[[str], Ledger], tenant: str, room: str, since: int) -> int:
    """Until when evidence may be looked at (R-RET-4)."""
    return since + ledger_of(tenant).policy(room).settings.retention.messages


def _log(ledger_of: Callable[[str], Ledger], key: Key) -> int:
    """How long a turn or request is known: a turn proves the agent's own message, which may be read again at any time.

    At least as long as a draft is taken up, so that one told again is never decided again (R-AUD-7, R-RET-4, R-RUN-4).
    """
    retention = ledger_of(key[0]).policy(None).settings.retention
    return max(retention.log, retention.messages)
