"""Decides what is remembered of the values that a room read: keyed fingerprints, never a value (R-EGR-1)."""

from __future__ import annotations

from collections.abc import Iterator

from turngate.processors.fingerprints import fingerprints
from turngate.processors.ledger import Ledger
from turngate.processors.rows import ReadBy, Value
from turngate.processors.spelling import fits_value
from turngate.schemas.inputs import ToolReturned
from turngate.schemas.shapes import FieldClass, ValueField

#: So many readings of a room are kept before those whose evidence has ended are dropped from its list.
_FIRST_CLEANUP = 64


def values_of(ledger: Ledger, record: ToolReturned) -> tuple[Value, ...]:
    """The result's fields that are more than public, or about somebody's health, each once."""
    some = (f for f in record.fields if f.health or f.class_ is not FieldClass.PUBLIC)
    return tuple(dict.fromkeys(_value(ledger, field) for field in some))


def _value(ledger: Ledger, field: ValueField) -> Value:
    return Value(field.name, field.class_, field.subject, field.health, _marks(ledger, field))


def _marks(ledger: Ledger, field: ValueField) -> tuple[str, ...] | None:
    if field.class_ is FieldClass.PUBLIC or field.health:  # R-MEM-6: nothing of it is kept
        return ()
    key = next(iter(ledger.keys.fingerprint_keys(ledger.tenant)), None)
    if key is None or not fits_value(field.value):
        return None
    return tuple(f"{key[0]}:{mark.hex()}" for mark in fingerprints(field.value, key[1]))


def note(ledger: Ledger, record: ToolReturned, ref: str) -> None:
    """The room has read values that are looked for in whatever is drafted for it."""
    key = (ledger.tenant, record.room)
    count = ledger.tables.reads_in.get(key) or 0
    if count >= _FIRST_CLEANUP and count.bit_count() == 1:
        count = _tidy(ledger, record.room, count)
    ledger.tables.read_by.put((*key, str(count)), ReadBy(ref, record.agent))
    ledger.tables.reads_in.put(key, count + 1)


def _tidy(ledger: Ledger, room: str, count: int) -> int:
    """Keep only readings of which there is still evidence."""
    live = [row for row in _rows(ledger, room) if (ledger.tenant, row.ref, row.agent) in ledger.tables.evidence]
    forget(ledger, room)
    for place, row in enumerate(live):
        ledger.tables.read_by.put((ledger.tenant, room, str(place)), row)
    return len(live)


def forget(ledger: Ledger, room: str) -> None:
    """The room's time is over (R-RET-1)."""
    key = (ledger.tenant, room)
    for place in range(ledger.tables.reads_in.get(key) or 0):
        ledger.tables.read_by.drop((*key, str(place)))
    ledger.tables.reads_in.drop(key)


def _rows(ledger: Ledger, room: str) -> Iterator[ReadBy]:
    for place in range(ledger.tables.reads_in.get((ledger.tenant, room)) or 0):
        yield ledger.tables.read_by.rows[ledger.tenant, room, str(place)]
