"""Decides which envelopes came before: by the event's id and, of messages, by where and when they were said.

One message may come under two ids, and two apps may see the same id. What is remembered is forgotten with the process;
an envelope that comes again then is on the log twice, which changes nothing there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turngate.connectors.slack.entries import CHANGED, DELETED, GONE
from turngate.connectors.slack.events import MESSAGE, REPLIED
from turngate.connectors.slack.installations import Installation

#: Seconds: Slack tries again for about six minutes.
REMEMBERED = 900.0
#: Envelopes that are remembered; of more, the oldest are forgotten.
MOST = 200_000
#: Events that tell of a message, and are none; they may have its timestamp.
_ABOUT_ANOTHER = (CHANGED, DELETED, GONE, REPLIED)
Key = tuple[str, ...]


class Taken:
    """What came of late, and what became of it; `clock` in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._taken: OrderedDict[Key, tuple[float, asyncio.Future[None]]] = OrderedDict()

    def before(self, keys: list[Key]) -> asyncio.Future[None] | None:
        """What is done, or was, about an envelope that came under one of these keys before."""
        self._forget()
        return next((self._taken[key][1] for key in keys if key in self._taken), None)

    def note(self, keys: list[Key], done: asyncio.Future[None]) -> None:
        """This is done about an envelope; if it fails, that counts as one that did not come."""
        self._taken |= dict.fromkeys(keys, (self._clock(), done))
        done.add_done_callback(lambda ended: self._ended(keys, ended))

    def _ended(self, keys: list[Key], done: asyncio.Future[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            for key in keys:
                self._taken.pop(key, None)

    def _forget(self) -> None:
        until = self._clock() - REMEMBERED
        while self._taken:
            key, (at, _) = next(iter(self._taken.items()))
            if at > until and len(self._taken) <= MOST:
                return
            del self._taken[key]


def keys_of(envelope: Mapping[str, Any], home: Installation) -> Iterator[Key]:
    """By what an envelope is known again."""
    event_id, event = envelope.get("event_id"), envelope.get("event")
    if isinstance(event_id, str):
        yield ("event", home.app, home.team, event_id)
    if isinstance(event, dict) and event.get("type") == MESSAGE:
        channel, ts, subtype = event.get("channel"), event.get("ts"), event.get("subtype")
        if isinstance(channel, str) and isinstance(ts, str):
            about = str(subtype) if subtype in _ABOUT_ANOTHER or event.get("hidden") is True else ""
            yield ("message", home.app, home.team, channel, ts, about)
