"""Decides how tokens change while processes run: a token is renewed before it ends, and a changed file is read anew.

One process renews (`turngate roster`), any number read. Of two that write at a time the second begins from what the
first has written.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.installations import (
    Installation,
    Installations,
    read_installations,
    write_installations,
)
from turngate.streams.log import LogError

#: Seconds between two looks at the file, and at when tokens end; and how long before its end a token is renewed.
_LOOK, EARLY = 5.0, 7_200

log = logging.getLogger(__name__)


class Tokens:
    """The Slack file, and the installations of this process, which follow it."""

    def __init__(self, path: Path, installations: Installations, look: float = _LOOK) -> None:
        self._path = path
        self._installations = installations
        self._look = look
        self._read = _state(path)

    async def follow(self) -> None:
        """Read the file whenever it has changed, until cancelled. One that is no document changes nothing."""
        while True:
            await asyncio.sleep(self._look)
            state = _state(self._path)
            if state == self._read:
                continue
            self._read = state
            try:
                self._installations.become(read_installations(self._path))
            except LogError as error:
                log.error("the Slack file has changed and is not used as it is: %s", error)
            else:
                log.info("the Slack file was read anew")

    async def renew(self, api: SlackApi, clock: Callable[[], float] = time.time) -> None:
        """Renew every token that ends within two hours, until cancelled."""
        while True:
            for home in _ending(self._installations, clock() + EARLY):
                try:
                    await self._renewed(api, home, clock)
                except (CallFailed, LogError) as error:
                    log.error("the token of workspace %s could not be renewed: %s", home.team, error)
            await asyncio.sleep(self._look)

    def put(self, homes: Iterable[Installation]) -> None:
        """Add installations to the file, or put them in place of what is there. Raises `LogError`."""
        with self._alone():
            there = read_installations(self._path)
            new = {(home.app, home.team): home for home in homes}
            kept = (home for home in there if (home.app, home.team) not in new)
            self._write(Installations(there.apps.values(), [*kept, *new.values()]))

    def drop(self, token: str, kept: Collection[str] = ()) -> list[str]:
        """Take the installations with this token out of the file, but for workspaces that are kept; which those were.

        Raises `LogError`.
        """
        with self._alone():
            there = read_installations(self._path)
            gone = [home for home in there if home.token == token and home.team not in kept]
            if gone:
                self._write(Installations(there.apps.values(), (home for home in there if home not in gone)))
        return [home.team for home in gone]

    def _write(self, changed: Installations) -> None:
        write_installations(self._path, changed)
        self._read = _state(self._path)
        self._installations.become(changed)

    async def _renewed(self, api: SlackApi, home: Installation, clock: Callable[[], float]) -> None:
        answer = await api.authorize(
            self._installations.apps[home.app], grant_type="refresh_token", refresh_token=home.refresh_token
        )
        token, refresh, seconds = (answer.get(name) for name in ("access_token", "refresh_token", "expires_in"))
        if not isinstance(token, str) or not isinstance(refresh, str) or not isinstance(seconds, int):
            raise CallFailed("oauth.v2.access", "no_answer", done=True)
        ends = int(clock()) + seconds
        # An organisation's workspaces have one token, which is now another one for all of them.
        same = [h for h in self._installations if h.app == home.app and h.token == home.token]
        self.put(replace(h, token=token, refresh_token=refresh, expires_at=ends) for h in same)
        log.info("the token of workspace %s was renewed", home.team)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process writes the file meanwhile."""
        lock = self._path.with_name(f"{self._path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _ending(installations: Installations, until: float) -> Iterator[Installation]:
    """One for each token that is to be renewed."""
    tokens: set[str] = set()
    for home in list(installations):
        due = home.refresh_token is not None and home.expires_at is not None and home.expires_at <= until
        if due and home.token not in tokens:
            tokens.add(home.token)
            yield home


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
