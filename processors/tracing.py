"""Decides what is put on record of a decision: its trace, of ids and digests alone, linked to the one before (R-RET-2).

It is made of what the decision has looked up; nothing is asked anew.
"""

from __future__ import annotations

import orjson

from turngate.processors.audience import KEYED_UNKNOWN
from turngate.processors.bounds import Standing
from turngate.processors.ledger import Ledger
from turngate.processors.permits import PERMITTED, Destination, Judged, reasons
from turngate.processors.rows import Head
from turngate.schemas.canonical import digest
from turngate.schemas.digests import Ready, authorized_digest, decided_digest, part, trace_digest
from turngate.schemas.inputs import ContextRequested, ToolReturned, TurnDrafted
from turngate.schemas.outputs import (
    ContextDecided,
    DecisionTraced,
    TracedOutcome,
    TracedRef,
    TurnAuthorized,
    TurnDecided,
)
from turngate.schemas.shapes import Code, Reason
from turngate.schemas.unchecked import unchecked

#: What one trace lists at most, so that none is too large for its topic, however much was compared: with the longest
#: ids that there can be, some 14 MB.
MOST_REFS, MOST_LEAVES, MOST_OUTCOMES = 2_000, 20_000, 1_000


def trace_turn(ledger: Ledger, draft: TurnDrafted, decided: TurnDecided, authorized: TurnAuthorized | None) -> None:
    """Emit the trace of what was decided of a draft."""
    positions = _positions(ledger)
    let_out = None
    if authorized is not None:
        to: Destination | None = ledger.hearer
        known = to.key if to is not None and authorized.destination is to.audience else None
        let_out = authorized_digest(authorized, known)
    _emit(
        ledger,
        draft,
        positions,
        decision=decided.decision,
        trigger=draft.trigger,
        rendering=decided.rendering,
        grants=() if authorized is None else authorized.grants,
        proofs=() if authorized is None else authorized.proofs,
        decided=decided_digest(decided, positions),
        authorized=let_out,
    )


def trace_context(ledger: Ledger, record: ContextRequested, decided: ContextDecided, content: str) -> None:
    """Emit the trace of what was answered to a context request; `content` is the request's digest."""
    judged: list[Judged] = [ledger.compared[p.ref][1] for p in decided.permitted]
    _emit(
        ledger,
        record,
        _positions(ledger),
        decision=digest({"request": record.request, "content": content}),
        request=record.request,
        grants=tuple(sorted({grant for one in judged for grant in one.grants})),
        proofs=tuple(sorted({proof for one in judged for proof in one.proofs})),
        decided=decided_digest(decided),
    )


def report_call(ledger: Ledger, record: ToolReturned, code: Code) -> None:
    """Emit a trace that reports a tool call. It names the call and nothing of what it returned."""
    _emit(
        ledger,
        record,
        _positions(ledger),
        decision=digest({"call": record.call}),
        request=record.request,
        call=record.call,
        reasons=(Reason(code=code, ref=f"tool:{record.call}"),),
    )


def _emit(
    ledger: Ledger,
    record: TurnDrafted | ContextRequested | ToolReturned,
    positions: Ready,
    *,
    decision: str,
    trigger: str | None = None,
    request: str | None = None,
    call: str | None = None,
    reasons: tuple[Reason, ...] = (),
    rendering: int | None = None,
    grants: tuple[str, ...] = (),
    proofs: tuple[str, ...] = (),
    decided: str | None = None,
    authorized: str | None = None,
) -> None:
    """Emit the trace of what was decided of a record, with what was looked up for it."""
    to: Destination | None = ledger.hearer
    stood: Standing | None = ledger.stood
    bounds = None if stood is None else stood.bounds
    listing = None if stood is None else stood.listing
    agent, room = record.agent, record.room
    refs, forms, unlisted = _refs(ledger, agent, trigger)
    before = ledger.tables.heads.get(ledger.key)
    traced = unchecked(
        DecisionTraced,
        tenant=ledger.tenant,
        at=ledger.now,
        decision=decision,
        turn=record.turn,
        request=request,
        policy=ledger.policy(room).label,
        destination=KEYED_UNKNOWN.key if to is None else to.key,
        refs=refs,
        as_of=ledger.as_of(),
        previous=None if before is None else before.digest,
        number=1 if before is None else before.number + 1,
        agent=agent,
        room=room,
        call=call,
        reasons=reasons,
        rendering=rendering,
        lower=None if bounds is None else bounds.lower.key,
        upper=None if bounds is None else bounds.upper.key,
        listing=() if listing is None else listing.refreshes,
        listed_at=None if listing is None else listing.started_at,
        grants=grants,
        proofs=proofs,
        unlisted=unlisted,
        decided=decided,
        authorized=authorized,
    )
    ready = {**positions, "refs": forms} if forms else positions
    ledger.tables.heads.put(ledger.key, Head(traced.number, trace_digest(traced, ready)))
    ledger.emit(traced)


def _positions(ledger: Ledger) -> Ready:
    """The positions as JSON, of which only those that have moved since the tenant's last decision are made anew."""
    as_of, placed = ledger.as_of(), ledger.caches.placed
    for number, spot in enumerate(as_of):
        if number == len(placed):
            placed.append((spot, part(spot)))
        elif placed[number][0] is not spot:
            placed[number] = spot, part(spot)
    return {"as_of": [form for _, form in placed[: len(as_of)]]} if as_of else {}


def _refs(ledger: Ledger, agent: str, trigger: str | None) -> tuple[tuple[TracedRef, ...], list[orjson.Fragment], int]:
    """What was compared, the same as JSON, and how many more refs that were; the refused ones come first then."""
    compared: list[tuple[str, tuple[tuple[str, ...], Judged]]] = list(ledger.compared.items())
    unlisted = max(len(compared) - MOST_REFS, 0)
    if unlisted:
        compared = sorted(compared, key=lambda one: not one[1][1].codes)[:MOST_REFS]
    known, room = ledger.caches.traced.of(agent), _Room()
    refs: list[TracedRef] = []
    forms: list[orjson.Fragment] = []
    for ref, (leaves, judged) in compared:
        plain = judged is PERMITTED and room.take(len(leaves))
        made = known.get(ref) if plain else None
        if made is None or made[0] != leaves:
            traced = (
                unchecked(TracedRef, ref=ref, leaves=leaves, permitted=True)
                if plain
                else _ref(ref, leaves, judged, trigger, room)
            )
            made = leaves, traced, part(traced)
            if plain:
                ledger.caches.traced.keep(agent, ref, made)
        refs.append(made[1])
        forms.append(made[2])
    return tuple(refs), forms, unlisted


class _Room:
    """How much more one trace can list."""

    def __init__(self) -> None:
        self.leaves = MOST_LEAVES
        self.outcomes = MOST_OUTCOMES

    def take(self, leaves: int) -> bool:
        """Whether so many leaves more can be listed."""
        if leaves > self.leaves:
            return False
        self.leaves -= leaves
        return True


def _ref(ref: str, leaves: tuple[str, ...], judged: Judged, trigger: str | None, room: _Room) -> TracedRef:
    """A ref of which not every leaf is permitted as it is, or of which not every leaf can be listed."""
    others: list[TracedOutcome] = []
    apart: set[str] = set()
    for outcome in judged.others:
        apart.update(outcome.leaves)
        if room.outcomes and room.take(len(outcome.leaves)):
            room.outcomes -= 1
            codes = tuple(code.value for code in outcome.codes)
            others.append(
                unchecked(
                    TracedOutcome,
                    leaves=outcome.leaves,
                    codes=codes,
                    own_words=outcome.own_words,
                    grant=outcome.grant,
                    proofs=outcome.proofs,
                )
            )
    rest = tuple(leaf for leaf in leaves if leaf not in apart) if apart else leaves
    if not room.take(len(rest)):
        rest = ()
    return unchecked(
        TracedRef,
        ref=ref,
        leaves=rest,
        permitted=not judged.codes,
        reasons=tuple(unchecked(Reason, code=reason.code) for reason in reasons(ref, judged, trigger)),
        others=tuple(others),
        unlisted=len(leaves) - len(rest) - sum(len(other.leaves) for other in others),
    )
