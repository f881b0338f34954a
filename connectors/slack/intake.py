"""Decides what becomes of an envelope that Slack delivers: it is on the log when it is acknowledged, and once.

Once, by the event's id and, of messages, by where and when they were said: one message may come under two ids, and two
apps may see the same id. Retry headers are not looked at. What is remembered is forgotten with the process; an envelope
that comes again then is on the log twice, which changes nothing there. Of what could not be brought onto the log Slack
may never tell again, so whatever of it restricts is owed, and comes before the next event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from turngate.connectors.slack.became import Became
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.entries import CHANGED, DELETED, GONE
from turngate.connectors.slack.events import (
    ACCOUNT_CHANGED,
    MESSAGE,
    MISSED,
    REPLIED,
    account_now,
    account_of,
    changed,
    everything,
    moment,
    rooms_named,
    translate,
)
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.late import Late
from turngate.schemas.inputs import MembershipChanged, MembershipPage, MessageObserved, Record, RoomChanged
from turngate.streams.log import LogError

#: Seconds: Slack tries again for about six minutes, and wants its answer within three seconds.
REMEMBERED, ACKNOWLEDGED_WITHIN = 900.0, 2.5
#: Envelopes that are remembered; of more, the oldest are forgotten.
MOST = 200_000
#: Events that tell of a message, and are none; they may have its timestamp.
_ABOUT_ANOTHER = (CHANGED, DELETED, GONE, REPLIED)

Append = Callable[[Sequence[Record]], Awaitable[None]]
#: Who else is told of which kind of event came for an installation, once it is on the log.
Told = Callable[[str, Installation], None]
Key = tuple[str, ...]

log = logging.getLogger(__name__)


class NotTaken(Exception):
    """An envelope that is not on the log, or not known to be; Slack is to send it again."""


class Intake:
    """Takes envelopes in, from HTTP and from Socket Mode alike."""

    def __init__(
        self,
        installations: Installations,
        directory: Directory,
        append: Append,
        clock: Callable[[], float] = time.time,
        told: Told = lambda kind, home: None,
    ) -> None:
        self._installations = installations
        self._directory = directory
        self._append = append
        self._clock = clock
        self._told = told
        self._taken: OrderedDict[Key, tuple[float, asyncio.Future[None]]] = OrderedDict()
        self._became = Became()
        self._late = Late()
        self._owed: dict[Key, Record] = {}
        self._unheard: set[tuple[str, str]] = set()

    async def take(self, app: str, envelope: Mapping[str, Any]) -> None:
        """Bring an envelope of this app onto the log, unless it was before. Raises `NotTaken`."""
        teams = list(_teams(envelope))
        home = next((home for home in (self._installations.of(app, team) for team in teams) if home is not None), None)
        if home is None:
            self._unheard |= {(app, team) for team in teams}
            log.warning("an event of a workspace in which app %s is not installed", app)
            return
        keys = list(_keys(envelope, home))
        self._forget()
        before = next((self._taken[key] for key in keys if key in self._taken), None)
        if before is not None:
            await self._within(before[1])
            return
        done: asyncio.Future[None] = asyncio.ensure_future(self._take(envelope, home))
        self._taken |= dict.fromkeys(keys, (self._clock(), done))
        done.add_done_callback(lambda ended: self._ended(keys, ended))
        await self._within(done)

    async def unreadable(self, app: str) -> None:
        """Something of an app's came of which nobody can say what it is about. Raises `NotTaken`."""
        log.warning("something signed for app %s cannot be read: every room of it is to be listed anew", app)
        now = self._now()
        void = [r for home in self._installations.of_app(app) for r in everything(home, self._directory, MISSED, now)]
        await self._within(asyncio.ensure_future(self._bring(void)))

    async def listed(self, record: Record) -> None:
        """Take notice of a listing. One that names an account as what it is no more is void."""
        self._directory.learn(record)
        if not isinstance(record, MembershipPage):
            return
        home, now = self._installations.of_room(record.tenant, record.agent, record.room), self._now()
        accounts = [] if home is None else self._became.belied(home, record, now)
        if home is None or not accounts:
            return
        for account in accounts:
            self._directory.forget(home, account)
        void = [changed(home, record.room, ACCOUNT_CHANGED, now)]
        try:
            await self._bring(void)
        except LogError:
            self._owe(void)

    async def missed(self) -> None:
        """Events may not have come: nothing that was listed is known to hold any more."""
        now = self._now()
        records = [r for home in self._installations for r in everything(home, self._directory, MISSED, now)]
        if records:
            log.warning("events may have been missed: %d rooms are to be listed anew", len(records))
            await self._append(records)

    async def _take(self, envelope: Mapping[str, Any], home: Installation) -> None:
        inner = envelope.get("event")
        event = inner if isinstance(inner, dict) else envelope
        now = self._now()
        if (home.app, home.team) in self._unheard:  # what was told before it was installed here was left
            self._owe(everything(home, self._directory, MISSED, now))
            self._unheard.discard((home.app, home.team))
        homes = [home, *self._elsewhere(home, event)]
        records = [r for h in homes for r in translate(envelope, h, self._directory, now)]
        again = self._late.again(records, moment(event, now), now)
        self._late.note(records, now)
        try:
            await self._bring(records)
            if again:
                await self._append(again)
        except LogError:
            self._owe([*records, *again])
            raise
        account = account_of(event)
        for each in homes if account is not None else ():
            self._became.note(each, str(account), account_now(event, each), now)
            self._directory.forget(each, str(account))
        self._told(str(event.get("type")), home)

    def _elsewhere(self, home: Installation, event: Mapping[str, Any]) -> Iterator[Installation]:
        """Where else an organisation's app has what an event is about: Slack tells of it once, for one of them."""
        for other in self._installations.of_app(home.app) if home.enterprise is not None else ():
            if other.team == home.team or (other.enterprise, other.tenant) != (home.enterprise, home.tenant):
                continue
            rooms = rooms_named(event, other)
            if not rooms or any(self._directory.knows(other, room) for room in rooms):
                yield other

    async def _bring(self, records: Sequence[Record]) -> None:
        """Onto the log, after what is owed there."""
        owed = dict(self._owed)
        if owed:
            await self._append(list(owed.values()))
            self._owed = {key: r for key, r in self._owed.items() if owed.get(key) is not r}
        if records:
            await self._append(records)

    def _owe(self, records: Sequence[Record]) -> None:
        for r in records:
            if isinstance(r, RoomChanged | MembershipChanged):
                void = RoomChanged(tenant=r.tenant, at=r.at, agent=r.agent, room=r.room, what=MISSED)
                self._owed[r.tenant, str(r.agent), r.room] = void
            elif not isinstance(r, MessageObserved) or r.edited:  # what was never told of is no source
                self._owed["", r.model_dump_json()] = r

    def _ended(self, keys: list[Key], done: asyncio.Future[None]) -> None:
        """What failed is not remembered."""
        if done.cancelled() or done.exception() is not None:
            for key in keys:
                self._taken.pop(key, None)

    async def _within(self, done: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(ACKNOWLEDGED_WITHIN):
                await asyncio.shield(done)
        except (LogError, TimeoutError) as error:
            log.warning("an event could not be brought onto the log: %s", type(error).__name__)
            raise NotTaken from None

    def _forget(self) -> None:
        until = self._clock() - REMEMBERED
        while self._taken:
            key, (at, _) = next(iter(self._taken.items()))
            if at > until and len(self._taken) <= MOST:
                return
            del self._taken[key]

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _teams(envelope: Mapping[str, Any]) -> Iterator[str]:
    """For whom it was sent, first; an event of a shared channel may name another workspace as its own."""
    authorizations = envelope.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    teams = [first.get("team_id") if isinstance(first, dict) else None]
    teams += [envelope.get("context_team_id"), envelope.get("team_id")]
    return (team for team in teams if isinstance(team, str))


def _keys(envelope: Mapping[str, Any], home: Installation) -> Iterator[Key]:
    event_id, event = envelope.get("event_id"), envelope.get("event")
    if isinstance(event_id, str):
        yield ("event", home.app, home.team, event_id)
    if isinstance(event, dict) and event.get("type") == MESSAGE:
        channel, ts, subtype = event.get("channel"), event.get("ts"), event.get("subtype")
        if isinstance(channel, str) and isinstance(ts, str):
            about = str(subtype) if subtype in _ABOUT_ANOTHER or event.get("hidden") is True else ""
            yield ("message", home.app, home.team, channel, ts, about)
