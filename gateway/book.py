"""Decides what a gateway knows of requests and their answers: what the log says of them, in the log's order.

Every gateway follows the same topics, so all of them give the same answers, also after a restart: of two contents under
one id the one that lies first on the log stands, whichever gateway it came through.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from turngate.gateway.identity import Key, answers, asked
from turngate.gateway.owners import Owners
from turngate.processors.approvals import action_fingerprint, turn_fingerprint
from turngate.schemas.digests import content_digest
from turngate.schemas.inputs import AccountProven, ActionApproved, ContextRequested, Record
from turngate.schemas.outputs import ContextDecided, TurnAuthorized, TurnDecided, Verdict
from turngate.schemas.shapes import Code

#: Verdicts after which another follows (R-TURN-9).
_WAITING = frozenset({Verdict.HOLD, Verdict.ASK})
#: Requests that are kept, since an answer or a later request is compared with them; of others a digest is enough.
_KEPT = (ContextRequested, AccountProven, ActionApproved)
#: Requests that are known at the most, some 700 bytes each: whoever asks more than that in a day is known for less.
MOST = 1_000_000
#: Entries that are looked at for their age with each one that is made.
_SWEPT = 2


@dataclass(slots=True)
class Entry:
    """A request and its answers, the newest last. `content` is None until the request itself was seen on the log.

    `agent`: whose it is; None for a record that names none.
    """

    seen: float
    content: str | None = None
    agent: str | None = None
    request: Record | None = None
    answers: list[Record] = field(default_factory=list)
    waiting: set[asyncio.Future[None]] = field(default_factory=set)

    @property
    def last(self) -> Record | None:
        """The newest answer."""
        return self.answers[-1] if self.answers else None

    @property
    def final(self) -> Record | None:
        """The answer after which none follows."""
        last = self.last
        return None if isinstance(last, TurnDecided) and last.verdict in _WAITING else last


V = TypeVar("V")


class LetOut(NamedTuple):
    """A turn that was authorized: whose it is, where, when and until when (milliseconds, None: no end).

    `grants`, `proofs` and the approvals of one of `fingerprints` are what it may rest on.
    """

    agent: str
    room: str
    at: int
    until: int | None
    grants: tuple[str, ...]
    proofs: tuple[str, ...]
    fingerprints: tuple[str, ...]


class Book:
    """Requests and answers of the last `keep` seconds, `most` of them. For one event loop."""

    def __init__(self, keep: float, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._keep = keep
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._sought: dict[Key, asyncio.Future[None]] = {}
        self._owners = Owners(keep, most, clock)
        self._let_out: OrderedDict[tuple[str, str], tuple[float, LetOut]] = OrderedDict()
        self._waits: set[asyncio.Future[None]] = set()
        #: Whether nobody waits for anything any more.
        self.closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Entry | None:
        """What is known of a request that lies on the log."""
        entry = self._entries.get(key)
        return None if entry is None or entry.content is None else entry

    def close(self) -> None:
        """Let everybody who waits go on with what is known."""
        self.closed = True
        for future in (*self._waits, *self._sought.values()):
            _done(future)

    async def find(self, key: Key, patience: float) -> Entry | None:
        """What is known of a request, once it is; None where that is nothing after `patience` seconds."""
        if (known := self.get(key)) is not None or self.closed:
            return known
        sought = self._sought.setdefault(key, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(sought)
        except TimeoutError:
            self._sought.pop(key, None)
        return self.get(key)

    def let_out(self, tenant: str, turn: str) -> LetOut | None:
        """Whose turn it was, for which room and until when, if it was authorized."""
        found = self._let_out.get((tenant, turn))
        return None if found is None else found[1]

    def permits(self, record: Record) -> bool:
        """Whether a request names no turn, and no context request, of another agent."""
        return self._owners.permit(record)

    def learn(self, record: Record) -> None:
        """Take notice of a record that is on the log; again, it changes nothing."""
        self._owners.learn(record)
        if isinstance(record, TurnAuthorized):
            self._let_out.setdefault((record.tenant, record.turn), (self._clock(), _let_out(record)))
        elif (key := asked(record)) is not None:
            self._requested(key, record)
        elif (key := answers(record)) is not None and not _conflict(record):
            self._answered(key, record)

    def _requested(self, key: Key, record: Record) -> None:
        entry = self._entry(key)
        if entry.content is None:
            entry.content, entry.agent = content_digest(record), getattr(record, "agent", None)
            entry.request = record if isinstance(record, _KEPT) else None
            early, entry.answers = entry.answers, []
            for answer in early:
                self._answered(key, answer)
            _wake(entry)
            if (sought := self._sought.pop(key, None)) is not None:
                _done(sought)

    def _answered(self, key: Key, record: Record) -> None:
        entry = self._entry(key)
        if entry.content is not None and not _fits(entry, record):
            return
        if (entry.final is None or entry.content is None) and record not in entry.answers:
            entry.answers.append(record)
            _wake(entry)

    def _entry(self, key: Key) -> Entry:
        entry = self._entries.get(key)
        if entry is None:
            self._forget()
            entry = self._entries[key] = Entry(self._clock())
        return entry

    def _forget(self) -> None:
        """Let go of a few that are too old; as many go as come."""
        before = self._clock() - self._keep
        for _ in range(_SWEPT):
            if self._entries and (len(self._entries) >= self._most or _oldest(self._entries).seen < before):
                self._entries.popitem(last=False)
            if self._let_out and (len(self._let_out) >= self._most or _oldest(self._let_out)[0] < before):
                self._let_out.popitem(last=False)

    async def until(self, key: Key, good: Callable[[Entry], bool], patience: float) -> Entry | None:
        """The entry once it is as asked for; as it is after `patience` seconds, None where there is none then."""
        entry = self._entry(key)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while not good(entry) and not self.closed and (left := deadline - loop.time()) > 0:
            changed = loop.create_future()
            entry.waiting.add(changed)
            self._waits.add(changed)
            try:
                async with asyncio.timeout(left):
                    await changed
            except TimeoutError:
                break
            finally:
                entry.waiting.discard(changed)
                self._waits.discard(changed)
        return self.get(key)


def _oldest(entries: OrderedDict[Any, V]) -> V:
    return next(iter(entries.values()))


def _let_out(record: TurnAuthorized) -> LetOut:
    fingerprints = [turn_fingerprint(record, record.text)]
    if record.action is not None:
        fingerprints.append(action_fingerprint(record.action))
    named = (record.agent, record.room, record.at, record.valid_until, record.grants, record.proofs)
    return LetOut(*named, tuple(fingerprints))


def _wake(entry: Entry) -> None:
    for future in entry.waiting:
        _done(future)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _conflict(record: Record) -> bool:
    """Whether it answers other content under an id that was taken, which is not that id's answer (R-TURN-8)."""
    if isinstance(record, TurnDecided):
        return any(reason.code == Code.TURN_CONFLICT for reason in record.reasons)
    if isinstance(record, ContextDecided):
        return any(reason.code == Code.TURN_CONFLICT for one in record.withheld for reason in one.reasons)
    return False


def _fits(entry: Entry, record: Record) -> bool:
    """Whether it can be the answer to just this request: one to other content names no candidates of this one."""
    if not isinstance(record, ContextDecided) or not isinstance(entry.request, ContextRequested):
        return True
    named = {one.ref for one in record.permitted} | {one.ref for one in record.withheld}
    return record.turn == entry.request.turn and named == set(entry.request.candidates)
