"""Decides when which conversation is listed: when it is asked for, and before what is observed there goes stale.

One listing of a room is under way at a time, and serves everybody who asked before it began. A listing that fails is
published as one that failed, and tried again while somebody still waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.doubts import Doubts
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.listing import Listing, list_room
from turngate.connectors.slack.resolving import People
from turngate.schemas.inputs import MembershipPage, MessageObserved, PolicyPublished, Record, RoomChanged
from turngate.schemas.outputs import RefreshRequested
from turngate.schemas.policy import Freshness, PolicyInvalid, parse_policy
from turngate.streams.clock import now_ms
from turngate.streams.feed import Feed
from turngate.streams.log import LogError

REFRESHES, REQUESTS, POLICIES = "membership-refreshes", "refresh-requests", "policies"
MESSAGES = "observed-messages"
#: Milliseconds for which a room in which nothing is said, and that nobody asks for, is still kept from going stale.
ACTIVE = 86_400_000
#: Of the time for which an observation is good, so much passes before the room is listed anew.
EARLY = 0.8
#: Milliseconds until a listing that failed is tried again where nobody asks for it.
AGAIN = 60_000
#: Milliseconds between two rooms of a workspace that are listed though nobody asks: half of what Slack allows is left.
PACE = 5_000
#: Milliseconds between the beginnings of two listings of a room, so that a clock that is behind makes no storm of them.
APART = 250
#: Seconds before the second and the slowest further attempt.
_FIRST, _SLOWEST = 0.2, 5.0
#: Listings of one workspace at once.
_AT_ONCE = 8
#: Milliseconds by which this clock and a broker's may differ.
_SKEW = 60_000
#: Seconds between two looks for what goes stale.
_LOOK = 1.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Room:
    """What is known of a room's listings; times in ms. One must begin after `wanted`, and nobody waits after `until`.

    `used`: when the engine asked last, or something was said; `began`: when our last one began; `good`: when the last
    of ours that succeeded did; `seen`: when the last one on the log did, whoever made it.
    """

    home: Installation
    conversation: str
    wanted: int = 0
    until: int = 0
    used: int = 0
    began: int = 0
    good: int = 0
    seen: int = 0
    task: asyncio.Task[None] | None = None


class Roster:
    """Lists the conversations of every installation."""

    def __init__(
        self,
        api: SlackApi,
        installations: Installations,
        feed: Feed,
        clock: Callable[[], int] = now_ms,
        *,
        people: People | None = None,
    ) -> None:
        self._api = api
        self._installations = installations
        self._feed = feed
        self._clock = clock
        self._people = People(api, installations) if people is None else people
        self._doubts = Doubts(self._people)
        self._rooms: dict[tuple[str, str, str], _Room] = {}
        self._observations: dict[str, int] = {}
        self._paced: dict[str, int] = {}
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))
        #: Set when everything that was on the log has been seen.
        self.ready = asyncio.Event()
        self._failed: asyncio.Future[LogError] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Answer requests until cancelled. Raises `LogError` where the log cannot be used."""
        now = self._clock()
        for topic, since, learn in (
            (POLICIES, 0, self._policy),
            (REFRESHES, now - ACTIVE, self._refresh),
            (REQUESTS, now - ACTIVE, self._request),
        ):
            async for record in self._feed.follow(topic, since, forever=False):
                learn(record)
        self.ready.set()
        log.info("listing for %d workspaces", sum(1 for _ in self._installations))
        # A broker's clock may be behind this one: what was seen already is seen again, and changes nothing.
        again = now - _SKEW
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(POLICIES, again, self._policy))
                group.create_task(self._follow(REFRESHES, again, self._refresh))
                group.create_task(self._follow(REQUESTS, again, self._request))
                group.create_task(self._follow(MESSAGES, now - ACTIVE, self._message))
                group.create_task(self._keep_fresh())
                raise await self._failed
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            await self._stop()

    async def _follow(self, topic: str, since: int, learn: Callable[[Record], None]) -> None:
        async for record in self._feed.follow(topic, since):
            learn(record)

    def _policy(self, record: Record) -> None:
        """The least that any of a tenant's policies says: a longer time holds for rooms that start later (R-POL-1)."""
        if isinstance(record, PolicyPublished):
            with contextlib.suppress(PolicyInvalid):
                observation = parse_policy(record.document).freshness.observation
                self._observations[record.tenant] = min(observation, self._observations.get(record.tenant, observation))

    def _observation(self, tenant: str) -> int:
        return self._observations.get(tenant, Freshness().observation)

    def _message(self, record: Record) -> None:
        if isinstance(record, MessageObserved):
            entry = self._entry(record.tenant, record.agent, record.room)
            if entry is not None:
                entry.used = max(entry.used, record.at)

    def _refresh(self, record: Record) -> None:
        """A listing, whoever made it; an account that is to be looked at anew; or what makes a listing void."""
        self._doubts.learn(record)
        if isinstance(record, MembershipPage) and record.last and record.error is None:
            entry = self._entry(record.tenant, record.agent, record.room)
            if entry is not None:
                entry.seen = max(entry.seen, record.started_at)
        elif isinstance(record, RoomChanged) and record.agent is not None:
            entry, now = self._rooms.get((record.tenant, record.agent, record.room)), self._clock()
            if entry is not None and now < entry.until:  # somebody still waits, and the engine does not ask again
                self._ask(entry, now, entry.until)

    def _request(self, record: Record) -> None:
        """What the engine asks for. A listing must begin after this, by the clock that dates listings."""
        if not isinstance(record, RefreshRequested):
            return
        entry, now = self._entry(record.tenant, record.agent, record.room), self._clock()
        if entry is None:
            return
        entry.used = max(entry.used, record.at)
        if record.need_by + _SKEW > now:
            self._ask(entry, now, now + max(0, record.need_by - record.at))

    def _entry(self, tenant: str, agent: str, room: str) -> _Room | None:
        key = (tenant, agent, room)
        if key not in self._rooms:
            home = self._installations.of_room(tenant, agent, room)
            if home is None:
                return None
            self._rooms[key] = _Room(home, room.partition("/")[2])
        return self._rooms[key]

    def _ask(self, entry: _Room, since: int, until: int) -> None:
        entry.wanted, entry.until = max(entry.wanted, since), max(entry.until, until)
        if entry.task is None and entry.good <= entry.wanted:
            entry.task = asyncio.create_task(self._serve(entry))

    async def _serve(self, entry: _Room) -> None:
        """List a room until a listing began late enough, or nobody waits any more, or it cannot be listed."""
        attempt = _FIRST
        try:
            while entry.good <= entry.wanted:
                listing = await self._listed(entry)
                if listing.error is None:
                    attempt = _FIRST
                elif listing.wait is None or self._clock() + 1000 * max(listing.wait, attempt) >= entry.until:
                    return
                else:
                    await asyncio.sleep(max(listing.wait, attempt))
                    attempt = min(2 * attempt, _SLOWEST)
        except LogError as error:
            if not self._failed.done():
                self._failed.set_result(error)
        finally:
            entry.task = None

    async def _listed(self, entry: _Room) -> Listing:
        conversation = entry.conversation
        # as it is now: its token may be another one than when the room was first asked for
        home = self._installations.of(entry.home.app, entry.home.team) or entry.home
        async with self._turns[home.team]:
            await asyncio.sleep(max(1, entry.began + APART - self._clock(), entry.wanted + 1 - self._clock()) / 1000)
            entry.began = self._clock()
            listing = await list_room(self._api, self._people, home, conversation, entry.began)
        await self._feed.append(listing.pages(self._clock()))
        if listing.error is None:
            entry.good, entry.seen = listing.started_at, max(entry.seen, listing.started_at)
        else:
            log.warning("%s/%s: no listing: %s", home.team, conversation, listing.error)
        return listing

    async def _keep_fresh(self) -> None:
        while True:
            now = self._clock()
            for entry in sorted((e for e in self._rooms.values() if self._due(e, now)), key=self._stale_at):
                if now - self._paced.get(entry.home.team, 0) >= PACE:
                    self._paced[entry.home.team] = now
                    self._ask(entry, max(entry.wanted, entry.seen), max(entry.until, now + AGAIN))
            await asyncio.sleep(_LOOK)

    def _stale_at(self, entry: _Room) -> int:
        return entry.seen + self._observation(entry.home.tenant)

    def _due(self, entry: _Room, now: int) -> bool:
        """Whether a room is in use, and its listing will soon be too old for what is said there."""
        observation = self._observation(entry.home.tenant)
        due = entry.seen + int(EARLY * observation)
        used = entry.seen > 0 and now - entry.used < ACTIVE
        return used and due <= now < entry.seen + 2 * observation and now - entry.began >= AGAIN

    async def _stop(self) -> None:
        tasks = [entry.task for entry in self._rooms.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
