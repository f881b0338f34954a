"""Decides what becomes of a pressed button and a slash command: what they say is on the log when they are answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.intake import ACKNOWLEDGED_WITHIN, NotTaken
from turngate.connectors.slack.linking import COMMAND, HELP, Linking
from turngate.connectors.slack.owed import Append
from turngate.schemas.inputs import ActionApproved, Record
from turngate.streams.clock import now_ms
from turngate.streams.log import LogError

#: What a payload says to an installation, at a time (ms).
Said = Callable[[Mapping[str, Any], Installation, int], Sequence[Record]]

log = logging.getLogger(__name__)


class Answers:
    """Takes signed payloads in, from HTTP and from Socket Mode alike."""

    def __init__(self, installations: Installations, directory: Directory, append: Append, said: Said) -> None:
        self._installations = installations
        self._directory = directory
        self._append = append
        self._said = said
        self._linking = Linking(installations, directory)

    async def take(self, app: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Bring what a payload says onto the log; what is answered. Raises `NotTaken`."""
        team, now = payload.get("team"), now_ms()
        if payload.get("command") == COMMAND:
            home = self._installations.of(app, str(payload.get("team_id")))
            step = HELP if home is None else self._linking.answer(payload, home, now)
            await self._appended(step.records)
            return {"response_type": "ephemeral", "text": step.reply}
        home = self._installations.of(app, str(team.get("id"))) if isinstance(team, dict) else None
        said = () if home is None else self._said(payload, home, now)
        records = [] if home is None else [r for r in (self._as_listed(one, home) for one in said) if r is not None]
        if not records:
            log.info("something was pressed that is none of ours")
        await self._appended(records)
        return None

    def _as_listed(self, record: Record, home: Installation) -> Record | None:
        """Of an organisation's accounts only listings tell the id: under another a guest would be none (R-TNT-6)."""
        if not isinstance(record, ActionApproved) or home.enterprise is None:
            return record
        reader = self._directory.reader(home, record.by.partition("/")[2])
        return None if reader is None else record.model_copy(update={"by": reader})

    async def _appended(self, records: Sequence[Record]) -> None:
        try:
            async with asyncio.timeout(ACKNOWLEDGED_WITHIN):
                if records:
                    await self._append(records)
        except (LogError, TimeoutError) as error:
            log.warning("an answer could not be brought onto the log: %s", type(error).__name__)
            raise NotTaken from None
