"""Decides whether a destination may hear a ref, and with which codes it may not (R-AUD-1 to 3, R-AUD-10)."""

from __future__ import annotations

from dataclasses import dataclass

from turngate.processors.audience import UNKNOWN
from turngate.processors.bounds import Standing, standing
from turngate.processors.evidence import evidence_of
from turngate.processors.ledger import Ledger
from turngate.processors.rows import Evidence, LeafRow
from turngate.schemas.policy import OpenRooms
from turngate.schemas.shapes import Audience, Code, Reason, Scope

#: The key of the destination that is not known: nothing but public evidence goes there.
NOWHERE = "unknown"


@dataclass(frozen=True, slots=True)
class Destination:
    """Who would hear: the room's possible readers, or nobody who can be named (`audience` unknown).

    `own_words`: an open room whose own words may be said there again (R-AUD-10). `valid_until`: when its listing will
    be too old; None where there is none.
    """

    agent: str
    room: str
    audience: Audience
    key: str
    own_words: bool = False
    valid_until: int | None = None


def destination(ledger: Ledger, agent: str, room: str) -> tuple[Destination | None, tuple[Code, ...], Standing]:
    """The destination if it is known and fresh, else None with the codes that say why (R-TURN-2)."""
    now = standing(ledger, agent, room)
    limit = ledger.policy(room).settings.freshness.destination
    codes: tuple[Code, ...]
    if now.bounds is not None and now.listing is not None and _credible(now.bounds.upper.audience):
        if now.fresh(ledger.now, limit):
            until = now.listing.started_at + limit
            return Destination(agent, room, now.bounds.upper.audience, now.bounds.upper.key, valid_until=until), (), now
        codes = (Code.DESTINATION_STALE,)
    else:
        codes = (Code.DESTINATION_UNKNOWN,)
    return None, (*codes, Code.CLOCK_SKEW) if now.skewed else codes, now


def nowhere(ledger: Ledger, agent: str, room: str) -> Destination:
    """The destination as unknown (R-TURN-6); in an open room its own words may still be said, if the policy says so."""
    own = ledger.policy(room).settings.open_rooms is OpenRooms.OWN_WORDS and standing(ledger, agent, room).open
    return Destination(agent, room, UNKNOWN, NOWHERE, own_words=own)


def _credible(audience: Audience) -> bool:
    """A destination without a single reader is not credible (R-AUD-1)."""
    return bool(audience.readers) or bool(audience.workspaces)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a ref came to: its evidence, the codes against it, and whether only R-AUD-10 permits it."""

    evidence: Evidence | None
    codes: tuple[Code, ...]
    own_words: bool


def judge(ledger: Ledger, ref: str, to: Destination) -> Judged:
    """Whether the destination may hear a ref: every one of its leaves must be permitted (R-AUD-3)."""
    evidence = evidence_of(ledger, ref, to.agent)
    if evidence is None:
        others = (ledger.tenant, ref) in ledger.tables.known_by
        return Judged(None, (Code.OTHER_AGENT if others else Code.SOURCE_MISSING,), own_words=False)
    codes: list[Code] = []
    if (ledger.tenant, ref) in ledger.tables.deleted:
        codes.append(Code.SOURCE_DELETED)
    own_words = False
    if evidence.over:
        codes.append(Code.LEAF_LIMIT)
    elif not evidence.leaves:
        codes.append(Code.SOURCE_UNKNOWN)
    else:
        known = _known_codes(ledger, to)
        for key in evidence.leaves:
            found = known.get(key)
            if found is None:
                found = known[key] = leaf_codes(ledger, key, to)
            own_words = own_words or found[1]
            codes += (c for c in found[0] if c not in codes)
    return Judged(evidence, tuple(codes), own_words)


#: Destinations beyond this are forgotten all at once; what was found of them is found again.
_MOST_DESTINATIONS = 2_000


def _known_codes(ledger: Ledger, to: Destination) -> dict[str, tuple[tuple[Code, ...], bool]]:
    """What was found of leaves against this destination before; a leaf and an audience never change."""
    key = (to.agent, to.room, to.key, to.own_words)
    found = ledger.caches.codes.get(key)
    if found is None:
        if len(ledger.caches.codes) >= _MOST_DESTINATIONS:
            ledger.caches.codes.clear()
        found = ledger.caches.codes[key] = {}
    return found


def leaf_codes(ledger: Ledger, key: str, to: Destination) -> tuple[tuple[Code, ...], bool]:
    """The codes against one leaf, and whether R-AUD-10 was needed to permit it (R-AUD-2)."""
    leaf = ledger.leaf(key)
    codes: list[Code] = []
    if leaf.agent != to.agent:
        codes.append(Code.OTHER_AGENT)
    if any(room != to.room for room in leaf.restrictions):
        codes.append(Code.RESTRICTED_TO_CONVERSATION)
    audience = ledger.audience(leaf.audience)
    own = False
    if audience.scope is Scope.UNKNOWN:
        own = to.own_words and _own_word(leaf, to)
        if not own:
            codes.append(Code.SOURCE_UNKNOWN)
    elif not all(_within(ledger, to, key) for key in (leaf.audience, *leaf.each)):
        codes.append(Code.AUDIENCE_NOT_SUBSET)
    return tuple(codes), own


def _within(ledger: Ledger, to: Destination, key: str) -> bool:
    return ledger.caches.sets.within(to.audience, to.key, ledger.audience(key), key)


def _own_word(leaf: LeafRow, to: Destination) -> bool:
    """Said in this very room while a fresh listing showed it open, by the same agent's observation (R-AUD-10)."""
    return leaf.open and leaf.room == to.room and leaf.agent == to.agent


def reasons(ref: str, judged: Judged, trigger: str | None) -> list[Reason]:
    """The reasons against a ref; the trigger's audience has a code of its own (R-TURN-3)."""
    swap = {Code.AUDIENCE_NOT_SUBSET: Code.TRIGGER_NOT_SUBSET} if ref == trigger else {}
    return [Reason(code=swap.get(code, code), ref=ref) for code in judged.codes]
