"""Decides what becomes of a pressed button: whatever it says is on the log when it is acknowledged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.intake import ACKNOWLEDGED_WITHIN, Append, NotTaken
from turngate.schemas.inputs import Record
from turngate.streams.log import LogError

#: What a payload says to an installation, at a time (ms); None: nothing.
Said = Callable[[Mapping[str, Any], Installation, int], Record | None]

log = logging.getLogger(__name__)


class Answers:
    """Takes signed payloads in, from HTTP and from Socket Mode alike."""

    def __init__(self, installations: Installations, append: Append, said: Said) -> None:
        self._installations = installations
        self._append = append
        self._said = said

    async def take(self, app: str, payload: Mapping[str, Any]) -> None:
        """Bring what a payload says onto the log. Raises `NotTaken`; what says nothing is left."""
        team = payload.get("team")
        home = self._installations.of(app, str(team.get("id"))) if isinstance(team, dict) else None
        record = None if home is None else self._said(payload, home, time.time_ns() // 1_000_000)
        if record is None:
            log.info("something was pressed that is none of ours")
            return
        try:
            async with asyncio.timeout(ACKNOWLEDGED_WITHIN):
                await self._append([record])
        except (LogError, TimeoutError) as error:
            log.warning("an answer could not be brought onto the log: %s", type(error).__name__)
            raise NotTaken from None
