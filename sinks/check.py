"""Decides, right before sending, whether what was authorized may still be said in its room (R-DLV-1).

What happens there afterwards, somebody joining and reading back, is the chat system's (R-DLV-4, `docs/delivery.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turngate.processors.approvals import turn_fingerprint
from turngate.processors.audience import Sets, keyed
from turngate.processors.live import Shown, shown
from turngate.processors.policy import Effective
from turngate.schemas.inputs import MembershipPage
from turngate.schemas.outputs import TurnAuthorized
from turngate.schemas.shapes import Audience, Code, Reason, Scope, Visibility
from turngate.sinks.facts import KEPT_MS, Facts


def against(
    turn: TurnAuthorized, pages: Sequence[MembershipPage] | None, facts: Facts, here: int, since: int
) -> tuple[Reason, ...]:
    """Everything that stands against sending a turn now; nothing: it may be sent.

    `pages` are those of a listing of its room, made live; None where none was asked for (`needs_listing`). `since` is
    when the turn was read: an older listing says nothing. `here` is the time of the clock that listings are begun by;
    what has an end has ended by this clock or by the log's.
    """
    now = max(here, facts.now)
    policy = facts.policy(turn.tenant, turn.decision)
    codes: dict[Code, None] = {}
    if turn.agent not in policy.settings.agents:
        codes[Code.AGENT_UNKNOWN] = None
    if facts.paused(turn.tenant, turn.agent, turn.room):
        codes[Code.PAUSED] = None
    for grant in turn.grants:
        ended = facts.ended_grant(turn.tenant, grant)
        if ended is not None:
            codes[ended] = None
    if not all(facts.live_proof(turn.tenant, proof, now) for proof in turn.proofs):
        codes[Code.PROOF_NOT_LIVE] = None
    # Of what stood before that the engine knew; which approval it went by is not said.
    since_decided = turn.at - policy.settings.freshness.clock_skew
    if facts.withdrawn_since(turn.tenant, turn_fingerprint(turn, turn.text), since_decided):
        codes[Code.APPROVAL_MISSING] = None
    if turn.valid_until is not None and turn.valid_until <= now:
        codes[Code.VALIDITY_EXPIRED] = None
    found = [Reason(code=code) for code in codes]
    found += erased(facts, turn.tenant, turn.provenance)
    if needs_listing(turn):
        code = _of_room(turn, pages or (), policy, facts, here, since)
        found += [] if code is None else [Reason(code=code, ref=turn.room)]
    return tuple(found)


def erased(facts: Facts, tenant: str, refs: Iterable[str]) -> list[Reason]:
    """What of a provenance was erased since, so that nothing made of it is said any more (R-RET-3)."""
    return [Reason(code=Code.SOURCE_DELETED, ref=ref) for ref in facts.erased(tenant, refs)]


def needs_listing(turn: TurnAuthorized) -> bool:
    """Whether it matters who reads the room: what is public may be heard by anybody."""
    return turn.destination.scope is not Scope.PUBLIC


def room_now(pages: Sequence[MembershipPage], policy: Effective, facts: Facts, here: int, since: int) -> Shown | Code:
    """The room as a live listing shows it, or why that says nothing: not complete, void, or not of now."""
    if not pages:
        return Code.DESTINATION_UNKNOWN
    first = pages[0]
    freshness = policy.settings.freshness
    began = first.started_at - freshness.clock_skew  # events are told by others' clocks
    room = shown(pages, policy, facts.joined_since(first.tenant, first.room, began))
    if room is None or facts.changed_since(first.tenant, first.agent, first.room, began):
        return Code.DESTINATION_UNKNOWN
    if room.started_at < since or here - room.started_at >= min(freshness.delivery, KEPT_MS):
        return Code.DESTINATION_STALE
    return room


def within(upper: Audience, destination: Audience) -> bool:
    """Whether everybody of `upper` is of `destination` (R-AUD-1)."""
    mine, theirs = keyed(upper), keyed(destination)
    return Sets().within(upper, mine.key, destination, theirs.key)


def _of_room(
    turn: TurnAuthorized, pages: Sequence[MembershipPage], policy: Effective, facts: Facts, here: int, since: int
) -> Code | None:
    if any((page.tenant, page.agent, page.room) != (turn.tenant, turn.agent, turn.room) for page in pages):
        return Code.DESTINATION_UNKNOWN
    room = room_now(pages, policy, facts, here, since)
    if isinstance(room, Code):
        return room
    if turn.destination.scope is Scope.UNKNOWN:  # the room's own words, while it is open (R-AUD-10)
        return None if room.visibility is Visibility.OPEN else Code.DESTINATION_ENLARGED
    if room.upper.scope is Scope.UNKNOWN:
        return Code.DESTINATION_UNKNOWN
    return None if within(room.upper, turn.destination) else Code.DESTINATION_ENLARGED
