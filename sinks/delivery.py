"""Decides how a turn goes from authorized to a final record: claimed, listed, checked, sent once (rules DLV)."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from turngate.schemas.inputs import DeliveryStatus, TurnDelivered
from turngate.schemas.metadata import NOTE, TURN
from turngate.schemas.outputs import TurnAuthorized
from turngate.schemas.shapes import Code, Reason
from turngate.sinks.check import against, needs_listing
from turngate.sinks.claims import Claim, Claims, ClaimsUnavailable, Key, Kind, Place, State
from turngate.sinks.errands import KEPT_MS, Errand, Patience, turn_until
from turngate.sinks.facts import COMMANDS, MESSAGES
from turngate.sinks.listings import Listings
from turngate.sinks.ports import Connector, Journal, Listed, NotPosted, Posted, Said
from turngate.streams.clock import now_ms

#: Seconds between two looks for claims that are older.
_PRUNE = 86_400
#: Milliseconds for which a turn's text waits for its action; whoever waits longer holds up what is noted behind it.
ACTION_MS = 900_000
#: Milliseconds before its claim from which on a message is looked for: two machines' clocks.
LOOK_BACK_MS = 300_000
#: Milliseconds for which, after a restart, what is uncertain is still looked for.
REMEMBERED_MS = 86_400_000
DELIVERIES = "deliveries"
NOT_CONFIRMED = (Reason(code=Code.NOT_CONFIRMED),)

log = logging.getLogger(__name__)
T = TypeVar("T")


class Delivery:
    """Sends what was authorized in a connector's rooms, and records what became of it."""

    def __init__(
        self,
        journal: Journal,
        claims: Claims,
        connector: Connector,
        clock: Callable[[], int] = now_ms,
        patience: Patience | None = None,
    ) -> None:
        self._journal = journal
        self._claims = claims
        self._connector = connector
        self._clock = clock
        self._patience = Patience() if patience is None else patience
        self._listings = Listings(connector, journal, clock)
        journal.facts.listener = connector.told
        self._looking: set[asyncio.Task[None]] = set()

    def now(self) -> int:
        """The time by the clock that listings are begun by, in milliseconds."""
        return self._clock()

    async def turn(self, turn: TurnAuthorized, read_at: int) -> None:
        """Deliver a turn that was read at `read_at`; when this returns, what became of it is recorded.

        Of a turn that carries an action, the text is said once whoever executes that has recorded that it was done; of
        the two records the engine takes the first.
        """
        # Else a first delivery from an old log, or one that has lost its claims, would say the past again.
        turn = turn.model_copy(update={"valid_until": turn_until(turn)})
        if not self._connector.serves(turn.room) or turn.text is None:
            return
        if turn.action is not None and not await self._done(turn):
            log.info("turn %s: its action was not done in time, so its text is not said", turn.turn)
            return
        errand = Errand(
            key=Key(turn.tenant, Kind.TURN, turn.turn),
            place=Place(turn.agent, turn.room, turn.thread),
            said=Said(turn.text, TURN, turn.turn, turn.broadcast),
            until=turn_until(turn),
            decision=turn.decision,
            lists=needs_listing(turn),
            shared=bool(turn.grants),
            against=lambda listed, since: against(
                turn, None if listed is None else listed.pages, self._journal.facts, self._clock(), since
            ),
        )
        await self.send(errand, read_at)

    async def _done(self, turn: TurnAuthorized) -> bool:
        """Whether the turn's action is recorded as done while its text may still be said."""
        until = min(turn_until(turn), turn.at + ACTION_MS)
        while self._clock() < until:
            await self._journal.reach_end(turn.tenant)
            status = self._journal.facts.delivered(turn.tenant, turn.turn)
            if status not in (None, DeliveryStatus.UNCERTAIN):
                return status is DeliveryStatus.SENT
            await asyncio.sleep(self._patience.action)
        return False

    async def send(self, errand: Errand, read_at: int) -> Claim:
        """Send something unless it was, or something stands against it; the claim as it then stands.

        A room's listing must have begun after `read_at`.
        """
        while True:
            owner = uuid.uuid4().hex
            taken = await self._insist(partial(self._claims.take, errand.key, errand.place, owner, read_at))
            mine = taken.state is State.CLAIMED
            claim = await self._attempt(errand, owner, read_at) if mine else await self._found(taken)
            if isinstance(claim, Claim) and claim.state.status is not None:
                return await self._recorded(claim)
            # Somebody else has it under way, and may be stopped before it is recorded: this waits for its end.
            await asyncio.sleep(self._patience.sending if isinstance(claim, Claim) else claim)
            read_at = self._clock()  # what was listed before the wait says nothing any more

    async def resume(self) -> None:
        """Look for what was uncertain when this, or another process, was stopped; and forget what is long past."""
        self._beside(self._prune())
        for claim in await self._insist(lambda: self._claims.uncertain(self._clock() - REMEMBERED_MS)):
            if self._connector.serves(claim.place.room):
                self._beside(self._keep_looking(claim))

    async def questions(self, tenant: str, turn: str) -> list[Claim]:
        """The questions about a turn that were asked."""
        return await self._insist(lambda: self._claims.questions(tenant, turn))

    async def stop(self) -> None:
        """List nothing, and look for nothing, any more."""
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)
        await self._listings.stop()

    async def _attempt(self, errand: Errand, owner: str, read_at: int) -> Claim | float:
        """One try: the claim as it then stands, or after how many seconds there is to be another."""
        listed = None
        known = await self._all_known(errand)  # also what accounts have become since they were asked about
        if known and errand.lists:
            listed = await self._listed(errand, read_at)
            known = await self._all_known(errand)
        if not known:
            if self._clock() < errand.until:
                return self._patience.retry
            return await self._end(errand, owner, State.WITHHELD, (Reason(code=Code.BARRIER_LATE),))
        found = errand.against(listed, read_at)
        if not found:
            if not await self._insist(lambda: self._claims.begin(errand.key, owner)):
                return await self._insist(lambda: self._claims.read(errand.key))  # somebody else has taken it over
            found = errand.against(listed, read_at)  # the claims may have been slow
        if found:
            return await self._end(errand, owner, State.WITHHELD, found)
        match await self._connector.post(errand.key.tenant, errand.place, errand.said):
            case Posted(message):
                return await self._end(errand, owner, State.SENT, message=message)
            case NotPosted(reason, wait) if wait is None or self._clock() + wait * 1000 >= errand.until:
                return await self._end(errand, owner, State.FAILED, (reason,))
            case NotPosted(_, wait):
                await self._insist(lambda: self._claims.release(errand.key, owner))
                return max(wait or 0.0, self._patience.retry)
        return await self._look(await self._insist(lambda: self._claims.read(errand.key)))

    async def _all_known(self, errand: Errand) -> bool:
        """Whether all that the log says now is known; also what only the engine can tell what it comes to.

        That is what an erasure reaches (R-RET-3), and a message that takes a grant back (R-GRT-4, R-GRT-9).
        """
        tenant = errand.key.tenant
        if not await self._journal.reach_end(tenant):
            return False
        topics = [MESSAGES] if errand.shared else []
        topics += [COMMANDS] if self._journal.facts.erasing(tenant) else []
        return not topics or await self._journal.applied(tenant, topics)

    async def _listed(self, errand: Errand, since: int) -> Listed:
        """The room's listing.

        One that failed is made again, and so is one that the room was changed before or in (R-ROOM-5), while that may
        help and the errand is worth it.
        """
        place, tenant, facts = errand.place, errand.key.tenant, self._journal.facts
        while True:
            freshness = facts.policy(tenant, errand.decision).settings.freshness
            listed = await self._listings.get((tenant, place.agent, place.room), since, freshness.delivery // 2)
            if listed.failed:
                wait = listed.wait
            else:
                await self._journal.reach_end(tenant)
                began = listed.pages[0].started_at - freshness.clock_skew
                changed = facts.changed_since(tenant, place.agent, place.room, began)
                wait = freshness.clock_skew / 1000 if changed else None
            wait = None if wait is None else max(wait, self._patience.retry)
            if wait is None or self._clock() + wait * 1000 >= errand.until:
                return listed
            await asyncio.sleep(wait)
            since = self._clock()

    async def _found(self, claim: Claim) -> Claim:
        """Something is there already: it has ended, or is looked for.

        Where it is not seen at once, somebody else may be sending it just now: it is looked for again after that.
        """
        if claim.state is State.SENDING:
            seen = await self._seen(claim)
            if seen is not None:
                return seen
            await asyncio.sleep(self._patience.sending)
            claim = await self._insist(lambda: self._claims.read(claim.key))
        return await self._look(claim) if claim.state is State.SENDING else claim

    async def _look(self, claim: Claim) -> Claim:
        """Whether what may have been sent is there. What is not seen is uncertain: it may still come."""
        seen = await self._seen(claim)
        if seen is not None:
            return seen
        return await self._insist(lambda: self._claims.end(claim.key, "", State.UNCERTAIN, reasons=NOT_CONFIRMED))

    async def _seen(self, claim: Claim) -> Claim | None:
        message = await self._message(claim)
        if message is None:
            return None
        return await self._insist(lambda: self._claims.end(claim.key, "", State.SENT, message))

    async def _message(self, claim: Claim) -> str | None:
        mark = TURN if claim.key.kind is Kind.TURN else NOTE
        return await self._connector.find(claim.key, claim.place, mark, claim.at - LOOK_BACK_MS)

    async def _recorded(self, claim: Claim) -> Claim:
        if claim.state is State.UNCERTAIN:
            self._beside(self._keep_looking(claim))
        status = claim.state.status
        if claim.key.kind is Kind.TURN and status is not None:
            record = TurnDelivered(
                tenant=claim.key.tenant,
                at=self._clock(),
                turn=claim.key.id,
                room=claim.place.room,
                status=status,
                message=claim.message,
                reasons=claim.reasons,
            )
            await self._journal.publish(DELIVERIES, [record])
        codes = ", ".join(reason.code for reason in claim.reasons)
        log.info("%s %s: %s%s", claim.key.kind, claim.key.id, claim.state, f" ({codes})" if codes else "")
        return claim

    async def _prune(self) -> None:
        while True:
            await self._insist(lambda: self._claims.prune(self._clock() - KEPT_MS))
            await asyncio.sleep(_PRUNE)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _keep_looking(self, claim: Claim) -> None:
        for seconds in self._patience.looks:
            await asyncio.sleep(seconds)
            message = await self._message(claim)
            if message is not None:
                # Recorded first: only while its claim says `uncertain` is it looked for again after a restart.
                await self._recorded(replace(claim, state=State.SENT, message=message, reasons=()))
                await self._insist(partial(self._claims.end, claim.key, "", State.SENT, message))
                return

    async def _end(
        self, errand: Errand, owner: str, state: State, reasons: tuple[Reason, ...] = (), message: str | None = None
    ) -> Claim:
        return await self._insist(lambda: self._claims.end(errand.key, owner, state, message, reasons))

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """The claims' answer, however long that takes: without them nothing is sent, and nothing is forgotten."""
        said = False
        while True:
            try:
                return await call()
            except ClaimsUnavailable as error:
                if not said:
                    log.warning("nothing is sent: %s", error)
                said = True
                await asyncio.sleep(self._patience.claims)
