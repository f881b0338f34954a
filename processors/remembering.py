"""Decides which of the values that a room has read, or a draft was made from, a text contains (R-EGR-1, R-EGR-5)."""

from __future__ import annotations

from dataclasses import dataclass

from turngate.processors.evidence import evidence_of
from turngate.processors.fingerprints import Finder, tags
from turngate.processors.ledger import Ledger
from turngate.processors.rows import ReadBy, Value
from turngate.processors.spelling import fits_text


@dataclass(frozen=True, slots=True)
class Reading:
    """A value, the ref and room of its reading, and the agent that has it."""

    value: Value
    ref: str
    room: str
    agent: str


class Remembered:
    """Values to look for, by their marks. Nothing here is state: it is built again from the rows."""

    def __init__(self) -> None:
        self._rows: list[ReadBy] = []
        self._by_mark: dict[str, dict[bytes, list[Reading]]] = {}
        self._beginnings: dict[str, set[bytes]] = {}
        #: Those that may be in any text.
        self._anywhere: list[Reading] = []

    def __bool__(self) -> bool:
        return bool(self._by_mark or self._anywhere)

    def follow(self, ledger: Ledger, room: str) -> bool:
        """Take in what the room has read since; whether all that was taken in still stands there."""
        table, count = ledger.tables.read_by, ledger.tables.reads_in.get((ledger.tenant, room)) or 0
        taken = len(self._rows)
        if taken > count or (taken and table.get((ledger.tenant, room, str(taken - 1))) is not self._rows[-1]):
            return False
        for place in range(taken, count):
            row = table.rows[ledger.tenant, room, str(place)]
            self._rows.append(row)
            self.add(ledger, row.ref, row.agent)
        return True

    def add(self, ledger: Ledger, ref: str, agent: str) -> None:
        """Look for the values of a tool result."""
        evidence = evidence_of(ledger, ref, agent)
        for value in () if evidence is None else evidence.values:
            reading = Reading(value, ref, "" if evidence is None else evidence.room, agent)
            if value.marks is None:
                self._anywhere.append(reading)
            for mark in value.marks or ():
                key_id, _, digits = mark.rpartition(":")
                fingerprint = bytes.fromhex(digits)
                self._by_mark.setdefault(key_id, {}).setdefault(fingerprint, []).append(reading)
                self._beginnings.setdefault(key_id, set()).update(tags([fingerprint]))

    def within(self, ledger: Ledger, texts: list[str]) -> list[Reading]:
        """Those that are in one of these texts and still known; all, where a text is too long to be looked through."""
        if not texts:
            return []
        found = list(self._anywhere)
        if not all(map(fits_text, texts)):
            found += [reading for by_mark in self._by_mark.values() for some in by_mark.values() for reading in some]
            texts = []
        for key_id, key in ledger.keys.fingerprint_keys(ledger.tenant) if texts else ():
            by_mark = self._by_mark.get(key_id)
            if by_mark:
                finder = Finder(key)
                for text in texts:
                    for mark in finder.find(text, by_mark, self._beginnings[key_id]):
                        found += by_mark[mark]
        live = (reading for reading in found if evidence_of(ledger, reading.ref, reading.agent) is not None)
        return list(dict.fromkeys(live))


def remembered(ledger: Ledger, room: str) -> Remembered:
    """The values that a room has read."""
    known: Remembered | None = ledger.caches.remembered.get(room)
    if known is None or not known.follow(ledger, room):
        known = ledger.caches.remembered[room] = Remembered()
        known.follow(ledger, room)
    return known
