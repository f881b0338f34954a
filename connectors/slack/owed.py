"""Decides what is still to be brought onto the log before anything else: whatever restricts, and could not be.

Slack may never tell of it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from turngate.connectors.slack.events import MISSED
from turngate.schemas.inputs import MembershipChanged, MessageObserved, Record, RoomChanged

Append = Callable[[Sequence[Record]], Awaitable[None]]


class Owed:
    """Appends to a log, after what is owed there."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._owed: dict[tuple[str, ...], Record] = {}

    async def bring(self, records: Sequence[Record]) -> None:
        """Onto the log, after what is owed there. Raises `LogError`."""
        owed = dict(self._owed)
        if owed:
            await self._append(list(owed.values()))
            self._owed = {key: r for key, r in self._owed.items() if owed.get(key) is not r}
        if records:
            await self._append(records)

    def owe(self, records: Sequence[Record]) -> None:
        """These could not be brought onto the log, or not be known to be there."""
        for r in records:
            if isinstance(r, RoomChanged | MembershipChanged):
                void = RoomChanged(tenant=r.tenant, at=r.at, agent=r.agent, room=r.room, what=MISSED)
                self._owed[r.tenant, str(r.agent), r.room] = void
            elif not isinstance(r, MessageObserved) or r.edited:  # what was never told of is no source
                self._owed["", r.model_dump_json()] = r
