"""Decides what a program beside the engine may do with a log: append to input topics, and follow any topic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from turngate.schemas.inputs import Record


class Feed(Protocol):
    """A log, embedded or on a broker. Every method raises `LogError` where it cannot be used."""

    async def append(self, records: Sequence[Record]) -> None:
        """Append input records, in this order. They are acknowledged when this returns; some may be where it raises."""

    def follow(self, topic: str, since: int, *, forever: bool = True) -> AsyncIterator[Record]:
        """The records of a topic that came at `since` (ms) or later; not `forever`: up to where it ends now.

        What cannot be decoded is left out: the engine says what it is.
        """

    def stamped(self, topic: str, since: int, *, forever: bool = True) -> AsyncIterator[tuple[int, Record]]:
        """As `follow`, each with the time (ms) at which it came."""
