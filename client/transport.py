"""Decides what a client needs of whatever carries its records: to hand one in, and to hear what is answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from turngate.schemas.inputs import Record


class Unreachable(Exception):
    """Nothing can be asked there. The message says what to do; no text, value or token is in it."""


class Transport(Protocol):
    """One way to a gate, for one agent. Handing in the same record again asks again for the same answer.

    `tenant` and `agent` stand in every record that is handed in.
    """

    tenant: str
    agent: str

    def now(self) -> int:
        """Milliseconds since the epoch, by the clock that records are dated with."""

    def answers(self, record: Record, *, fresh: bool = True) -> AsyncGenerator[Record]:
        """Hand in a record, and yield its answers as they come.

        `fresh`: nobody can have used its id before, so whatever answers it is its answer.

        Of a tool result there is none: it ends when the result is acknowledged. Of a context request, a write or a
        request to share there is one. Of a draft each decision is yielded, and the final one is the last. Closing it
        takes nothing back. Raises `Unreachable` where the record surely cannot be answered.
        """

    def forget(self, record: Record) -> None:
        """Nobody asks for this record's answers any more."""
