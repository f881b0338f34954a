"""Decides whether a destination may hear a ref, and with which codes it may not (R-AUD-1 to 3, R-AUD-10, R-GRT-7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from turngate.processors.audience import KEYED_UNKNOWN, UNKNOWN
from turngate.processors.bounds import Standing, standing
from turngate.processors.identity import continuity, expiry, lapsed
from turngate.processors.ledger import Against, Asker, Ledger
from turngate.processors.rows import Grant, LeafRow
from turngate.processors.sources import NOTHING_EXEMPT, Exempt, Source, absent, source
from turngate.schemas.outputs import GrantState
from turngate.schemas.policy import OpenRooms
from turngate.schemas.shapes import Audience, Code, Reason, Scope
from turngate.schemas.unchecked import unchecked

#: The key of the destination that is not known: nothing but public evidence goes there.
NOWHERE: Final = KEYED_UNKNOWN.key
_NOTHING: Final = Against()
#: What the help for a leaf depends on besides the destination: its one reader, and what it was seen via.
_Asked = tuple[str | None, str | None]


class Destination:
    """Who would hear: the room's possible readers, or nobody who can be named (`audience` unknown).

    `own_words`: an open room whose own words may be said there again (R-AUD-10). `sole`: the one reader of a verified
    direct room (R-ROOM-9). `valid_until`: when its listing will be too old; None where there is none.
    """

    def __init__(
        self,
        agent: str,
        room: str,
        audience: Audience,
        key: str,
        own_words: bool = False,
        sole: str | None = None,
        valid_until: int | None = None,
    ) -> None:
        self.agent: Final = agent
        self.room: Final = room
        self.audience: Final = audience
        self.key: Final = key
        self.own_words: Final = own_words
        self.sole: Final = sole
        self.valid_until: Final = valid_until


def destination(ledger: Ledger, agent: str, room: str) -> tuple[Destination | None, tuple[Code, ...], Standing]:
    """The destination if it is known and fresh, else None with the codes that say why (R-TURN-2)."""
    now = ledger.stood = standing(ledger, agent, room)
    limit = ledger.policy(room).fresh_for
    codes: tuple[Code, ...]
    if now.bounds is not None and now.listing is not None and _credible(now.bounds.upper.audience):
        if now.fresh(ledger.now, limit):
            upper = now.bounds.upper
            sole = upper.audience.readers[0] if now.direct else None
            until = now.listing.started_at + limit
            return Destination(agent, room, upper.audience, upper.key, sole=sole, valid_until=until), (), now
        codes = (Code.DESTINATION_STALE,)
    else:
        codes = (Code.DESTINATION_UNKNOWN,)
    return None, (*codes, Code.CLOCK_SKEW) if now.skewed else codes, now


def nowhere(ledger: Ledger, agent: str, room: str) -> Destination:
    """The destination as unknown (R-TURN-6); in an open room its own words may still be said, if the policy says so."""
    now = ledger.stood = standing(ledger, agent, room)
    own = ledger.policy(room).settings.open_rooms is OpenRooms.OWN_WORDS and now.open
    return Destination(agent, room, UNKNOWN, NOWHERE, own_words=own)


def _credible(audience: Audience) -> bool:
    """A destination without a single reader is not credible (R-AUD-1)."""
    return bool(audience.readers) or bool(audience.workspaces)


class Outcome(NamedTuple):
    """Leaves that are not permitted as they are, and what they all came to: codes against them, or what had to help."""

    leaves: tuple[str, ...]
    codes: tuple[Code, ...]
    own_words: bool
    grant: str | None = None
    proofs: tuple[str, ...] = ()


class Judged(NamedTuple):
    """What a ref came to: the codes against it, and what had to help: R-AUD-10, grants, proofs.

    `others`: its leaves but those that are permitted as they are.
    """

    codes: tuple[Code, ...] = ()
    own_words: bool = False
    grants: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    others: tuple[Outcome, ...] = ()


#: The destination may hear it, and nothing had to help.
PERMITTED: Final = Judged()


def judge(ledger: Ledger, ref: str, to: Destination, exempt: Exempt = NOTHING_EXEMPT) -> Judged:
    """Whether the destination may hear a ref: every one of its leaves must be permitted (R-AUD-3).

    What was compared, and what came of it, is kept for the trace.
    """
    asker = to.agent, to.room, to.key, to.own_words
    return _compared(ledger, ref, to, exempt, asker, ledger.caches.codes.of(asker))


def judge_all(
    ledger: Ledger, refs: Iterable[str], to: Destination, exempt: Exempt = NOTHING_EXEMPT
) -> list[tuple[str, Judged]]:
    """Of several refs those that are not permitted as they are, each with what it came to."""
    asker = to.agent, to.room, to.key, to.own_words
    known = ledger.caches.codes.of(asker)
    found: list[tuple[str, Judged]] = []
    for ref in refs:
        judged = _compared(ledger, ref, to, exempt, asker, known)
        if judged is not PERMITTED:
            found.append((ref, judged))
    return found


def _compared(
    ledger: Ledger, ref: str, to: Destination, exempt: Exempt, asker: Asker, known: dict[str, Against]
) -> Judged:
    found = source(ledger, ref, to.agent, exempt)
    if found is None:
        leaves: tuple[str, ...] = ()
        judged = Judged((absent(ledger, ref, to.agent),))
    else:
        leaves = found.leaves
        clear = found.plain
        for key in leaves:
            clear = _against(ledger, key, to, asker, known) is _NOTHING and clear
        judged = PERMITTED if clear else _judge(ledger, found, to, asker, known)
    ledger.compared[ref] = leaves, judged
    return judged


def _against(ledger: Ledger, key: str, to: Destination, asker: Asker, known: dict[str, Against]) -> Against:
    """What is against a leaf; worked out once for each asker, since a leaf and an audience never change."""
    found = known.get(key)
    return ledger.caches.codes.keep(asker, key, _leaf_codes(ledger, key, to)) if found is None else found


def _judge(ledger: Ledger, found: Source, to: Destination, asker: Asker, known: dict[str, Against]) -> Judged:
    codes: dict[Code, None] = dict.fromkeys(found.codes)
    if any(room != to.room for room in found.restrictions):
        codes[Code.RESTRICTED_TO_CONVERSATION] = None
    if found.over:
        codes[Code.LEAF_LIMIT] = None
    elif not found.leaves:
        codes[Code.SOURCE_UNKNOWN] = None
    own_words = False
    help_of: dict[_Asked, Help] = {}
    alike: dict[tuple[Against, _Asked | None], list[str]] = {}
    for key in found.leaves:
        against = _against(ledger, key, to, asker, known)
        if against is _NOTHING:
            continue
        own_words = own_words or against.own_words
        asked: _Asked | None = None
        for code in against.codes:
            if code is Code.AUDIENCE_NOT_SUBSET:
                leaf = ledger.leaf(key)
                asked = (_alone(ledger.audience(leaf.audience)), leaf.via)
                if asked not in help_of:
                    help_of[asked] = _help(ledger, to, *asked, found.revision)
            else:
                codes[code] = None
        alike.setdefault((against, asked), []).append(key)
    grants: dict[str, None] = {}
    proofs: dict[str, None] = {}
    for help in help_of.values():
        if help.against is not None:
            codes[help.against] = None
        if help.grant is not None:
            grants[help.grant] = None
        proofs |= dict.fromkeys(help.proofs)
    others = tuple(
        _outcome(tuple(leaves), against, None if asked is None else help_of[asked])
        for (against, asked), leaves in alike.items()
    )
    return Judged(tuple(codes), own_words, tuple(grants), tuple(proofs), others)


def _outcome(leaves: tuple[str, ...], against: Against, help: Help | None) -> Outcome:
    """What some leaves came to, once it is known what helps them."""
    codes, own_words = against
    if help is None:
        return Outcome(leaves, codes, own_words)
    instead = (help.against if code is Code.AUDIENCE_NOT_SUBSET else code for code in codes)
    return Outcome(leaves, tuple(code for code in instead if code is not None), own_words, help.grant, help.proofs)


def _leaf_codes(ledger: Ledger, key: str, to: Destination) -> Against:
    """What is against one leaf (R-AUD-2)."""
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
    return Against(tuple(codes), own) if codes or own else _NOTHING


def _within(ledger: Ledger, to: Destination, key: str) -> bool:
    return ledger.caches.sets.within(to.audience, to.key, ledger.audience(key), key)


def _own_word(leaf: LeafRow, to: Destination) -> bool:
    """Said in this very room while a fresh listing showed it open, by the same agent's observation (R-AUD-10)."""
    return leaf.open and leaf.room == to.room and leaf.agent == to.agent


class Help(NamedTuple):
    """What permits a leaf whose audience does not: two live proofs or a live grant; else the code against it."""

    against: Code | None = None
    grant: str | None = None
    proofs: tuple[str, ...] = ()


def _help(ledger: Ledger, to: Destination, other: str | None, via: str | None, revision: str | None) -> Help:
    """Whether identity (R-IDN-2) or a grant (R-GRT-7) permits a leaf, seen `via` a revision, or exposed as `revision`.

    `other` is the one reader of the leaf's audience, where there is exactly one. All leaves of a ref of which the two
    are the same have the same answer.
    """
    if other is not None and to.sole is not None:
        live = continuity(ledger, to.agent, other, to.sole)
        if live is not None:
            return Help(proofs=live)
    dead: Code | None = None
    for name in dict.fromkeys(r for r in (revision, via) if r is not None):
        for grant_id in sorted(ledger.tables.grants_of.get((ledger.tenant, name)) or ()):
            grant: Grant = ledger.tables.grants.rows[ledger.tenant, grant_id]
            audience = ledger.audience(grant.audience)
            if grant.agent != to.agent or not ledger.caches.sets.within(to.audience, to.key, audience, grant.audience):
                continue
            if grant.state is GrantState.ACTIVE:
                return Help(grant=grant_id)
            dead = Code.GRANT_REVOKED if grant.state is GrantState.REVOKED else dead or Code.GRANT_EXPIRED
    if dead is None and other is not None and to.sole is not None and lapsed(ledger, to.agent, other, to.sole):
        dead = Code.PROOF_NOT_LIVE
    return Help(dead or Code.AUDIENCE_NOT_SUBSET)


def _alone(audience: Audience) -> str | None:
    """The one reader of an audience that is exactly that reader."""
    return audience.readers[0] if len(audience.readers) == 1 and not audience.workspaces else None


def ends(ledger: Ledger, grants: tuple[str, ...], proofs: tuple[str, ...]) -> list[int]:
    """When the grants and proofs that helped come to their end."""
    ending = [ledger.tables.grants.rows[ledger.tenant, grant].expires_at for grant in grants]
    return [end for end in ending if end is not None] + expiry(ledger, proofs)


def reasons(ref: str, judged: Judged, trigger: str | None) -> list[Reason]:
    """The reasons against a ref; the trigger's audience has a code of its own (R-TURN-3)."""
    swap = {Code.AUDIENCE_NOT_SUBSET: Code.TRIGGER_NOT_SUBSET} if ref == trigger else {}
    return [unchecked(Reason, code=swap.get(code, code).value, ref=ref) for code in judged.codes]
