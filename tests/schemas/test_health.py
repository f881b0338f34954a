"""What is said about somebody's health is on no topic; that it was said is (R-MEM-6, R-EGR-6)."""

from __future__ import annotations

from typing import Any

import pytest

from turngate.schemas.catalog import RECORDS
from turngate.schemas.codec import Codec
from turngate.schemas.health import without_health
from turngate.schemas.inputs import MemoryWrite, Record, ToolReturned

SAID = "penicillin"


def a(record: str, **fields: Any) -> Record:
    return RECORDS[record].model_validate({"tenant": "acme", "at": 0, "agent": "mesh", **fields})


def returned(*fields: dict[str, Any]) -> Record:
    return a("ToolReturned", room="slack:T1/C1", call="c1", server="crm", operation="read", fields=fields)


def write(**fields: Any) -> Record:
    named = {"write": "w1", "memory": "m", "revision": "m@1", "op": "create", "by": "turn", "kind": "note"}
    return a("MemoryWrite", **named, text=f"is allergic to {SAID}", **fields)


def test_a_tool_s_health_fields_lose_their_values_and_nothing_else() -> None:
    allergy = {"name": "allergy", "value": SAID, "class": "personal", "subject": "slack:T1/UALEX", "health": True}
    name = {"name": "name", "value": "Alex", "class": "personal"}
    kept = without_health(returned(allergy, name))
    assert isinstance(kept, ToolReturned)
    assert kept == returned({**allergy, "value": ""}, name)
    assert SAID.encode() not in Codec().encode(kept)
    assert b"Alex" in Codec().encode(kept)


def test_a_health_write_loses_its_text() -> None:
    kept = without_health(write(health=True))
    assert isinstance(kept, MemoryWrite)
    assert (kept.text, kept.health, kept.revision) == (None, True, "m@1")
    assert SAID.encode() not in Codec().encode(kept)


@pytest.mark.parametrize("record", [returned({"name": "city", "value": "Lisbon"}), returned(), write()])
def test_what_is_not_about_health_is_what_it_was(record: Record) -> None:
    assert without_health(record) is record
