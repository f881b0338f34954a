"""Decides when an installation is taken from the Slack file: Slack told that it has ended, and no longer knows of it.

The event alone does not count: it may come long after the app was installed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.installing import teams_of
from turngate.connectors.slack.rooms import Odd
from turngate.connectors.slack.tokens import Tokens
from turngate.streams.log import LogError

#: Events after which a token may be good for nothing, and one after which an organisation's may be for a workspace.
ENDINGS, LEFT = ("app_uninstalled", "tokens_revoked"), "team_access_revoked"
#: What Slack says of a token that is.
_ENDED = ("account_inactive", "invalid_auth", "token_revoked")
#: Seconds after which Slack is asked about it: it may tell before it is so, and it may not answer.
_LOOKS = (0.0, 1.0, 10.0, 60.0, 600.0)

log = logging.getLogger(__name__)


class Uninstalling:
    """Takes what has ended out of the file. Without `tokens` there is none, and it says so."""

    def __init__(self, api: SlackApi, tokens: Tokens | None, looks: Sequence[float] = _LOOKS) -> None:
        self._api = api
        self._tokens = tokens
        self._looks = looks
        self._told: asyncio.Queue[tuple[str, Installation]] = asyncio.Queue()

    def told(self, kind: str, home: Installation) -> None:
        """An event of this kind is on the log."""
        if kind in ENDINGS or (kind == LEFT and home.enterprise is not None):
            self._told.put_nowait((kind, home))

    async def run(self) -> None:
        """Look at what was told of, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._looked_at(*await self._told.get()))

    async def _looked_at(self, kind: str, home: Installation) -> None:
        for seconds in self._looks:
            await asyncio.sleep(seconds)
            kept = await self._kept(kind, home)
            if kept is not None and self._drop(home, kept):
                return

    async def _kept(self, kind: str, home: Installation) -> list[str] | None:
        """The workspaces for which the token is still good; None where that may be all of them."""
        try:
            if kind == LEFT:
                return await teams_of(self._api, home) or None  # that it is good for none, another event tells
            await self._api.identity(home)
        except CallFailed as failed:
            return [] if failed.code in _ENDED else None
        except Odd:
            pass
        return None

    def _drop(self, home: Installation, kept: Collection[str]) -> bool:
        """Whether that was all. An organisation's workspaces have one token, and all of them have ended with it."""
        if self._tokens is None:
            which = f"in {home.team}" if home.team not in kept else "in each workspace of its organisation"
            log.warning("the app is no longer installed %s: see to what TURNGATE_SLACK says", which)
            return True
        try:
            gone = self._tokens.drop(home.token, kept)
        except LogError as error:
            log.error("the app is no longer installed in %s, and the file cannot be changed: %s", home.team, error)
            return True
        if gone:
            log.warning("the app is no longer installed in %s", ", ".join(gone))
        return bool(gone) or not kept
