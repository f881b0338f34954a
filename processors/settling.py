"""Decides who could read what was said before its room was listed, by a listing begun soon after (R-AUD-9)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.audience import KEYED_UNKNOWN, UNKNOWN, Keyed, intersection, keyed
from turngate.processors.bounds import changed_at, current, made_members, told_since, without
from turngate.processors.evidence import emit_evidence, evidence_of, keep_evidence
from turngate.processors.ledger import Ledger
from turngate.processors.rows import Event, Evidence, LeafRow, Listing, Pending
from turngate.schemas.outputs import Because
from turngate.schemas.shapes import Visibility

#: What one listing settles alike: by the audience before it, who came since the message, and what was told since then.
Then = dict[tuple[str | None, frozenset[str], tuple[Event, ...]], Keyed]


def settle(ledger: Ledger, agent: str, room: str, listing: Listing) -> None:
    """Settle what waits in a room on its new current listing; ask for another for what was said after it began."""
    row = ledger.room(agent, room)
    if not row.pending:
        return
    changed = changed_at(ledger.room_log(room), agent)
    freshness = ledger.policy(room).settings.freshness
    limit = freshness.settle
    still: list[Pending] = []
    made: Then = {}
    for pending in row.pending:
        if changed is not None and changed >= pending.at:
            continue  # a change at or after the message: it never settles
        if listing.started_at <= pending.at:
            still.append(_later_basis(ledger, agent, room, listing, pending))
        elif listing.started_at < pending.at + limit:
            _settle(ledger, agent, room, listing, pending, made)
    ledger.put_room(agent, room, pending=tuple(still))
    # Of what was said in the future a listing begun now settles nothing: asking at once would ask without end.
    said = [pending.at for pending in still if pending.at <= ledger.now + freshness.clock_skew]
    if said:
        ledger.ask(agent, room, Because.OBSERVATION, said[-1] + limit, again=True)


def _later_basis(ledger: Ledger, agent: str, room: str, listing: Listing, pending: Pending) -> Pending:
    """A listing that began before the message and came only after it is an earlier listing too, if there was none."""
    if _stands(ledger, agent, room, pending):
        return pending
    is_open = listing.visibility is Visibility.OPEN
    audience = None if is_open else ledger.keep_audience(current(ledger, agent, room, listing).keyed)
    return replace(pending, before=listing, audience=audience)


def _settle(ledger: Ledger, agent: str, room: str, listing: Listing, pending: Pending, made: Then) -> None:
    known = evidence_of(ledger, pending.ref, agent)
    if known is None or known.over:
        return
    audience, is_open = _then(ledger, agent, room, listing, pending, made)
    old = ledger.leaf(known.leaves[pending.leaf])
    members = listing.visibility is Visibility.MEMBERS
    key = ledger.keep_leaf(_leaf(ledger, old, audience, is_open, members))
    leaves = (*known.leaves[: pending.leaf], key, *known.leaves[pending.leaf + 1 :])
    settled: Evidence = replace(known, leaves=leaves)
    keep_evidence(ledger, pending.ref, agent, settled)
    emit_evidence(ledger, pending.ref, agent, settled)


def _leaf(ledger: Ledger, old: LeafRow, audience: Keyed, is_open: bool, members: bool) -> LeafRow:
    unknown = audience.audience == UNKNOWN
    return replace(
        old, audience=ledger.keep_audience(audience), open=is_open, private=members or (unknown and not is_open)
    )


def _then(ledger: Ledger, agent: str, room: str, listing: Listing, pending: Pending, made: Then) -> tuple[Keyed, bool]:
    """Who could read the room when it was said, and whether it was open, by the listing begun after that."""
    policy = ledger.policy(room)
    events = tuple(e for e in ledger.room_log(room).events if e.agent is None or e.agent == agent)
    is_open = listing.visibility is Visibility.OPEN
    before = pending.before if _stands(ledger, agent, room, pending) else None
    if before is not None and pending.audience is None:  # it was open
        return KEYED_UNKNOWN, is_open
    if is_open:
        return KEYED_UNKNOWN, before is None
    came = frozenset(e.reader for e in events if e.joined and e.at >= pending.at)
    since = () if before is None else tuple(e for e in events if told_since(e, before))
    basis = (None if before is None else pending.audience, came, since)
    if basis not in made:
        audience = without(current(ledger, agent, room, listing).audience, came)
        if before is not None and pending.audience is not None:
            own, trusted = policy.accounts(agent), policy.settings.trusted_bots
            then = made_members(ledger.audience(pending.audience), since, own, trusted)
            audience = intersection(audience, then)
        made[basis] = keyed(audience)
    return made[basis], False


def _stands(ledger: Ledger, agent: str, room: str, pending: Pending) -> bool:
    """Whether there was a listing when it was said, and no change before that had made it void."""
    changed = changed_at(ledger.room_log(room), agent)
    return pending.before is not None and (changed is None or pending.before.started_at > changed)
