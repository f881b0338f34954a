"""Decides how a request gets onto the log once, and what is answered of it (R-TURN-8, R-RUN-4)."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus

from turngate.gateway.book import Book, Entry
from turngate.gateway.identity import Key, asked
from turngate.gateway.problems import Problem
from turngate.gateway.tokens import Token
from turngate.schemas.canonical import digest
from turngate.schemas.digests import content_digest
from turngate.schemas.inputs import MembershipPage, Record
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.streams.feed import Feed
from turngate.streams.log import LogError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is on the log, and what only the token that asked knows of it."""

    key: Key
    receipt: str
    entry: Entry


class Asking:
    """Puts requests on a log and waits for what the log says of them. `book` follows the same log."""

    def __init__(self, feed: Feed, book: Book) -> None:
        self._feed = feed
        self.book = book

    async def put(self, record: Record, token: Token, patience: float) -> Asked:
        """Append a request, if it is not on the log yet; it is there, and was first of its id, when this returns.

        Raises `Problem` where its id is taken by other content, where it names what is another agent's, and where the
        log cannot be written, or does not show it within `patience` seconds: it may be there all the same, so the same
        request is to be sent again.
        """
        key, own = asked(record), content_digest(record)
        if key is None:
            raise ValueError(f"{type(record).__name__} has no id")
        if not self.book.permits(record):
            raise Problem(HTTPStatus.CONFLICT, "the turn or the context request that this names is another agent's")
        known = self.book.get(key)
        if known is not None and known.content != own and isinstance(record, MembershipPage):
            await self.append(record)  # a listing with two pages of one number is spoilt (R-ROOM-2)
        if known is None:
            await self.append(record)
            known = await self.book.until(key, lambda entry: entry.content is not None, patience)
        if known is None:
            raise unavailable("the request is on the log, which cannot be read now: send the same request again")
        if known.content != own:
            raise Problem(HTTPStatus.CONFLICT, "this id was used for something else before: use a new one")
        return Asked(key, receipt(token, key, own), known)

    async def append(self, *records: Record) -> None:
        """Append records; they are on the log when this returns. Raises `Problem` where that is not sure."""
        try:
            await self._feed.append(records)
        except LogError as error:
            log.error("nothing can be appended: %s", error)
            raise unavailable("the log cannot be written now: send the same request again") from None

    async def again(self, key: Key, shown: str, token: Token, patience: float) -> Asked:
        """A request that this token made before; where another gateway took it, this one may have yet to read it.

        Raises `Problem` where it made none such, whoever else did, or it was not read within `patience` seconds.
        """
        entry = await self.book.find(key, patience)
        expected = receipt(token, key, (entry.content if entry is not None else None) or "")
        same = hmac.compare_digest(expected.encode(), shown.encode())
        if entry is None or entry.agent != token.agent or not same:
            raise Problem(
                HTTPStatus.NOT_FOUND, "nothing is known of such a request of this token: send the request again"
            )
        return Asked(key, expected, entry)

    async def answer(self, request: Asked, patience: float, *, first: bool = False) -> Record | None:
        """The final answer, or the newest after `patience` seconds; with `first`, also the first that asks somebody."""

        def good(entry: Entry) -> bool:
            return entry.final is not None or (first and _asks(entry.last))

        await self.book.until(request.key, good, patience)
        return request.entry.last

    async def follow(
        self, request: Asked, pause: float, live: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[Record | None]:
        """Every answer from the first on, until the final one; None where none came for `pause` seconds.

        It ends early where `live` says no, and where nobody waits any more.
        """
        entry, told = request.entry, 0
        while live() and not self.book.closed:
            if told < len(entry.answers):
                yield entry.answers[told]
                told += 1
            elif entry.final is not None:
                return
            else:
                have = told
                await self.book.until(request.key, lambda e, have=have: len(e.answers) > have, pause)  # type: ignore[misc]
                if len(entry.answers) == told and not self.book.closed:
                    yield None


def receipt(token: Token, key: Key, own: str) -> str:
    """What shows that a token made a request: nobody who does not know the request's content can make it up.

    It needs no memory, so every gateway knows it, also after a restart.
    """
    return digest([token.id, token.tenant, token.agent, key.kind, key.id, own])


def unavailable(detail: str) -> Problem:
    """What cannot be answered now, and can soon."""
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "1"})


def _asks(record: Record | None) -> bool:
    return isinstance(record, TurnDecided) and record.verdict is Verdict.ASK
