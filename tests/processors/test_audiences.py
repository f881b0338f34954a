"""What two audiences both cover is exactly whom each of them covers as the other knows them (R-AUD-9)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.audience import covers, full_in, intersection, listed
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
