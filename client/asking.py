"""Decides how a turn's records are handed in: each is made once, and whatever goes wrong with one, nothing is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, TypeVar

from pydantic import ValidationError

from turngate.client.transport import Transport, Unreachable
from turngate.schemas.health import without_health
from turngate.schemas.inputs import Record

log = logging.getLogger("turngate.client")

A = TypeVar("A", bound=Record)


class Asking:
    """The records of one turn, and what was answered. What it logs are ids and names, no text and no value.

    `fresh`: nobody can have used the turn's id before. Nobody has used those of its other records.
    """

    def __init__(self, transport: Transport, turn: str, patience: float, *, fresh: bool) -> None:
        self._transport = transport
        self._turn = turn if turn.isprintable() else ascii(turn)
        self._patience = patience
        self._fresh = fresh
        self._handed: list[Record] = []
        self._open = False

    def open(self) -> None:
        """The turn begins."""
        self._open = True

    def close(self) -> None:
        """The turn has ended: nobody asks for its answers any more."""
        self._open = False
        for record in self._handed:
            self._transport.forget(record)

    def record(self, kind: type[A], /, **fields: Any) -> A:
        """A record of this agent, dated now. Raises pydantic's `ValidationError`."""
        named = {"tenant": self._transport.tenant, "agent": self._transport.agent, "at": self._transport.now()}
        return without_health(kind(**named, **fields))

    def usable(self, kind: type[A], /, **fields: Any) -> A | None:
        """As `record`; None, and a line in the log, where these fields make none."""
        try:
            return self.record(kind, **fields)
        except ValidationError as error:
            log.warning("turn %s: a %s with an unusable %s", self._turn, kind.__name__, fields_of(error))
            return None

    async def answer(
        self, record: Record | None, enough: Callable[[Record], bool] = lambda _: True, patience: float | None = None
    ) -> Record | None:
        """The last answer that came within `patience` seconds, at most up to the first that is enough; None: none.

        The default of every error is silence. Raises `RuntimeError` outside the turn's `async with`.
        """
        if not self._open:
            raise RuntimeError("a turn is used inside its `async with`")
        if record is None:
            return None
        if record not in self._handed:
            self._handed.append(record)
        name = type(record).__name__
        answer: Record | None = None
        try:
            async with asyncio.timeout(self._patience if patience is None else patience):
                async with aclosing(self._transport.answers(record, fresh=self._fresh)) as answers:
                    async for answer in answers:
                        if enough(answer):
                            break
        except TimeoutError:
            log.warning("turn %s: no answer to its %s in time", self._turn, name)
        except Unreachable as problem:
            log.warning("turn %s: its %s was not answered: %s", self._turn, name, problem)
        except Exception as problem:  # whatever it is, nothing was decided; its message may quote what was said
            log.warning("turn %s: its %s was not answered (%s)", self._turn, name, type(problem).__name__)
        return answer


def fields_of(error: ValidationError) -> str:
    """The fields that are at fault, without what stands in them."""
    return ", ".join(sorted({str(part) for problem in error.errors() for part in problem["loc"][:1]}))
