"""Decides whether one audience lies within another, and what two audiences both cover (R-AUD-1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyroaring import BitMap

from turngate.schemas.digests import audience_digest
from turngate.schemas.shapes import Audience, Scope

PUBLIC = Audience.model_construct(scope=Scope.PUBLIC, workspaces=(), readers=(), guests=(), memberships={})
UNKNOWN = Audience.model_construct(scope=Scope.UNKNOWN, workspaces=(), readers=(), guests=(), memberships={})


def namespace(reader: str) -> str:
    """The workspace that a reader's id names: `slack:T1` of `slack:T1/UALEX`."""
    return reader[: reader.index("/")]


def listed(
    readers: Iterable[str],
    guests: Iterable[str] = (),
    workspaces: Iterable[str] = (),
    memberships: Mapping[str, tuple[str, ...]] | None = None,
) -> Audience:
    """A listed audience from parts that may be in any order. Memberships of guests and of the unlisted are left out."""
    everyone = set(readers)
    marked = everyone & set(guests)
    further = {r: m for r, m in (memberships or {}).items() if m and r in everyone and r not in marked}
    return Audience.model_construct(
        scope=Scope.LISTED,
        workspaces=tuple(sorted(set(workspaces))),
        readers=tuple(sorted(everyone)),
        guests=tuple(sorted(marked)),
        memberships={r: tuple(sorted(set(further[r]))) for r in sorted(further)},
    )


@dataclass(frozen=True, slots=True)
class Keyed:
    """An audience with a key that names it: equal keys, equal audiences."""

    audience: Audience
    key: str


def keyed(audience: Audience) -> Keyed:
    """An audience with its address."""
    return Keyed(audience, audience_digest(audience))


KEYED_UNKNOWN = keyed(UNKNOWN)


def intersection(a: Audience, b: Audience) -> Audience:
    """What both cover: workspaces in both, and readers of either side whom the other covers (R-AUD-9, R-POL-1)."""
    if a.scope is Scope.PUBLIC or b.scope is Scope.UNKNOWN:
        return b
    if b.scope is Scope.PUBLIC or a.scope is Scope.UNKNOWN:
        return a
    readers = _covered_by(b, a) | _covered_by(a, b)
    guests = (set(a.guests) | set(b.guests)) & readers
    memberships = {**b.memberships, **a.memberships}  # of a source, they decide nothing
    return listed(readers, guests, set(a.workspaces) & set(b.workspaces), memberships)


def _covered_by(other: Audience, audience: Audience) -> set[str]:
    """The readers of an audience whom another covers, as `covers` says it of one."""
    found = set(other.readers).intersection(audience.readers)
    if other.workspaces:
        guests, inside = set(audience.guests), set(other.workspaces)
        for reader in audience.readers:
            full = (namespace(reader), *audience.memberships.get(reader, ()))
            if reader not in guests and not inside.isdisjoint(full):
                found.add(reader)
    return found


def says_all(a: Audience, b: Audience) -> bool:
    """Whether whoever lies within the intersection lies within both.

    Not so where a reader whom only one of the two lists is a full member to the other: the destination may know them as
    a guest, of whom the other permits nothing.
    """
    if a.scope is not Scope.LISTED or b.scope is not Scope.LISTED:
        return True
    mine, theirs = set(a.readers), set(b.readers)
    return (not b.workspaces or mine <= theirs) and (not a.workspaces or theirs <= mine)


def full_in(audience: Audience, reader: str) -> tuple[str, ...]:
    """The workspaces of which a reader is a full member, as this audience has it; none for a guest."""
    if reader in audience.guests:
        return ()
    return (namespace(reader), *audience.memberships.get(reader, ()))


def covers(audience: Audience, reader: str, full: Iterable[str]) -> bool:
    """Whether a listed audience permits a reader who is a full member of the workspaces `full`."""
    return reader in audience.readers or any(w in audience.workspaces for w in full)


class Sets:
    """One tenant's audiences as sets of small integers, so that `D ⊆ S` is asked of bitmaps.

    An answer depends on the two audiences alone, which never change, so it is remembered without invalidation. Nothing
    here is state: all of it can be built again from the audiences.
    """

    #: Remembered answers beyond this are dropped all at once; they cost a few microseconds each to find again.
    LIMIT = 200_000
    #: Bitmaps beyond this are dropped all at once; one of 50 000 readers takes some 10 KB.
    MOST_BITMAPS = 10_000

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._members: dict[str, BitMap] = {}
        self._full: dict[tuple[str, str], BitMap] = {}
        self._within: dict[tuple[str, str], bool] = {}

    def within(self, d: Audience, d_key: str, s: Audience, s_key: str) -> bool:
        """`D ⊆ S` (R-AUD-1). The keys name the audiences: equal keys, equal audiences."""
        if s.scope is Scope.PUBLIC:
            return True
        if d.scope is not Scope.LISTED or s.scope is Scope.UNKNOWN:
            return False
        known = self._within.get((d_key, s_key))
        if known is None:
            known = self._subset(d, d_key, s, s_key)
            if len(self._within) >= self.LIMIT:
                self._within.clear()
            self._within[d_key, s_key] = known
        return known

    def extend(self, base: Keyed, key: str, readers: Iterable[str]) -> None:
        """Make the bitmap of an audience that is `base` and a few more readers, without looking at all of them."""
        members = self._bitmap(base.key, base.audience).copy()
        members.update(self._number(r) for r in readers)
        self._make_room()
        self._members[key] = members

    def _subset(self, d: Audience, d_key: str, s: Audience, s_key: str) -> bool:
        if not set(d.workspaces) <= set(s.workspaces):
            return False
        mine, theirs = self._bitmap(d_key, d), self._bitmap(s_key, s)
        if mine.intersection_cardinality(theirs) == len(mine):
            return True
        if not s.workspaces:
            return False
        rest = mine - theirs
        for workspace in s.workspaces:
            rest -= self._full_members(d, d_key, workspace)
        return not rest

    def _full_members(self, audience: Audience, key: str, workspace: str) -> BitMap:
        found = self._full.get((key, workspace))
        if found is None:
            guests = set(audience.guests)
            found = self._full[key, workspace] = BitMap(
                self._number(r)
                for r in audience.readers
                if r not in guests and (namespace(r) == workspace or workspace in audience.memberships.get(r, ()))
            )
        return found

    def _bitmap(self, key: str, audience: Audience) -> BitMap:
        found = self._members.get(key)
        if found is None:
            self._make_room()
            found = self._members[key] = BitMap(map(self._number, audience.readers))
        return found

    def _make_room(self) -> None:
        if len(self._members) >= self.MOST_BITMAPS:
            self._members.clear()
            self._full.clear()

    def _number(self, reader: str) -> int:
        number = self._numbers.get(reader)
        if number is None:
            number = self._numbers[reader] = len(self._numbers)
        return number
