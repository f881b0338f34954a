"""What is made without a look at its fields equals what validation makes of the same ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.schemas.strategies import BY_RECORD
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import DecisionTraced
from turngate.schemas.shapes import Position, Reason
from turngate.schemas.unchecked import unchecked

CODEC = Codec()


@pytest.mark.parametrize("name", sorted(BY_RECORD))
@given(data=st.data())
def test_it_is_the_record_that_validation_makes(name: str, data: st.DataObject) -> None:
    record = data.draw(BY_RECORD[name])
    fields = {field: getattr(record, field) for field in data.draw(st.permutations(list(vars(record))))}
    made = unchecked(type(record), **fields)
    assert made == record
    assert repr(made) == repr(record)  # its fields are in the same order
    assert made.model_dump_json(by_alias=True) == record.model_dump_json(by_alias=True)
    assert CODEC.encode(made) == CODEC.encode(record)
    assert made.model_copy(update={"at": 0}) == record.model_copy(update={"at": 0})


def test_what_is_not_given_is_the_default() -> None:
    told: dict[str, Any] = {"tenant": "acme", "at": 0, "decision": "d", "policy": "1", "destination": "x"}
    assert unchecked(DecisionTraced, **told) == DecisionTraced(**told)
    assert repr(unchecked(Reason, code="c")) == repr(Reason(code="c"))


def test_it_is_as_frozen_as_any_other() -> None:
    made = unchecked(Position, topic="ticks", partition=0, offset=1)
    with pytest.raises(ValidationError, match="frozen"):
        made.offset = 2  # type: ignore[misc]
    assert hash(made) == hash(Position(topic="ticks", partition=0, offset=1))
