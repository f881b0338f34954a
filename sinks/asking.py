"""Decides where a question about a turn is asked, and where sharing is offered (R-TNT-6, R-GRT-1).

A question shows the turn's text and its action's values. So it is asked in the draft's room only where everybody there
now was there when the turn was judged, and may be shown all of that; else of the policy's approvers, each in the room
that they share with the agent alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from turngate.processors.live import Shown, shown
from turngate.processors.sources import REVISION
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import MembershipPage, Record, RoomChanged, TurnDrafted
from turngate.schemas.outputs import SharingOffered, TurnDecided
from turngate.schemas.shapes import Audience, Code, Position, Reason, Scope
from turngate.sinks.check import erased, room_now, within
from turngate.sinks.claims import Key, Kind, Place, State, question_id
from turngate.sinks.delivery import Delivery
from turngate.sinks.errands import Errand, sendable_until
from turngate.sinks.ports import Connector, Journal, Listed
from turngate.sinks.questions import answered, offer, question
from turngate.streams.log import Message

#: Records that are looked through for a draft, and for the listing that its room was judged by.
FAR, PIECE = 50_000, 5_000
DRAFTS, ROOMS = "turn-drafts", "membership-refreshes"
#: The least seconds between two tries to open a direct room.
AGAIN = 0.5
#: Milliseconds for which it is tried to take the buttons from a question that is decided.
AMENDED_MS = 60_000
#: Where the question cannot be asked there, and may be asked elsewhere.
_ELSEWHERE = (State.WITHHELD, State.FAILED)

log = logging.getLogger(__name__)
Look = Callable[[Shown], Code | None]


@dataclass(frozen=True, slots=True)
class _About:
    """What is shown: by which decision, made of what, and until when (ms) that is worth anything."""

    decided: TurnDecided | None
    provenance: tuple[str, ...]
    until: int


class Asking:
    """Asks and offers, each once in each room."""

    def __init__(self, delivery: Delivery, journal: Journal, connector: Connector, codec: Codec) -> None:
        self._delivery = delivery
        self._journal = journal
        self._connector = connector
        self._codec = codec

    async def question(self, decided: TurnDecided, read_at: int) -> None:
        """Ask for somebody's yes to what a draft would say or do, unless that was decided meanwhile."""
        if not self._connector.serves(decided.room):
            return
        await self._journal.reach_end(decided.tenant)
        found = await self._draft(decided)
        if found is None:
            log.warning("turn %s: its draft is not found, so nobody is asked", decided.turn)
            return
        draft, arrived = found
        policy = self._journal.facts.policy(decided.tenant, decided.decision).settings
        until = sendable_until(arrived, arrived + policy.interlock.ask_ttl)
        until = until if draft.deadline is None else min(until, draft.deadline)
        if until <= self._delivery.now() or self._journal.facts.ended(decided.tenant, decided.turn):
            return
        judged = await self._judged_by(decided)
        if judged is not None:
            look = partial(self._as_judged, draft, decided, judged.upper)
            if await self._ask(draft, decided, Place(decided.agent, draft.room, draft.thread), until, look, read_at):
                return
        for reader in policy.interlock.approvers:
            room = await self._direct_room(decided, reader, until)
            if room is not None:
                look = partial(_alone, reader)
                await self._ask(draft, decided, Place(decided.agent, room), until, look, read_at)

    def asked(self, decided: TurnDecided) -> bool:
        """Whether somebody's yes was asked for, as far as is remembered."""
        return self._journal.facts.asked(decided.tenant, decided.turn)

    async def answered(self, decided: TurnDecided) -> None:
        """Take the buttons from the questions about a turn that is decided."""
        for claim in await self._delivery.questions(decided.tenant, decided.turn):
            said = answered(decided, claim.key.id)
            until = self._delivery.now() + AMENDED_MS
            while claim.message is not None:
                wait = await self._connector.amend(claim.key.tenant, claim.place, claim.message, said)
                if wait is None or self._delivery.now() + wait * 1000 >= until:
                    break
                await asyncio.sleep(max(wait, AGAIN))

    async def _direct_room(self, decided: TurnDecided, reader: str, until: int) -> str | None:
        while True:
            found = await self._connector.direct_room(decided.tenant, decided.agent, reader)
            if found.wait is None or self._delivery.now() + found.wait * 1000 >= until:
                return found.room
            await asyncio.sleep(max(found.wait, AGAIN))

    async def offer(self, offered: SharingOffered, read_at: int) -> None:
        """Show an author what would be shared, in the room that they share with the agent alone."""
        if not self._connector.serves(offered.room):
            return
        key = Key(offered.tenant, Kind.OFFER, offered.request)
        said = offer(offered, key.id)
        if said is None:
            log.warning("offer %s: its text is too long to be shown", offered.request)
            return
        place = Place(offered.agent, offered.room)
        of = _About(None, (f"{REVISION}{offered.revision}",), sendable_until(offered.at, offered.expires_at))
        against = partial(self._against, key.tenant, place, of, partial(_alone, None))
        errand = Errand(key, place, said, of.until, None, lists=True, shared=False, against=against)
        await self._delivery.send(errand, read_at)

    async def _ask(
        self, draft: TurnDrafted, decided: TurnDecided, place: Place, until: int, look: Look, read_at: int
    ) -> bool:
        """Ask in one room; whether it was, as far as is known, asked there."""
        key = Key(decided.tenant, Kind.QUESTION, question_id(decided.turn, decided.fingerprint or "", place.room))
        said = question(draft, decided, key.id, until, here=place.room == draft.room)
        if said is None:
            log.warning("turn %s: it cannot be shown as a whole, so nobody is asked", decided.turn)
            return True
        against = partial(self._against, key.tenant, place, _About(decided, decided.provenance, until), look)
        errand = Errand(key, place, said, until, decided.decision, lists=True, shared=True, against=against)
        claim = await self._delivery.send(errand, read_at)
        return claim.state not in _ELSEWHERE

    def _as_judged(self, draft: TurnDrafted, decided: TurnDecided, judged: Audience, now: Shown) -> Code | None:
        """Everybody in the room now was there when the turn was judged, and may be shown all of it.

        Which grants and proofs permitted it a decision does not say, so none may have ended since.
        """
        if not within(now.upper, judged):
            return Code.DESTINATION_ENLARGED
        if draft.action is not None and now.upper.guests:  # its values were judged for its operation (R-EGR-2)
            return Code.CLASS_EGRESS
        facts = self._journal.facts
        skew = facts.policy(decided.tenant, decided.decision).settings.freshness.clock_skew
        return facts.ended_since(decided.tenant, decided.at - skew, max(self._delivery.now(), facts.now))

    def _against(
        self,
        tenant: str,
        place: Place,
        of: _About,
        look: Look,
        listed: Listed | None,
        since: int,
    ) -> tuple[Reason, ...]:
        """What stands against showing something in a room now."""
        facts, now, decided = self._journal.facts, self._delivery.now(), of.decided
        policy = facts.policy(tenant, None if decided is None else decided.decision)
        codes: list[Code] = []
        if place.agent not in policy.settings.agents:
            codes.append(Code.AGENT_UNKNOWN)
        rooms = {place.room} if decided is None else {place.room, decided.room}
        if any(facts.paused(tenant, place.agent, room) for room in rooms):
            codes.append(Code.PAUSED)
        if of.until <= max(now, facts.now) or (decided is not None and facts.ended(tenant, decided.turn)):
            codes.append(Code.VALIDITY_EXPIRED)
        now_there = room_now(() if listed is None else listed.pages, policy, facts, now, since)
        if isinstance(now_there, Code):
            code: Code | None = now_there
        else:
            code = Code.DESTINATION_UNKNOWN if now_there.upper.scope is Scope.UNKNOWN else look(now_there)
        found = [*(Reason(code=code) for code in codes), *erased(facts, tenant, of.provenance)]
        return (*found, *([] if code is None else [Reason(code=code, ref=place.room)]))

    async def _draft(self, decided: TurnDecided) -> tuple[TurnDrafted, int] | None:
        """The draft that a decision is about, and when it arrived: the first of that turn is the one that counts."""
        found: tuple[TurnDrafted, int] | None = None
        before = _applied(decided.as_of, DRAFTS)
        for end in range(before, max(0, before - FAR), -PIECE):
            for message in await self._journal.look_back(decided.tenant, DRAFTS, end, min(PIECE, end)):
                record = self._decoded(message)
                if isinstance(record, TurnDrafted) and (record.tenant, record.turn) == (decided.tenant, decided.turn):
                    found = found or (record, message.timestamp)
            if found is not None:
                return found
        return None

    async def _judged_by(self, decided: TurnDecided) -> Shown | None:
        """The room's listing that the decision was made by, as the log tells it; None where that is not clear."""
        policy = self._journal.facts.policy(decided.tenant, decided.decision)
        oldest = decided.at - policy.settings.freshness.destination
        pages: dict[str, list[MembershipPage]] = {}
        before = _applied(decided.as_of, ROOMS)
        for message in await self._journal.look_back(decided.tenant, ROOMS, before, PIECE):
            record = self._decoded(message)
            if not isinstance(record, MembershipPage | RoomChanged):
                continue
            if (record.tenant, record.room) != (decided.tenant, decided.room) or record.agent not in (
                None,
                decided.agent,
            ):
                continue
            if isinstance(record, RoomChanged):
                pages = {name: ps for name, ps in pages.items() if ps[0].started_at > record.at}
            else:
                pages.setdefault(record.refresh, []).append(record)
        listings = (shown(_in_order(ps), policy) for ps in pages.values())
        whole = [room for room in listings if room is not None and room.started_at > oldest]
        return max(whole, key=lambda room: room.started_at, default=None)

    def _decoded(self, message: Message) -> Record | None:
        """A record under its tenant's key; of anything else the engine took no notice either."""
        with suppress(Undecodable):
            record = self._codec.decode(message.value)
            return record if message.key == record.tenant.encode() else None
        return None


def _alone(reader: str | None, now: Shown) -> Code | None:
    """The room has one reader, and it is this one where somebody is named."""
    return None if now.sole is not None and reader in (None, now.sole) else Code.NOT_DIRECT


def _applied(as_of: Sequence[Position], topic: str) -> int:
    return next((position.offset for position in as_of if position.topic == topic), 0)


def _in_order(pages: Sequence[MembershipPage]) -> list[MembershipPage]:
    """Each page once, by number."""
    return [page for _, page in sorted({page.page: page for page in pages}.items())]
