"""Decides which answer on a log belongs to which record that was handed in."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable

from turngate.client.verdict import is_final, is_of
from turngate.schemas.inputs import ContextRequested, MemoryWrite, Record, SharingRequested, TurnDrafted
from turngate.schemas.outputs import (
    CommandRefused,
    ContextDecided,
    RevisionRecorded,
    SharingOffered,
    TurnDecided,
    WriteRefused,
)

#: Where the answers to an agent's records lie.
TOPICS = ("turn-verdicts", "memory-revisions", "grants")

#: Turns whose answers are kept though nobody asks for them.
_UNASKED = 1_000
_TURN = "turn"

Key = tuple[str, str]


class _Inbox:
    """What was answered to one record, and a sign that there is more."""

    def __init__(self) -> None:
        self.came: list[Record] = []
        self.more = asyncio.Event()

    async def wait(self) -> None:
        """Until something comes."""
        self.more.clear()
        await self.more.wait()


class Answers:
    """What was answered to the records of one agent, of late and to those that somebody still asks for.

    For one event loop.
    """

    def __init__(self, tenant: str, agent: str) -> None:
        self._tenant = tenant
        self._agent = agent
        self._asked: dict[Key, _Inbox] = {}
        self._unasked: OrderedDict[Key, _Inbox] = OrderedDict()

    def __len__(self) -> int:
        return len(self._asked) + len(self._unasked)

    async def to(
        self,
        record: Record,
        append: Callable[[Record], Awaitable[None]],
        wait: Callable[[], Awaitable[None]] | None = None,
        *,
        fresh: bool,
    ) -> AsyncGenerator[Record]:
        """Append a record, and yield what comes of it (`turngate.client.transport.Transport.answers`).

        What came before, to the same record, is yielded first. `wait` is called while nothing comes.
        """
        key = _asked(record)
        if key is None:
            await append(record)
            return
        inbox = self._asked.setdefault(key, self._unasked.pop(key, _Inbox()))  # before anything can be answered
        await append(record)
        at = 0
        while True:
            while len(inbox.came) <= at:
                await (inbox.wait() if wait is None else wait())
            answer = inbox.came[at]
            at += 1
            if isinstance(answer, TurnDecided):
                if fresh or (isinstance(record, TurnDrafted) and is_of(answer, record)):
                    yield answer
                    if is_final(answer):
                        return
            else:
                yield answer
                return

    def take(self, answer: Record) -> None:
        """An answer has come, to whomever."""
        key = self._answered(answer)
        if key is None or answer.tenant != self._tenant:
            return
        inbox = self._asked.get(key)
        if inbox is None:
            inbox = self._unasked.get(key, _Inbox())
            self._keep(key, inbox)
        inbox.came.append(answer)
        inbox.more.set()

    def forget(self, record: Record) -> None:
        """Nobody asks for this record's answers any more."""
        key = _asked(record)
        inbox = None if key is None else self._asked.pop(key, None)
        if key is not None and inbox is not None:
            self._keep(key, inbox)

    def _keep(self, key: Key, inbox: _Inbox) -> None:
        """Of what nobody asks for, the turns of late: one may be begun again under its name."""
        if key[0] == _TURN:
            self._unasked[key] = inbox
            self._unasked.move_to_end(key)
            if len(self._unasked) > _UNASKED:
                self._unasked.popitem(last=False)

    def _answered(self, answer: Record) -> Key | None:
        match answer:
            case ContextDecided(request=request):
                return "context", request
            case TurnDecided(turn=turn, agent=self._agent):
                return _TURN, turn
            case RevisionRecorded(write=write, agent=self._agent) | WriteRefused(write=write):
                return "write", write
            case SharingOffered(request=request, agent=self._agent) | CommandRefused(command=request):
                return "sharing", request
        return None


def _asked(record: Record) -> Key | None:
    match record:
        case ContextRequested(request=request):
            return "context", request
        case TurnDrafted(turn=turn):
            return _TURN, turn
        case MemoryWrite(write=write):
            return "write", write
        case SharingRequested(request=request):
            return "sharing", request
    return None
