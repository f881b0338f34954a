"""Decides what a conversation has been in touch with: the bits `private` and `untrusted` (R-TNT-1 to R-TNT-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turngate.processors.ledger import Ledger
from turngate.processors.rows import LeafRow, Taint
from turngate.processors.sources import absent, sources
from turngate.schemas.shapes import Code, Scope


class Bits(NamedTuple):
    """What something arms."""

    private: bool = False
    untrusted: bool = False

    def __or__(self, other: Bits) -> Bits:
        return _BITS[(self.private or other.private) + 2 * (self.untrusted or other.untrusted)]


CLEAR = Bits()
#: What is not known may be both.
BOTH = Bits(private=True, untrusted=True)
#: By the sum of what a leaf arms. A leaf with values that a tool returned has a third summand.
_BITS = (CLEAR, Bits(private=True), Bits(untrusted=True), BOTH)
_PRIVATE, _UNTRUSTED, _VALUES = 1, 2, 4


class Armed(NamedTuple):
    """What refs arm in a room, those of them that nobody has recorded, and whether any has values of a tool."""

    bits: Bits
    missing: tuple[str, ...] = ()
    values: bool = False


def of_refs(ledger: Ledger, agent: str, room: str, refs: Sequence[str]) -> Armed:
    """What these refs arm in a room."""
    arms = 0
    missing = []
    known = ledger.caches.arms.of(room)  # a leaf never changes
    for ref, found in sources(ledger, refs, agent):
        if found is None:
            if absent(ledger, ref, agent) is Code.SOURCE_MISSING:
                missing.append(ref)
            else:
                arms |= _PRIVATE | _UNTRUSTED
            continue
        if not found.leaves:
            arms |= _PRIVATE | _UNTRUSTED
        for key in found.leaves:
            one = known.get(key)
            arms |= ledger.caches.arms.keep(room, key, _of_leaf(ledger, ledger.leaf(key), room)) if one is None else one
    return Armed(_BITS[arms & (_PRIVATE | _UNTRUSTED)], tuple(missing), bool(arms & _VALUES))


def _of_leaf(ledger: Ledger, leaf: LeafRow, room: str) -> int:
    """Persons' messages arm nothing in their own room; an external account's always arms mistrust (R-TNT-2)."""
    values = 0 if leaf.call is None else _VALUES
    if leaf.author is not None and leaf.room == room and not leaf.untrusted:
        return values
    if ledger.audience(leaf.audience).scope is Scope.UNKNOWN:
        return values | _PRIVATE | _UNTRUSTED
    return values | _PRIVATE * leaf.private | _UNTRUSTED * leaf.untrusted


def arm(ledger: Ledger, agent: str, room: str, thread: str | None, bits: Bits) -> None:
    """Remember that a conversation was armed now."""
    if bits == CLEAR:
        return
    key = (ledger.tenant, agent, room, thread or "")
    row = ledger.tables.taint.get(key) or Taint()
    ttl = ledger.policy(room).settings.interlock.taint_ttl
    private, untrusted = (row.private_at, row.private_since), (row.untrusted_at, row.untrusted_since)
    if bits.private:
        private = ledger.now, row.private_since if _live(ledger, row.private_at, ttl) else ledger.arrival
    if bits.untrusted:
        untrusted = ledger.now, row.untrusted_since if _live(ledger, row.untrusted_at, ttl) else ledger.arrival
    ledger.tables.taint.put(key, Taint(*private, *untrusted))


def of_conversation(ledger: Ledger, agent: str, room: str, thread: str | None) -> tuple[Bits, int]:
    """The bits of a conversation now, and the last arrival that armed one of them when it was clear (0: none)."""
    row = ledger.tables.taint.get((ledger.tenant, agent, room, thread or ""))
    if row is None:
        return CLEAR, 0
    ttl = ledger.policy(room).settings.interlock.taint_ttl
    bits = _BITS[_live(ledger, row.private_at, ttl) + 2 * _live(ledger, row.untrusted_at, ttl)]
    since = max(row.private_since if bits.private else 0, row.untrusted_since if bits.untrusted else 0)
    return bits, since


def _live(ledger: Ledger, armed_at: int | None, ttl: int) -> bool:
    return armed_at is not None and ledger.now - armed_at < ttl
