"""What a shape accepts, and the one form that it then has."""

from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import ValidationError

from tests.schemas.strategies import audiences
from turngate.schemas.inputs import (
    ErasureCommanded,
    MembershipPage,
    MessageDeleted,
    ProofRevoked,
    SharingRequested,
    Tick,
)
from turngate.schemas.shapes import Audience, Scope

A, B, C = "slack:T1/UA", "slack:T1/UB", "slack:T2/UC"


def test_an_audience_is_in_order_however_it_is_made() -> None:
    given = {"readers": (B, A, B), "workspaces": ("slack:T2", "slack:T1"), "guests": (B, B)}
    more = {"memberships": {B: ("slack:T9", "slack:T3", "slack:T9"), A: ()}}
    for audience in (Audience(**given, **more), Audience.model_validate(given | more)):
        assert audience.readers == (A, B)
        assert audience.workspaces == ("slack:T1", "slack:T2")
        assert audience.guests == (B,)
        assert list(audience.memberships.items()) == [(A, ()), (B, ("slack:T3", "slack:T9"))]
    assert Audience(**given, **more) == Audience(
        readers=(A, B), workspaces=("slack:T1", "slack:T2"), guests=(B,), **more
    )


def test_the_shorthands_of_scenarios_and_policies() -> None:
    assert Audience.model_validate("public") == Audience(scope=Scope.PUBLIC)
    assert Audience.model_validate("unknown") == Audience(scope=Scope.UNKNOWN)
    assert Audience.model_validate({"workspace": "slack:T1"}) == Audience(workspaces=("slack:T1",))
    assert Audience.model_validate({"readers": [B, A]}) == Audience(readers=(A, B))


@given(audiences())
def test_an_audience_is_itself_when_it_is_taken_apart_and_put_together(audience: Audience) -> None:
    assert Audience.model_validate(audience.model_dump()) == audience
    inside = SharingRequested(tenant="a", at=0, agent="m", request="r", room=A, revision="x@1", audience=audience)
    assert inside.audience is audience


@pytest.mark.parametrize(
    "wrong",
    [
        "everyone",
        "listed,public",
        {"scope": "public", "readers": [A]},
        {"scope": "unknown", "workspaces": ["slack:T1"]},
        {"readers": [A], "guests": [B]},
        {"readers": [A], "memberships": {B: ["slack:T1"]}},
        {"readers": ["UA"]},
        {"readers": ["slack:T1"]},
        {"readers": ["slack:T1/"]},
        {"workspaces": ["T1"]},
        {"workspaces": ["slack:T1/C1"]},
        {"readers": A},
        7,
        None,
    ],
    ids=repr,
)
def test_what_is_no_audience(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Audience.model_validate(wrong)


@pytest.mark.parametrize("tenant", ["a", "acme", "a-1", "z" * 63, "0", "12"])
def test_tenants_and_partitions(tenant: str) -> None:
    assert Tick(tenant=tenant, at=0).tenant == tenant


@pytest.mark.parametrize("tenant", ["", "A", "-a", "a_b", "a b", "z" * 64, "1a", "acme\n", "ácme", " a"])
def test_what_is_no_tenant(tenant: str) -> None:
    with pytest.raises(ValidationError):
        Tick(tenant=tenant, at=0)


@pytest.mark.parametrize("at", [-(2**47) - 1, 253_402_300_800_000, 1.5, "soon", None])
def test_what_is_no_time(at: object) -> None:
    with pytest.raises(ValidationError):
        Tick.model_validate({"tenant": "a", "at": at})


def test_a_message_lies_under_its_room() -> None:
    fields = {"tenant": "a", "at": 0, "agent": "m", "room": "slack:T1/C1"}
    MessageDeleted(**fields, message="slack:T1/C1/17.1")
    for elsewhere in ("slack:T1/C2/17.1", "slack:T1/C10/17.1", "slack:T1/C1", "slack:T1/C1/"):
        with pytest.raises(ValidationError):
            MessageDeleted(**fields, message=elsewhere)


@pytest.mark.parametrize("names", [{}, {"room": A, "memory": "m"}, {"room": A, "reader": A, "memory": "m"}])
def test_an_erasure_names_exactly_one_thing(names: dict[str, str]) -> None:
    fields = {"tenant": "a", "at": 0, "command": "c", "operator": "o"}
    with pytest.raises(ValidationError, match="exactly one"):
        ErasureCommanded(**fields, **names)
    assert ErasureCommanded(**fields, reader=A).reader == A


@pytest.mark.parametrize("page", [-1, 1_000_000])
def test_a_page_is_a_number_from_0(page: int) -> None:
    fields = {"tenant": "a", "at": 0, "agent": "m", "room": A, "refresh": "r", "last": True, "started_at": 0}
    assert MembershipPage(**fields, page=999_999).page == 999_999
    with pytest.raises(ValidationError, match="page"):
        MembershipPage(**fields, page=page)


def test_fields_that_nobody_knows_are_ignored() -> None:
    assert ProofRevoked.model_validate({"tenant": "a", "at": 0, "proof": "p", "mood": "good"}) == ProofRevoked(
        tenant="a", at=0, proof="p"
    )
