"""Decides how a decision is written down: `TurnDecided`, `TurnAuthorized` and their trace (contract section 4)."""

from __future__ import annotations

from turngate.processors.audience import PUBLIC, UNKNOWN
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination
from turngate.processors.sources import as_seen
from turngate.processors.tracing import trace_turn
from turngate.processors.trial import Tried
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.outputs import TurnAuthorized, TurnDecided, Verdict
from turngate.schemas.shapes import LATEST, Action, Audience, Reason, Scope
from turngate.schemas.unchecked import unchecked


def decide(
    ledger: Ledger,
    draft: TurnDrafted,
    verdict: Verdict,
    against: list[Reason],
    *,
    provenance: tuple[str, ...] = (),
    content: str | None = None,
    fingerprint: str | None = None,
) -> None:
    """Emit `TurnDecided` of a draft of which nothing is let out, or not yet, and its trace."""
    decided = _decided(ledger, draft, verdict, against, provenance, content=content, fingerprint=fingerprint)
    ledger.emit(decided)
    trace_turn(ledger, draft, decided, None)


def authorize(
    ledger: Ledger,
    draft: TurnDrafted,
    verdict: Verdict,
    tried: Tried,
    text: str | None,
    to: Destination,
    valid_until: int | None,
    *,
    action: Action | None,
    rendering: int | None = None,
    against: list[Reason] | None = None,
) -> None:
    """Emit `TurnDecided`, `TurnAuthorized` (exactly these bytes, to no more than these readers), and their trace.

    None is validated: they hold what came in, which was, and digests. Raises `ValueError` for an end that no record
    can name.
    """
    decided = _decided(ledger, draft, verdict, against or [], tried.refs, leaves=tried.leaves, rendering=rendering)
    if valid_until is not None and valid_until > LATEST:
        raise ValueError("it would be valid beyond the year 9999")
    authorized = unchecked(
        TurnAuthorized,
        tenant=ledger.tenant,
        at=ledger.now,
        turn=draft.turn,
        agent=draft.agent,
        room=draft.room,
        thread=draft.thread,
        broadcast=draft.broadcast,
        text=text,
        action=action,
        destination=_heard_by(to, tried.own_words),
        provenance=tried.refs,
        grants=tried.grants,
        proofs=tried.proofs,
        valid_until=valid_until,
        decision=decided.decision,
    )
    ledger.emit(decided)
    ledger.emit(authorized)
    trace_turn(ledger, draft, decided, authorized)


def _decided(
    ledger: Ledger,
    draft: TurnDrafted,
    verdict: Verdict,
    against: list[Reason],
    provenance: tuple[str, ...],
    *,
    leaves: tuple[str, ...] | None = None,
    rendering: int | None = None,
    content: str | None = None,
    fingerprint: str | None = None,
) -> TurnDecided:
    """The decision; its id is SHA-256 of the turn and its content.

    `leaves`, sorted, are those of the provenance, looked up where they are not given; their digest is that of their
    digests (`docs/decisions.md`).
    """
    turn, agent, room = draft.turn, draft.agent, draft.room
    if content is None:
        row = ledger.tables.turns.get((ledger.tenant, turn))
        content = None if row is None else row.content
    if leaves is None:
        leaves = tuple(sorted(as_seen(ledger, provenance, agent, keep=False)))
    return unchecked(
        TurnDecided,
        tenant=ledger.tenant,
        at=ledger.now,
        turn=turn,
        agent=agent,
        room=room,
        verdict=verdict,
        rendering=rendering,
        reasons=tuple({(r.code, r.ref): r for r in against}.values()),
        fingerprint=fingerprint,
        provenance=provenance,
        leaves_digest=digest(leaves),
        as_of=ledger.as_of(),
        policy=ledger.policy(room).label,
        decision=digest({"turn": turn, "content": content}),
    )


def _heard_by(to: Destination, own_words: bool) -> Audience:
    """Of a downgrade anyone may hear what is sent, but for an open room's own words (R-TURN-6, R-AUD-10)."""
    if to.audience.scope is Scope.LISTED:
        return to.audience
    return UNKNOWN if own_words else PUBLIC
