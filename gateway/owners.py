"""Decides whose a turn is: the agent's that named it first on the log, and nobody else may say anything of it.

The engine takes what a runtime says of a turn for true (R-EVI-10, R-EVI-2), so another agent's word could spoil it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from turngate.schemas.inputs import ContextRequested, MemoryWrite, Record, ToolReturned, TurnDrafted


class Owners:
    """Whose turns and context requests are, of the last `keep` seconds, `most` of them. For one event loop."""

    def __init__(self, keep: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep = keep
        self._most = most
        self._clock = clock
        self._agents: OrderedDict[tuple[str, str, str], tuple[float, str]] = OrderedDict()

    def learn(self, record: Record) -> None:
        """Take notice of a record on the log."""
        for name in _named(record):
            if name not in self._agents:
                before = self._clock() - self._keep
                while self._agents and (
                    len(self._agents) >= self._most or next(iter(self._agents.values()))[0] < before
                ):
                    self._agents.popitem(last=False)
                self._agents[name] = self._clock(), _agent(record)

    def permit(self, record: Record) -> bool:
        """Whether nothing that a record names is known to be another agent's."""
        known = (self._agents.get(name) for name in _named(record))
        return all(owner is None or owner[1] == _agent(record) for owner in known)


def _named(record: Record) -> list[tuple[str, str, str]]:
    """The turn and the context request that a record of an agent belongs to."""
    if not isinstance(record, ContextRequested | TurnDrafted | ToolReturned | MemoryWrite):
        return []
    request = record.request if isinstance(record, ContextRequested | ToolReturned) else None
    named = (("turn", record.turn), ("request", request))
    return [(record.tenant, kind, name) for kind, name in named if name is not None]


def _agent(record: Record) -> str:
    agent: str = getattr(record, "agent")  # noqa: B009  every record that names a turn has one
    return agent
