"""Decides what one way to say a turn comes to: whether it passes, asks or is refused, and why (R-TURN-2)."""

from __future__ import annotations

from typing import Final

from turngate.processors.actions import judge_action
from turngate.processors.approvals import action_fingerprint, covering, known, turn_fingerprint
from turngate.processors.egress import egress
from turngate.processors.interlock import Objection, objections
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination, judge_all, reasons
from turngate.processors.rows import Ask, Turn
from turngate.processors.sources import NOTHING_EXEMPT, Exempt, as_seen
from turngate.processors.taint import BOTH, Bits, of_conversation, of_refs
from turngate.processors.turns import changed_only, everything, seen
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.shapes import Code, Reason, Rendering


class Tried:
    """What a way to say the turn came to.

    `reasons`: everything against it; none of them where it passes. `ask`: what it asks for, where a yes would let it
    out. Of one that passes: what had to help, what it claims, and `until`, when that ends.
    """

    def __init__(self, refs: tuple[str, ...]) -> None:
        self.refs: Final = refs
        self.leaves: tuple[str, ...] = ()
        self.reasons: list[Reason] = []
        self.ask: Ask | None = None
        self.own_words = False
        self.grants: tuple[str, ...] = ()
        self.proofs: tuple[str, ...] = ()
        self.approvals: tuple[str, ...] = ()
        self.claims: tuple[tuple[str, str], ...] = ()
        self.until: tuple[int, ...] = ()


class Exposure:
    """All that a draft had: its refs, what they arm, what of that it read, and the refs that nobody has recorded.

    `seen`: what its turn saw, as a rendering that tells nothing else apart did. `values`: whether it has any of a tool.
    """

    def __init__(
        self,
        seen: tuple[list[str], bool],
        refs: tuple[str, ...],
        bits: Bits,
        read: Bits,
        missing: tuple[str, ...],
        values: bool,
    ) -> None:
        self.seen: Final = seen
        self.refs: Final = refs
        self.bits: Final = bits
        self.read: Final = read
        self.missing: Final = missing
        self.values: Final = values


def exposure(ledger: Ledger, draft: TurnDrafted, row: Turn) -> Exposure:
    """What a draft had; worked out once for each record."""
    known: Exposure | None = ledger.exposure.get(draft.turn)
    if known is None:
        agent, room = draft.agent, draft.room
        ledger.nothing_changes(agent)
        changed = changed_only(draft)
        whole = seen(ledger, draft, row, None)
        refs = everything(ledger, draft, row, whole[0])
        of_read = [ref for ref in refs if ref not in changed] if changed else refs
        read, missing, values = of_refs(ledger, agent, room, of_read)
        bits = read
        if changed:
            more, also_missing, more_values = of_refs(ledger, agent, room, sorted(changed))
            bits, missing, values = read | more, (*missing, *also_missing), values or more_values
        known = ledger.exposure[draft.turn] = Exposure(whole, refs, bits, read, missing, values)
    return known


def attempt(
    ledger: Ledger,
    draft: TurnDrafted,
    row: Turn,
    had: Exposure,
    rendering: Rendering | None,
    to: Destination,
    bits: Bits,
) -> Tried:
    """Hold one rendering, or the action alone, against the destination; data rules only where the audience permits.

    `bits`: what the conversation and everything in the draft arm together (R-TNT-4).
    """
    plain = rendering is None or (rendering.request is None and rendering.exposed is None)
    refs, some = had.seen if plain else seen(ledger, draft, row, rendering)
    tried = Tried(had.refs if len(refs) == len(had.refs) else tuple(sorted(refs)))
    if not some:  # R-TURN-4
        tried.reasons = [Reason(code=Code.SOURCE_MISSING)]
        return tried
    _audience(ledger, draft, refs, to, tried)
    if not tried.reasons:
        calls = ledger.calls(tried.leaves) if had.values else []
        _data(ledger, draft, None if rendering is None else rendering.text, calls, to, bits, tried)
    return tried


def _audience(ledger: Ledger, draft: TurnDrafted, refs: list[str], to: Destination, tried: Tried) -> None:
    judged = judge_all(ledger, refs, to, _exempt(ledger, draft))
    for ref, one in judged:
        tried.reasons += reasons(ref, one, draft.trigger)
        tried.own_words = tried.own_words or one.own_words
    if judged:
        tried.grants = tuple(sorted({grant for _, one in judged for grant in one.grants}))
        tried.proofs = tuple(sorted({proof for _, one in judged for proof in one.proofs}))
    leaves = as_seen(ledger, refs, to.agent, keep=not tried.reasons)
    if len(leaves) > ledger.policy(to.room).max_leaves:
        tried.reasons.append(Reason(code=Code.LEAF_LIMIT))  # R-EVI-5
    tried.leaves = tuple(sorted(leaves))


def _exempt(ledger: Ledger, draft: TurnDrafted) -> Exempt:
    """Of the revisions that the draft names, those that this turn wrote or retired by itself (R-TURN-5)."""
    wrote, retired = draft.wrote, draft.retired
    if not wrote and not retired:
        return NOTHING_EXEMPT
    rows, turn = ledger.tables.revisions, draft.turn
    return Exempt(
        frozenset(r for r in wrote if (x := rows.get((ledger.tenant, r))) is not None and x.turn == turn),
        frozenset(r for r in retired if (x := rows.get((ledger.tenant, r))) is not None and x.retired_by == turn),
    )


def _data(
    ledger: Ledger, draft: TurnDrafted, text: str | None, calls: list[str], to: Destination, bits: Bits, tried: Tried
) -> None:
    """Rules EGR, ACT and TNT: what they refuse, and what only somebody's yes lets out."""
    found = [Objection(reason, asks=False) for reason in egress(ledger, draft, text, tried.refs, calls, to)]
    if draft.action is not None:
        acted = judge_action(ledger, draft, draft.action, tried.refs)
        found += [Objection(reason, asks=False) for reason in acted.reasons]
        tried.claims, tried.until = tuple(acted.claims), tuple(acted.until)
        if acted.known:
            found += _approval(ledger, draft, text, needed=acted.needs_approval)
    found += objections(ledger, draft, text, tried.refs, bits)
    if not found:
        return
    found = _answered(ledger, draft, text, found, tried)
    tried.reasons = list(dict.fromkeys(objection.reason for objection in found))
    if tried.reasons and all(objection.asks for objection in found):
        tried.ask = Ask(_would_cover(draft, text, tried.reasons), tuple(tried.reasons))


def _approval(ledger: Ledger, draft: TurnDrafted, text: str | None, *, needed: bool) -> list[Objection]:
    """An approval of something else is a mismatch; where one is needed, it is missing until it is there (R-ACT-3)."""
    if draft.action is None:
        return []
    name = draft.action.approval
    given = None if name is None else known(ledger, name)
    of_this = (action_fingerprint(draft.action), turn_fingerprint(draft, text))
    if given is not None and given.fingerprint not in of_this:
        return [Objection(Reason(code=Code.APPROVAL_MISMATCH, ref=name), asks=False)]
    return [Objection(Reason(code=Code.APPROVAL_MISSING, ref=name), asks=True)] if needed else []


def _answered(
    ledger: Ledger, draft: TurnDrafted, text: str | None, found: list[Objection], tried: Tried
) -> list[Objection]:
    """What is still asked: a yes to the whole turn answers everything, one to the action that it was missing."""
    if not any(objection.asks for objection in found):
        return found
    whole = covering(ledger, draft, turn_fingerprint(draft, text))
    if whole is not None:
        tried.approvals = (whole,)
        return [objection for objection in found if not objection.asks]
    action = None if draft.action is None else covering(ledger, draft, action_fingerprint(draft.action))
    if action is None:
        return found
    left = [objection for objection in found if objection.reason.code != Code.APPROVAL_MISSING]
    if len(left) < len(found):
        tried.approvals = (action,)
    return left


def _would_cover(draft: TurnDrafted, text: str | None, asked: list[Reason]) -> tuple[str, ...]:
    """The fingerprints of which one yes would let it out; the first is the one that is asked for."""
    whole = turn_fingerprint(draft, text)
    if draft.action is not None and all(reason.code == Code.APPROVAL_MISSING for reason in asked):
        return (action_fingerprint(draft.action), whole)
    return (whole,)


def best(ledger: Ledger, draft: TurnDrafted, row: Turn, to: Destination) -> tuple[int | None, Tried] | list[Reason]:
    """The first way that passes, else the first that asks, with its number; else all that is against all of them."""
    ledger.hearer = to
    had = exposure(ledger, draft, row)
    armed, _ = of_conversation(ledger, to.agent, to.room, draft.thread)
    bits = BOTH if had.missing else had.bits | armed
    asking: tuple[int | None, Tried] | None = None
    against: list[Reason] = []
    for number, rendering in ways(draft):
        tried = attempt(ledger, draft, row, had, rendering, to, bits)
        if not tried.reasons:
            return number, tried
        if tried.ask is not None and asking is None:
            asking = number, tried
        against += tried.reasons
    return against if asking is None else asking


def ways(draft: TurnDrafted) -> list[tuple[int | None, Rendering | None]]:
    """The ways to say the turn in order of preference; an action alone is one without text (R-TURN-9)."""
    renderings = draft.renderings
    return list(enumerate(renderings)) if renderings else [(None, None)]
