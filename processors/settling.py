"""Decides who could read what was said before its room was listed, once a listing begun soon after is there (R-AUD-9)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.audience import UNKNOWN, intersection
from turngate.processors.bounds import base, changed_at, made_members, since
from turngate.processors.evidence import emit_evidence, evidence_of, keep_evidence
from turngate.processors.ledger import Ledger
from turngate.processors.rows import Evidence, LeafRow, Listing, Pending, Roster
from turngate.schemas.outputs import Because
from turngate.schemas.shapes import Audience, Visibility


class Earlier:
    """The listing before the one that settles, as it was known, taken before that one replaces it."""

    def __init__(self, ledger: Ledger, agent: str, room: str) -> None:
        self.listing = ledger.room(agent, room).listing
        self.roster: Roster | None = ledger.tables.rosters.get((ledger.tenant, agent, room))


def settle(ledger: Ledger, agent: str, room: str, listing: Listing, earlier: Earlier) -> None:
    """Settle what waits in a room on its new current listing; ask for another for what was said after it began."""
    row = ledger.room(agent, room)
    if not row.pending:
        return
    changed = changed_at(ledger, agent, room)
    limit = ledger.policy(room).settings.freshness.settle
    still: list[Pending] = []
    for pending in row.pending:
        if changed is not None and changed >= pending.at:
            continue  # a change at or after the message: it never settles
        if listing.started_at <= pending.at:
            still.append(pending)
        elif listing.started_at < pending.at + limit:
            _settle(ledger, agent, room, listing, earlier, pending)
    ledger.put_room(agent, room, pending=tuple(still))
    if still:
        ledger.ask(agent, room, Because.OBSERVATION, still[-1].at + limit, again=True)


def _settle(ledger: Ledger, agent: str, room: str, listing: Listing, earlier: Earlier, pending: Pending) -> None:
    known = evidence_of(ledger, pending.ref, agent)
    if known is None or known.over:
        return
    audience, is_open = _then(ledger, agent, room, listing, earlier, pending.at)
    old = ledger.leaf(known.leaves[pending.leaf])
    members = listing.visibility is Visibility.MEMBERS
    key = ledger.keep_leaf(_leaf(ledger, old, audience, is_open, members))
    leaves = (*known.leaves[: pending.leaf], key, *known.leaves[pending.leaf + 1 :])
    if leaves != known.leaves:
        made: Evidence = replace(known, leaves=leaves)
        keep_evidence(ledger, pending.ref, agent, made)
        emit_evidence(ledger, pending.ref, agent, made)


def _leaf(ledger: Ledger, old: LeafRow, audience: Audience, is_open: bool, members: bool) -> LeafRow:
    unknown = audience == UNKNOWN
    return replace(
        old, audience=ledger.keep_audience(audience), open=is_open, private=members or (unknown and not is_open)
    )


def _then(ledger: Ledger, agent: str, room: str, listing: Listing, earlier: Earlier, at: int) -> tuple[Audience, bool]:
    """Who could read the room at `at`, and whether it was open then, by the listing begun after that."""
    policy = ledger.policy(room)
    own, trusted = policy.accounts(agent), policy.settings.trusted_bots
    events = tuple(e for e in ledger.room_log(room).events if e.agent is None or e.agent == agent)
    is_open = listing.visibility is Visibility.OPEN
    before = earlier.listing if _stands(ledger, agent, room, earlier) else None
    if before is not None and before.visibility is Visibility.OPEN:
        return UNKNOWN, is_open
    roster = ledger.tables.rosters.rows[ledger.tenant, agent, room]
    now = UNKNOWN if is_open else base(listing, roster, policy, agent)
    if not is_open:
        came = {e.reader for e in events if e.joined and e.at >= at}
        now = now.model_copy(
            update={
                "readers": tuple(r for r in now.readers if r not in came),
                "guests": tuple(r for r in now.guests if r not in came),
                "memberships": {r: m for r, m in now.memberships.items() if r not in came},
            }
        )
    if before is None or earlier.roster is None:
        return now, is_open
    then = made_members(base(before, earlier.roster, policy, agent), since(events, agent, before), own, trusted)
    return intersection(now, then), False


def _stands(ledger: Ledger, agent: str, room: str, earlier: Earlier) -> bool:
    """Whether the earlier listing is there and no change made it void."""
    changed = changed_at(ledger, agent, room)
    return earlier.listing is not None and (changed is None or earlier.listing.started_at > changed)
