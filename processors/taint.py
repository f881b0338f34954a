"""Decides what a conversation has been in touch with: the bits `private` and `untrusted` (R-TNT-1 to R-TNT-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from turngate.processors.ledger import Ledger
from turngate.processors.rows import LeafRow, Taint
from turngate.processors.sources import absent, source
from turngate.schemas.shapes import Code, Scope


class Bits:
    """What something arms."""

    def __init__(self, *, private: bool, untrusted: bool) -> None:
        self.private: Final = private
        self.untrusted: Final = untrusted

    def __or__(self, other: Bits) -> Bits:
        return _BITS[(self.private or other.private) + 2 * (self.untrusted or other.untrusted)]


CLEAR: Final = Bits(private=False, untrusted=False)
#: What is not known may be both.
BOTH: Final = Bits(private=True, untrusted=True)
#: By the sum of what a leaf arms. A leaf with values that a tool returned has a third summand.
_BITS: Final[tuple[Bits, ...]] = (CLEAR, Bits(private=True, untrusted=False), Bits(private=False, untrusted=True), BOTH)
_PRIVATE: Final = 1
_UNTRUSTED: Final = 2
_VALUES: Final = 4


def of_refs(ledger: Ledger, agent: str, room: str, refs: Sequence[str]) -> tuple[Bits, tuple[str, ...], bool]:
    """What these refs arm in a room, those of them that nobody has recorded, and whether any has values of a tool."""
    arms = 0
    missing = []
    known = ledger.caches.arms.of(room)  # a leaf never changes
    for ref in refs:
        found = source(ledger, ref, agent)
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
    return _BITS[arms & (_PRIVATE | _UNTRUSTED)], tuple(missing), bool(arms & _VALUES)


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
    if not (bits.private or bits.untrusted):
        return
    key = (ledger.tenant, agent, room, thread or "")
    row = ledger.tables.taint.get(key) or Taint()
    ttl, began = ledger.policy(room).tainted_for, ledger.began(room)
    private_at, private_since = row.private_at, row.private_since
    untrusted_at, untrusted_since = row.untrusted_at, row.untrusted_since
    if bits.private:
        private_since = private_since if _live(ledger, private_at, ttl, began) else ledger.arrival
        private_at = ledger.now
    if bits.untrusted:
        untrusted_since = untrusted_since if _live(ledger, untrusted_at, ttl, began) else ledger.arrival
        untrusted_at = ledger.now
    ledger.tables.taint.put(key, Taint(private_at, private_since, untrusted_at, untrusted_since))


def of_conversation(ledger: Ledger, agent: str, room: str, thread: str | None) -> tuple[Bits, int]:
    """The bits of a conversation now, and the last arrival that armed one of them when it was clear (0: none)."""
    row = ledger.tables.taint.get((ledger.tenant, agent, room, thread or ""))
    if row is None:
        return CLEAR, 0
    ttl, began = ledger.policy(room).tainted_for, ledger.began(room)
    private, untrusted = _live(ledger, row.private_at, ttl, began), _live(ledger, row.untrusted_at, ttl, began)
    bits = _BITS[private + 2 * untrusted]
    since = max(row.private_since if bits.private else 0, row.untrusted_since if bits.untrusted else 0)
    return bits, since


def _live(ledger: Ledger, armed_at: int | None, ttl: int, began: int) -> bool:
    """Whether a bit that was armed then still is: in this life of its room, and not for too long (R-TNT-1)."""
    return armed_at is not None and armed_at >= began and ledger.now - armed_at < ttl
