"""Whom two audiences both cover (R-AUD-9), and whom a listing covers whatever happened since (R-ROOM-4, R-ROOM-6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.accounts import Joiner
from turngate.processors.audience import Sets, covers, full_in, intersection, listed
from turngate.processors.bounds import Bounds, Listed
from turngate.schemas.shapes import Audience

_WORKSPACES = ("slack:T1", "slack:T2", "slack:T3")
_READERS = tuple(f"{workspace}/U{n}" for workspace in _WORKSPACES for n in range(3))


@st.composite
def _audiences(draw: st.DrawFn) -> Audience:
    readers = draw(st.sets(st.sampled_from(_READERS)))
    some = st.sampled_from(_WORKSPACES)
    further = {reader: tuple(draw(st.sets(some, max_size=2))) for reader in readers}
    return listed(
        readers, draw(st.sets(st.sampled_from(_READERS), max_size=3)), draw(st.sets(some, max_size=2)), further
    )


@given(_audiences(), _audiences())
def test_whom_both_cover(a: Audience, b: Audience) -> None:
    both = intersection(a, b)
    mine = {r for r in a.readers if covers(b, r, full_in(a, r))}
    theirs = {r for r in b.readers if covers(a, r, full_in(b, r))}
    assert set(both.readers) == mine | theirs
    assert set(both.workspaces) == set(a.workspaces) & set(b.workspaces)
    assert set(both.guests) == {*a.guests, *b.guests} & (mine | theirs)


@st.composite
def _joiners(draw: st.DrawFn) -> Joiner:
    reader = draw(st.sampled_from(_READERS))
    own, further = reader.partition("/")[0], draw(st.sets(st.sampled_from(_WORKSPACES), max_size=2))
    guest = draw(st.booleans())
    return Joiner(reader, guest=guest, full=() if guest else (own, *sorted(further)))


@given(_audiences(), st.sets(st.sampled_from(_READERS)), st.lists(_joiners(), max_size=4), _joiners())
def test_what_a_listing_settles_the_bounds_say_too(
    audience: Audience, left: set[str], joins: list[Joiner], joiner: Joiner
) -> None:
    by_listing = Listed(audience)
    bounds = Bounds(by_listing, frozenset(left), tuple(joins), Sets(), joined=False)
    assert by_listing.settles(joiner) in (None, bounds.cover(joiner))


def test_a_listing_settles_who_is_inside_and_who_is_not_and_not_who_may_have_left() -> None:
    by_listing = Listed(listed(("slack:T2/U0",), (), ("slack:T1",), {}))
    joiners = [
        Joiner(f"slack:{team}/U{n}", guest=False, full=(f"slack:{team}",))
        for team, n in (("T1", 5), ("T3", 5), ("T2", 0))
    ]
    assert [by_listing.settles(joiner) for joiner in joiners] == [True, False, None]
