"""A digest is that of a record's canonical JSON without defaults, as anybody can work it out (R-RET-2)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.strategies import BY_RECORD
from turngate.schemas.catalog import INPUT_TOPICS
from turngate.schemas.digests import audience_digest, authorized_digest, content_digest, decided_digest, trace_digest
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Audience

DIGESTS: dict[str, Any] = {
    "TurnDecided": decided_digest,
    "ContextDecided": decided_digest,
    "DecisionTraced": trace_digest,
}


def worked_out(value: Any) -> str:
    """By the library that the RFC's author wrote, of what pydantic makes of a record."""
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


@pytest.mark.parametrize("name", sorted(DIGESTS))
@given(data=st.data())
def test_a_records_digest_is_of_what_is_no_default(name: str, data: st.DataObject) -> None:
    record = data.draw(BY_RECORD[name])
    try:
        expected = worked_out(record.model_dump(mode="json", exclude_defaults=True))
    except rfc8785.IntegerDomainError:  # larger than what JSON's readers agree about
        with pytest.raises(ValueError, match="53-bit"):
            DIGESTS[name](record)
    else:
        assert DIGESTS[name](record) == expected


@given(BY_RECORD["TurnAuthorized"])
def test_of_what_is_let_out_neither_text_nor_action_is_digested_and_whoever_hears_it_by_a_digest(record: Any) -> None:
    rest = record.model_dump(mode="json", exclude_defaults=True, exclude={"text", "action", "destination"})
    heard = worked_out(record.destination.model_dump(mode="json"))
    assert audience_digest(record.destination) == heard
    assert authorized_digest(record) == authorized_digest(record, heard) == worked_out(rest | {"destination": heard})


@pytest.mark.parametrize("name", sorted({record.__name__ for records in INPUT_TOPICS.values() for record in records}))
@given(data=st.data())
def test_a_contents_digest_is_of_all_fields_but_when_it_was_sent(name: str, data: st.DataObject) -> None:  # R-TURN-8
    record = data.draw(BY_RECORD[name])
    assert content_digest(record) == worked_out(record.model_dump(mode="json", exclude={"at"}))
    assert content_digest(record.model_copy(update={"at": record.at + 1})) == content_digest(record)


def test_a_field_that_came_later_changes_no_digest_of_what_was_before() -> None:
    class Later(DecisionTraced):
        more: str | None = None
        many: tuple[str, ...] = ()

    before = DecisionTraced(tenant="acme", at=0, decision="d", policy="1", destination="x")
    assert trace_digest(Later.model_validate(before.model_dump())) == trace_digest(before)
    assert trace_digest(Later.model_validate(before.model_dump() | {"more": "x"})) != trace_digest(before)


def test_digests_stay_as_they_were_written() -> None:
    """What was chained must be found whole by every later version: these never change."""
    everyone = Audience(workspaces=("slack:T1",), readers=("slack:T1/UA",))
    told = {"tenant": "acme", "at": 5, "turn": "t", "agent": "mesh", "room": "slack:T1/C1", "decision": "d"}
    decided = TurnDecided(verdict="deliver", rendering=0, leaves_digest="l", policy="1", **told)
    assert decided_digest(decided) == worked_out(
        told | {"verdict": "deliver", "rendering": 0, "leaves_digest": "l", "policy": "1"}
    )
    authorized = TurnAuthorized(destination=everyone, text="so", **told)
    assert authorized_digest(authorized) == worked_out(told | {"destination": audience_digest(everyone)})
    answered = ContextDecided(tenant="acme", at=5, request="q", turn="t")
    assert decided_digest(answered) == worked_out({"tenant": "acme", "at": 5, "request": "q", "turn": "t"})
