"""Decides what becomes of an envelope that Slack delivers: it is on the log when it is acknowledged, and once.

Retry headers are not looked at. Of what could not be brought onto the log Slack may never tell again, so whatever of it
restricts is owed, and comes before the next event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turngate.connectors.slack.became import Became
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.events import (
    ACCOUNT_CHANGED,
    MISSED,
    account_now,
    account_of,
    changed,
    everything,
    moment,
    rooms_named,
    teams_named,
    translate,
)
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.late import Late
from turngate.connectors.slack.owed import Append, Owed
from turngate.connectors.slack.taken import Taken, keys_of
from turngate.schemas.inputs import MembershipPage, Record
from turngate.streams.log import LogError

#: Seconds: Slack wants its answer within three.
ACKNOWLEDGED_WITHIN = 2.5

#: Who else is told of which kind of event came for an installation, once it is on the log.
Told = Callable[[str, Installation], None]

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
        self._log = Owed(append)
        self._clock = clock
        self._told = told
        self._taken = Taken(clock)
        self._became = Became()
        self._late = Late()
        self._unheard: set[tuple[str, str]] = set()

    async def take(self, app: str, envelope: Mapping[str, Any]) -> None:
        """Bring an envelope of this app onto the log, unless it was before. Raises `NotTaken`."""
        teams = [*_teams(envelope), *teams_named(_event(envelope))]
        home = next((home for home in (self._installations.of(app, team) for team in teams) if home is not None), None)
        if home is None:
            self._unheard |= {(app, team) for team in teams}
            log.warning("an event of a workspace in which app %s is not installed", app)
            return
        keys = list(keys_of(envelope, home))
        done = self._taken.before(keys)
        if done is None:
            done = asyncio.ensure_future(self._take(envelope, home))
            self._taken.note(keys, done)
        await self._within(done)

    async def unreadable(self, app: str) -> None:
        """Something of an app's came of which nobody can say what it is about. Raises `NotTaken`."""
        log.warning("something signed for app %s cannot be read: every room of it is to be listed anew", app)
        now = self._now()
        void = [r for home in self._installations.of_app(app) for r in everything(home, self._directory, MISSED, now)]
        await self._within(asyncio.ensure_future(self._log.bring(void)))

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
            await self._log.bring(void)
        except LogError:
            self._log.owe(void)

    async def missed(self) -> None:
        """Events may not have come: nothing that was listed is known to hold any more."""
        now = self._now()
        records = [r for home in self._installations for r in everything(home, self._directory, MISSED, now)]
        if records:
            log.warning("events may have been missed: %d rooms are to be listed anew", len(records))
            await self._log.bring(records)

    async def _take(self, envelope: Mapping[str, Any], home: Installation) -> None:
        event, now = _event(envelope), self._now()
        if (home.app, home.team) in self._unheard:  # what was told before it was installed here was left
            self._log.owe(everything(home, self._directory, MISSED, now))
            self._unheard.discard((home.app, home.team))
        homes = dict.fromkeys([home, *self._elsewhere(home, event)])
        records = [r for h in homes for r in translate(envelope, h, self._directory, now)]
        again = self._late.again(records, moment(event, now), now)
        self._late.note(records, now)
        try:
            await self._log.bring(records)
            if again:
                await self._log.bring(again)
        except LogError:
            self._log.owe([*records, *again])
            raise
        account = account_of(event)
        for each in homes if account is not None else ():
            self._became.note(each, str(account), account_now(event, each), now)
            self._directory.forget(each, str(account))
        self._told(str(event.get("type")), home)

    def _elsewhere(self, home: Installation, event: Mapping[str, Any]) -> Iterator[Installation]:
        """Where else an organisation's app has what an event is about: Slack tells of it once, for one of them."""
        named = (self._installations.of(home.app, team) for team in teams_named(event))
        yield from (there for there in named if there is not None)
        for other in self._installations.of_app(home.app) if home.enterprise is not None else ():
            if other.team == home.team or (other.enterprise, other.tenant) != (home.enterprise, home.tenant):
                continue
            rooms = rooms_named(event, other)
            if not rooms or any(self._directory.knows(other, room) for room in rooms):
                yield other

    async def _within(self, done: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(ACKNOWLEDGED_WITHIN):
                await asyncio.shield(done)
        except (LogError, TimeoutError) as error:
            log.warning("an event could not be brought onto the log: %s", type(error).__name__)
            raise NotTaken from None

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _event(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """What it is about; some envelopes are that themselves."""
    inner = envelope.get("event")
    return inner if isinstance(inner, dict) else envelope


def _teams(envelope: Mapping[str, Any]) -> Iterator[str]:
    """For whom it was sent, first; an event of a shared channel may name another workspace as its own."""
    authorizations = envelope.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    teams = [first.get("team_id") if isinstance(first, dict) else None]
    teams += [envelope.get("context_team_id"), envelope.get("team_id")]
    return (team for team in teams if isinstance(team, str))
