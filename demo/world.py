"""Decides what happens when in a simulated workspace: the export's events at their own times, and what follows on them.

Time is simulated. Every record gets its moment as its broker time and is applied by the embedded runtime, which is the
engine of production on a log in memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from turngate.demo.listings import Listings
from turngate.schemas.catalog import TICKS
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import ContextDecided, RefreshRequested, TurnAuthorized, TurnDecided, Verdict
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog

TENANT, AGENT = "harbor", "mesh"
#: A simulated connector takes this long to list a room (ms).
LISTING_MS = 200
#: After this long (ms) a turn that waits for a room has been decided, as `stale.hold` is 5 s and time moves by ticks.
HELD_MS = 6_000
_HEARD = frozenset({"refresh-requests", "turn-verdicts", "outbound"})


class World:
    """A log, an engine, a simulated connector that answers requests for listings, and a schedule."""

    def __init__(self, listings: Listings) -> None:
        self.now = 0
        self.records = 0
        self.listed = 0
        self.held = 0
        self.on_context: Callable[[ContextDecided], None] = lambda _: None
        self.on_turn: Callable[[TurnDecided, str | None], None] = lambda _turn, _text: None
        self._listings = listings
        self._log = LocalLog()
        self._codec = Codec()
        self._runtime = LocalRuntime(self._log, self._codec)
        self._schedule: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    def __enter__(self) -> Self:
        self._log.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.__exit__(kind, error, trace)

    def at(self, when: int, do: Callable[[], None]) -> None:
        """Let something happen at a moment, after what was scheduled for that moment before."""
        self._number += 1
        heapq.heappush(self._schedule, (when, self._number, do))

    def run(self) -> None:
        """Let everything happen, in order of time."""
        while self._schedule:
            when, _, do = heapq.heappop(self._schedule)
            self.now = max(self.now, when)
            do()

    def feed(self, record: str, topic: str, fields: dict[str, Any]) -> None:
        """Put a record on its topic, now, and let what comes of it be heard."""
        key = str(fields["tenant"])
        value = self._codec.encode_fields(record, {**fields, "tenant": key})
        self.records += 1
        emitted = self._runtime.feed(topic, key.encode(), value, self.now) + self._runtime.flush()
        heard = [self._codec.decode(m.value) for m in emitted if m.topic in _HEARD]
        texts = {r.turn: r.text for r in heard if isinstance(r, TurnAuthorized)}
        for answer in heard:
            if isinstance(answer, RefreshRequested):
                self.at(self.now + LISTING_MS, lambda room=answer.room: self._answer(room))  # type: ignore[misc]
            elif isinstance(answer, ContextDecided):
                self.on_context(answer)
            elif isinstance(answer, TurnDecided) and answer.verdict in (Verdict.HOLD, Verdict.ASK):
                self.held += 1
                self.at(self.now + HELD_MS, self.tick)
            elif isinstance(answer, TurnDecided):
                self.on_turn(answer, texts.get(answer.turn))

    def tell(self, record: str, topic: str, **fields: Any) -> None:
        """Put a record of this tenant's agent on its topic, with the present moment as its own."""
        self.feed(record, topic, {"tenant": TENANT, "agent": AGENT, "at": self.now, **fields})

    def tick(self) -> None:
        """Let time be noticed (R-TIME-3)."""
        self.feed("Tick", TICKS, {"tenant": "0", "at": self.now})

    def _answer(self, room: str) -> None:
        """List a room, or say that it cannot be listed, so that whoever waits for it waits in vain."""
        listing = self._listings.at(room, self.now)
        info, members = listing if listing is not None else (None, [])
        self.listed += 1
        self.tell(
            "MembershipPage",
            "membership-refreshes",
            room=room,
            refresh=f"{room}@{self.now}",
            page=0,
            last=True,
            started_at=self.now,
            info=info,
            members=members,
            error=None if listing is not None else "the export does not establish who reads this room",
        )
        if listing is None:
            self.at(self.now + HELD_MS, self.tick)
