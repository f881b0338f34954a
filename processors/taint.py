"""Decides what a conversation has been in touch with: the bits `private` and `untrusted` (R-TNT-1 to R-TNT-4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from turngate.processors.ledger import Ledger
from turngate.processors.rows import LeafRow, Taint
from turngate.processors.sources import absent, source
from turngate.schemas.shapes import Code, Scope


class Bits(NamedTuple):
    """What something arms."""

    private: bool = False
    untrusted: bool = False

    def __or__(self, other: Bits) -> Bits:
        return _BITS[self.private or other.private, self.untrusted or other.untrusted]


CLEAR = Bits()
#: What is not known may be both.
BOTH = Bits(private=True, untrusted=True)
_BITS = {(p, u): Bits(p, u) for p in (False, True) for u in (False, True)}


def of_refs(ledger: Ledger, agent: str, room: str, refs: Iterable[str]) -> tuple[Bits, tuple[str, ...]]:
    """What these refs arm in a room, and those of them that nobody has recorded."""
    private = untrusted = False
    missing = []
    known = ledger.caches.bits  # a leaf never changes
    for ref in refs:
        found = source(ledger, ref, agent)
        if found is None:
            if absent(ledger, ref, agent) is Code.SOURCE_MISSING:
                missing.append(ref)
            else:
                private = untrusted = True
            continue
        if not found.leaves:
            private = untrusted = True
        for key in found.leaves:
            bits = known.get((key, room))
            if bits is None:
                bits = known[key, room] = _of_leaf(ledger, ledger.leaf(key), room)
            private, untrusted = private or bits.private, untrusted or bits.untrusted
    return _BITS[private, untrusted], tuple(missing)


def _of_leaf(ledger: Ledger, leaf: LeafRow, room: str) -> Bits:
    """Persons' messages arm nothing in their own room; an external account's always arms mistrust (R-TNT-2)."""
    if leaf.author is not None and leaf.room == room and not leaf.untrusted:
        return CLEAR
    if ledger.audience(leaf.audience).scope is Scope.UNKNOWN:
        return BOTH
    return _BITS[leaf.private, leaf.untrusted]


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
    bits = Bits(_live(ledger, row.private_at, ttl), _live(ledger, row.untrusted_at, ttl))
    since = max(row.private_since if bits.private else 0, row.untrusted_since if bits.untrusted else 0)
    return bits, since


def _live(ledger: Ledger, armed_at: int | None, ttl: int) -> bool:
    return armed_at is not None and ledger.now - armed_at < ttl
