"""Decides what a record is while it lies on a log, whichever log that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

Headers = tuple[tuple[str, bytes], ...]


class LogError(Exception):
    """A log, broker or topic that cannot be used as it is. The message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes at a place on a topic. `timestamp` is the log's own, in milliseconds since the epoch (R-TIME-1)."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Outgoing(NamedTuple):
    """Bytes on their way to a topic; they go to the partition of the fold that made them.

    Three are made for each decision, and a named tuple takes half of the time that a frozen dataclass does.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is applied at once (R-RUN-2): of each topic in `end`, the records from `start` up to, not including, `end`.

    `messages` holds them in any order, drafts too. Positions may lie beyond the last message, since a broker's control
    records have offsets of their own. `late`: the barrier was not reached in time, so the drafts are dropped.
    """

    start: dict[str, int]
    end: dict[str, int]
    messages: list[Message]
    late: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """What one stretch comes to; it is written all together or not at all.

    `entries` are the state entries that changed, by key, with None for a tombstone; `positions` those after the
    stretch, for every input topic; `engine` the version that made it.
    """

    outputs: list[Outgoing]
    entries: list[tuple[bytes, bytes | None]]
    positions: dict[str, int]
    engine: str
    decided: int = field(default=0)
