"""Contract section 8: what a record's fields become before they are encoded."""

from __future__ import annotations

import pytest

from turngate.schemas.codec import Codec
from turngate.schemas.inputs import AuthorKind, MemberKind, MemoryWrite, MessageObserved, TurnDrafted, WriteBy, WriteOp
from turngate.streams.scenarios.errors import Wrong
from turngate.streams.scenarios.shapes import action_fingerprint, filled
from turngate.streams.scenarios.times import EPOCH

PAGE = {"at": "1s", "room": "slack:T1/D1", "refresh": "r1", "started_at": "1s"}
MESSAGE = {"at": "1s", "room": "slack:T1/D1", "message": "slack:T1/D1/1", "author": "slack:T1/UALEX"}


def test_what_a_message_leaves_out_has_the_fill_ins() -> None:
    record = Codec().decode(Codec().encode_fields("MessageObserved", filled("MessageObserved", MESSAGE)))
    assert isinstance(record, MessageObserved)
    assert (record.tenant, record.agent, record.at) == ("acme", "mesh", EPOCH + 1000)
    assert record.author_kind is AuthorKind.PERSON
    assert (record.edited, record.quotes, record.text) == (False, (), None)


def test_a_page_is_the_first_and_the_last_and_a_bare_id_is_a_member() -> None:
    guest = {"reader": "slack:T1/UKIM", "kind": "guest"}
    record = filled("MembershipPage", {**PAGE, "members": ["slack:T1/UALEX", guest]})
    assert (record["page"], record["last"]) == (0, True)
    assert record["members"] == [
        {"reader": "slack:T1/UALEX", "kind": "member", "workspaces": []},
        {"reader": "slack:T1/UKIM", "kind": "guest", "workspaces": []},
    ]
    assert "info" not in record  # an optional field stays missing: missing is not empty


def test_a_write_is_a_created_note_by_a_turn() -> None:
    fields = {"at": "1s", "write": "w1", "memory": "m", "revision": "m@1"}
    record = Codec().decode(Codec().encode_fields("MemoryWrite", filled("MemoryWrite", fields)))
    assert isinstance(record, MemoryWrite)
    assert (record.op, record.by, record.kind) == (WriteOp.CREATE, WriteBy.TURN, "note")


def test_an_agent_is_filled_in_only_where_it_is_not_optional() -> None:
    joined = {"at": "1s", "room": "slack:T1/D1", "reader": "slack:T1/UKIM", "change": "joined"}
    assert "agent" not in filled("MembershipChanged", joined)
    assert filled("MembershipChanged", joined)["kind"] == MemberKind.MEMBER


def test_text_is_one_rendering() -> None:
    draft = {"at": "1s", "turn": "t1", "room": "slack:T1/D1", "text": "hi"}
    record = Codec().decode(Codec().encode_fields("TurnDrafted", filled("TurnDrafted", draft)))
    assert isinstance(record, TurnDrafted)
    assert [(r.text, r.request, r.exposed) for r in record.renderings] == [("hi", None, None)]


def test_text_beside_renderings_is_a_mistake() -> None:
    draft = {"at": "1s", "turn": "t1", "room": "slack:T1/D1", "text": "hi", "renderings": []}
    with pytest.raises(Wrong, match="text or renderings, not both"):
        filled("TurnDrafted", draft)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("public", {"scope": "public"}),
        ("unknown", {"scope": "unknown"}),
        ({"workspace": "slack:T1"}, {"scope": "listed", "workspaces": ["slack:T1"]}),
        ({"readers": ["slack:T1/UALEX"]}, {"scope": "listed", "readers": ["slack:T1/UALEX"]}),
    ],
)
def test_an_audience_has_its_shorthands(written: object, meant: dict[str, object]) -> None:
    call = {"at": "1s", "room": "slack:T1/D1", "call": "c1", "server": "box", "operation": "get", "audience": written}
    audience = filled("ToolReturned", call)["audience"]
    assert audience == {"scope": "", "workspaces": [], "readers": [], "guests": [], "memberships": {}} | meant


def test_a_fingerprint_given_as_an_action_is_its_hash() -> None:
    # SHA-256 of {"operation":"crm.refund","params":{"amount":"100"},"skill":"pay"}, computed apart from this code
    action = {"operation": "crm.refund", "skill": "pay", "params": {"amount": "100"}}
    expected = "b11703f7a26b4fbc0faf71d1cb1932ead9a2c04a057434878a60c50cf41349df"
    assert action_fingerprint(action) == expected
    approval = {"at": "1s", "approval": "a1", "by": "slack:T1/UALEX", "room": "slack:T1/D1", "fingerprint": action}
    assert filled("ActionApproved", approval)["fingerprint"] == expected


def test_a_fingerprint_of_a_number_is_a_mistake_since_values_are_text() -> None:
    with pytest.raises(Wrong, match="put it in quotes"):
        action_fingerprint({"operation": "crm.refund", "params": {"amount": 100}})


def test_a_field_that_the_record_does_not_have_is_named_with_those_it_has() -> None:
    with pytest.raises(Wrong, match=r"MessageObserved has no field 'mesage'; it has .*message"):
        filled("MessageObserved", {"at": "1s", "mesage": "x"})
    with pytest.raises(Wrong, match=r"MembershipPage\.members\[0\] has no field 'id'"):
        filled("MembershipPage", {**PAGE, "members": [{"id": "slack:T1/UALEX"}]})


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(Wrong, match=r"MembershipPage\.started_at: 'soon' is no time"):
        filled("MembershipPage", {**PAGE, "started_at": "soon"})


def test_a_value_of_another_type_is_left_for_the_pipeline_to_refuse() -> None:
    assert filled("MessageObserved", {**MESSAGE, "author_kind": "robot", "quotes": "none"})["author_kind"] == "robot"
