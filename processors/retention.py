"""Decides what is forgotten when, and what is too old to be taken up (R-RET-1, R-RET-4)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

from turngate.processors.ledger import Ledger
from turngate.processors.readings import forget
from turngate.processors.rows import Started, Tables
from turngate.processors.state import Key
from turngate.schemas.outputs import Forgotten, RoomForgotten

#: So many rows past their time are removed with one record, so that no record waits for a long clean-up.
_SWEEP = 64
R = TypeVar("R")


def too_old(ledger: Ledger, room: str, at: int) -> bool:
    """Whether what happened at `at` is not taken up any more, so that no id need be kept longer (R-RET-4)."""
    return ledger.now - at >= ledger.policy(room).settings.retention.messages


def takes_up(ledger: Ledger, ref: str, agent: str, room: str, at: int) -> bool:
    """Whether an observation or result is new: neither too old nor one that was forgotten with its room."""
    return not too_old(ledger, room, at) and (ledger.tenant, ref, agent) not in ledger.tables.gone


def room_ends(ledger: Ledger, room: str, row: Started) -> int:
    """When a room is forgotten if nothing happens there."""
    retention = ledger.policy(room).settings.retention
    if row.active_at is None:
        return row.at + retention.room_empty
    return row.active_at + retention.room_inactive


class Calendar:
    """When which room ends, and what was said in it: an index over the rows, made anew on demand."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._ends: list[tuple[int, Key]] = []
        self._noted: dict[Key, int] = {}
        self._said: dict[Key, list[Key]] = {}

    def index(self, ledger_of: Callable[[str], Ledger]) -> None:
        """Find anew what ends when, after the rows were loaded or undone."""
        self._ends, self._noted, self._said = [], {}, {}
        for key in self._tables.started.rows:
            self.note_room(ledger_of(key[0]), key[1])
        for key, row in self._tables.evidence.rows.items():
            self._said.setdefault((key[0], row.room), []).append(key)

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

    def note_evidence(self, key: Key, room: str) -> None:
        """Note what was said or read in a room."""
        self._said.setdefault((key[0], room), []).append(key)

    def ended(self, now: int, ledger_of: Callable[[str], Ledger]) -> list[tuple[int, Key]]:
        """Rooms that have ended, with the arrival from which they waited."""
        found: list[tuple[int, Key]] = []
        while self._ends and self._ends[0][0] <= now:
            noted, key = heapq.heappop(self._ends)
            row = self._tables.started.get(key)
            if self._noted.get(key) != noted or row is None:
                continue
            del self._noted[key]
            ledger = ledger_of(key[0])
            if room_ends(ledger, key[1], row) <= now:
                found.append((row.arrival if row.active_arrival is None else row.active_arrival, key))
            else:
                self.note_room(ledger, key[1])
        return found

    def said_in(self, key: Key) -> list[Key]:
        """The evidence of a room, which is asked for once, when the room is forgotten."""
        return self._said.pop(key, [])


def forget_room(ledger: Ledger, room: str, said: list[Key]) -> None:
    """A room's time is over: its evidence, its listings and its policy go with it; the ids remain known (R-RET-1)."""
    tables, key = ledger.tables, (ledger.tenant, room)
    retention = ledger.policy(room).settings.retention
    row = tables.started.rows[key]
    for known in said:
        evidence = tables.evidence.get(known)
        if evidence is not None and evidence.room == room:
            tables.evidence.drop(known)
            tables.known_by.drop((known[0], known[1]))
            tables.gone.put(known, max(evidence.at, ledger.now) + retention.messages)
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


def sweep(tables: Tables, now: int, ledger_of: Callable[[str], Ledger]) -> None:
    """Remove a few rows whose time is over and that no decision looks at any more, the oldest first (R-RET-4)."""
    for key in list(_over(tables.evidence.rows, now, lambda k, row: _kept(ledger_of, k, row.room, row.seen))):
        row = tables.evidence.rows[key]
        tables.evidence.drop(key)
        tables.known_by.drop((key[0], key[1]))
        if row.at > row.seen:  # told before its own time: a redelivery would be taken up
            tables.gone.put(key, _kept(ledger_of, key, row.room, row.at))
    for key in list(_over(tables.gone.rows, now, lambda _, until: until)):
        tables.gone.drop(key)
    for key in list(_over(tables.contexts.rows, now, lambda k, row: row.seen + _log(ledger_of, k))):
        tables.contexts.drop(key)
    for key in list(_over(tables.turns.rows, now, lambda k, row: row.seen + _log(ledger_of, k))):
        tables.turns.drop(key)


def _kept(ledger_of: Callable[[str], Ledger], key: Key, room: str, since: int) -> int:
    """Until when evidence may be looked at (R-RET-4)."""
    return since + ledger_of(key[0]).policy(room).settings.retention.messages


def _log(ledger_of: Callable[[str], Ledger], key: Key) -> int:
    """How long a turn proves the agent's own message, which may be read again at any time (R-AUD-7, R-RET-2)."""
    return ledger_of(key[0]).policy(None).settings.retention.log


def _over(rows: dict[Key, R], now: int, until: Callable[[Key, R], int]) -> Iterator[Key]:
    """The first few rows, in order of age, whose time is over."""
    for key, row in islice(rows.items(), _SWEEP):
        if until(key, row) > now:
            return
        yield key
