"""Decides what of a record about somebody's health is appended: that it is there, and nothing of what it says.

Whoever appends for an agent (client, gateway, proxy) asks this first, so that such values lie in no topic. The engine
keeps nothing of them either (R-MEM-6) and refuses by their presence alone (R-EGR-6).
"""

from __future__ import annotations

from typing import TypeVar

from turngate.schemas.inputs import MemoryWrite, Record, ToolReturned
from turngate.schemas.shapes import ValueField

R = TypeVar("R", bound=Record)


def without_health(record: R) -> R:
    """The record as it may be appended: no value of a `health` field, no text of a `health` write.

    A field keeps its name, class and subject, and its value becomes empty. Any other record is returned as it is.
    """
    if isinstance(record, ToolReturned) and any(field.health for field in record.fields):
        return record.model_copy(update={"fields": tuple(map(_emptied, record.fields))})
    if isinstance(record, MemoryWrite) and record.health:
        return record.model_copy(update={"text": None})
    return record


def _emptied(field: ValueField) -> ValueField:
    return field.model_copy(update={"value": ""}) if field.health else field
