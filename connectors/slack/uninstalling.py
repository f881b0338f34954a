"""Decides when an installation is taken from the Slack file: Slack told that it has ended, and knows its token no more.

The event alone does not count: it may come long after the app was installed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.tokens import Tokens
from turngate.streams.log import LogError

#: Events after which a token may be good for nothing.
ENDINGS = ("app_uninstalled", "tokens_revoked")
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
        self._told: asyncio.Queue[Installation] = asyncio.Queue()

    def told(self, kind: str, home: Installation) -> None:
        """An event of this kind is on the log."""
        if kind in ENDINGS:
            self._told.put_nowait(home)

    async def run(self) -> None:
        """Look at what was told of, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._looked_at(await self._told.get()))

    async def _looked_at(self, home: Installation) -> None:
        for seconds in self._looks:
            await asyncio.sleep(seconds)
            try:
                await self._api.identity(home)
            except CallFailed as failed:
                if failed.code in _ENDED:
                    self._drop(home)
                    return

    def _drop(self, home: Installation) -> None:
        """An organisation's workspaces have one token, and all of them have ended with it."""
        if self._tokens is None:
            log.warning("the app is no longer installed in %s: take it out of TURNGATE_SLACK", home.team)
            return
        try:
            gone = self._tokens.drop(home.token)
        except LogError as error:
            log.error("the app is no longer installed in %s, and the file cannot be changed: %s", home.team, error)
            return
        if gone:
            log.warning("the app is no longer installed in %s", ", ".join(gone))
