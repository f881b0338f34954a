"""Decides what becomes of an envelope that Slack delivers: it is on the log when it is acknowledged, and once.

Once, by the event's id and, of messages, by where and when they were said: one message may come under two ids, and two
apps may see the same id. Retry headers are not looked at. What is remembered is forgotten with the process; an envelope
that comes again then is on the log twice, which changes nothing there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.entries import CHANGED, DELETED, GONE
from turngate.connectors.slack.events import MESSAGE, MISSED, REPLIED, account_of, everything, translate
from turngate.connectors.slack.installations import Installation, Installations
from turngate.schemas.inputs import Record
from turngate.streams.log import LogError

#: Seconds: Slack tries again for about six minutes, and wants its answer within three seconds.
REMEMBERED, ACKNOWLEDGED_WITHIN = 900.0, 2.5
#: Envelopes that are remembered; of more, the oldest are forgotten.
MOST = 200_000
#: Events that tell of a message, and are none; they may have its timestamp.
_ABOUT_ANOTHER = (CHANGED, DELETED, GONE, REPLIED)

Append = Callable[[Sequence[Record]], Awaitable[None]]
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
    ) -> None:
        self._installations = installations
        self._directory = directory
        self._append = append
        self._clock = clock
        self._taken: OrderedDict[Key, tuple[float, asyncio.Future[None]]] = OrderedDict()

    async def take(self, app: str, envelope: Mapping[str, Any]) -> None:
        """Bring an envelope of this app onto the log, unless it was before. Raises `NotTaken`."""
        home = self._home(app, envelope)
        if home is None:
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

    async def missed(self) -> None:
        """Events may not have come: nothing that was listed is known to hold any more."""
        now = self._now()
        records = [r for home in self._installations for r in everything(home, self._directory, MISSED, now)]
        if records:
            log.warning("events may have been missed: %d rooms are to be listed anew", len(records))
            await self._append(records)

    def _home(self, app: str, envelope: Mapping[str, Any]) -> Installation | None:
        """For whom it was sent; an event of a shared channel may name another workspace as its own."""
        authorizations = envelope.get("authorizations")
        first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
        teams = [first.get("team_id") if isinstance(first, dict) else None]
        teams += [envelope.get("context_team_id"), envelope.get("team_id")]
        found = (self._installations.of(app, team) for team in teams if isinstance(team, str))
        return next((home for home in found if home is not None), None)

    async def _take(self, envelope: Mapping[str, Any], home: Installation) -> None:
        event = envelope.get("event")
        records = translate(envelope, home, self._directory, self._now())
        if records:
            await self._append(records)
        account = account_of(event) if isinstance(event, dict) else None
        if account is not None:
            self._directory.forget(home, account)

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


def _keys(envelope: Mapping[str, Any], home: Installation) -> Iterator[Key]:
    event_id, event = envelope.get("event_id"), envelope.get("event")
    if isinstance(event_id, str):
        yield ("event", home.app, home.team, event_id)
    if isinstance(event, dict) and event.get("type") == MESSAGE:
        channel, ts, subtype = event.get("channel"), event.get("ts"), event.get("subtype")
        if isinstance(channel, str) and isinstance(ts, str):
            about = str(subtype) if subtype in _ABOUT_ANOTHER or event.get("hidden") is True else ""
            yield ("message", home.app, home.team, channel, ts, about)
