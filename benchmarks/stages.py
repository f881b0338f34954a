"""Decides how the time and the bytes of one decision are divided: reading, deciding, writing down what comes of it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from benchmarks.measure import peak_rss
from benchmarks.world import World
from turngate.processors.engine import Engine
from turngate.schemas.catalog import DRAFTS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Position
from turngate.streams.fold import Fold
from turngate.streams.log import Message, Stretch

#: Drafts of one stretch.
STRETCH = 100


@dataclass(frozen=True, slots=True)
class Stages:
    """Of one draft, the median of many stretches: microseconds of CPU for each stage, and bytes.

    `decode`: Avro and validation. `decide`: `Engine.apply`. `encode`: the output records to Avro. `entries`: the state
    entries that changed to JSON. `fold`: all of it by `Fold.apply`, which adds the order, the headers and the digests
    of their ids.
    """

    decode: float
    decide: float
    encode: float
    entries: float
    fold: float
    bytes_in: float
    bytes_decided: float
    bytes_authorized: float
    entries_count: float
    entries_bytes: float

    @property
    def carry(self) -> float:
        """Everything that the fold does but deciding."""
        return self.fold - self.decide


@dataclass(frozen=True, slots=True)
class Held:
    """What one world's state takes. `before` and `peak` are resident bytes of the process, without and with it."""

    before: int
    peak: int
    rows: int
    entries_bytes: int


class Watch:
    """Microseconds of CPU that this thread has used since the last lap: what other processes do is not in them."""

    def __init__(self) -> None:
        self._began = time.thread_time_ns()

    def lap(self) -> float:
        """Those since the last lap, which ends here."""
        began, self._began = self._began, time.thread_time_ns()
        return (self._began - began) / 1000


class Alone:
    """The engine by itself, filled with a world through the codec, as a worker is."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._engine = Engine()
        self._codec = Codec()
        self._offset = 0
        before = peak_rss()
        for record in world.beginning():
            self._apply(self._codec.decode(self._codec.encode(record)))
        self._entries = self._engine.take_changes()
        self.held = Held(before, peak_rss(), len(self._entries), sum(map(_size, self._entries)))

    def stages(self, sources: int, stretches: int) -> Stages:
        """The medians over so many stretches, each timed by stages and, with other drafts, as a whole."""
        for draft in self._world.every_pair():
            self._apply(draft)
        self._engine.take_changes()
        found: dict[str, list[float]] = {}
        for _ in range(stretches):
            for name, value in {**self._by_stages(sources), "fold": self._as_a_whole(sources)}.items():
                found.setdefault(name, []).append(value / STRETCH)
        return Stages(**{name: statistics.median(values) for name, values in found.items()})

    def _by_stages(self, sources: int) -> dict[str, float]:
        values = [self._codec.encode(self._world.draft(sources)) for _ in range(STRETCH)]
        watch = Watch()
        drafts = [self._codec.decode(value) for value in values]
        decode = watch.lap()
        places = [self._place(draft) for draft in drafts]
        self._engine.fits = lambda _: True  # a fold's looks at the bytes, which are made below
        watch.lap()
        emitted = [self._engine.apply(d, p, d.at, v) for d, p, v in zip(drafts, places, values, strict=True)]
        decide = watch.lap()
        outputs = [(record, self._codec.encode(record)) for records in emitted for record in records]
        encode = watch.lap()
        entries = self._engine.take_changes()
        return {
            "decode": decode,
            "decide": decide,
            "encode": encode,
            "entries": watch.lap(),
            "bytes_in": sum(map(len, values)),
            "bytes_decided": sum(len(value) for record, value in outputs if isinstance(record, TurnDecided)),
            "bytes_authorized": sum(len(value) for record, value in outputs if isinstance(record, TurnAuthorized)),
            "entries_count": len(entries),
            "entries_bytes": sum(map(_size, entries)),
        }

    def _as_a_whole(self, sources: int) -> float:
        start = self._offset + 1
        messages: list[Message] = []
        for _ in range(STRETCH):
            draft = self._world.draft(sources)
            place = self._place(draft)
            key, value = draft.tenant.encode(), self._codec.encode(draft)
            messages.append(Message(DRAFTS, 0, place.offset, draft.at, key, value))
        fold = Fold(0, self._engine, self._codec, {DRAFTS: start})
        stretch = Stretch(dict(fold.positions), {**fold.positions, DRAFTS: self._offset + 1}, messages)
        watch = Watch()
        fold.apply(stretch)
        return watch.lap()

    def _apply(self, record: Record) -> None:
        self._engine.apply(record, self._place(record), record.at)

    def _place(self, record: Record) -> Position:
        self._offset += 1
        return Position(topic=topic_of(type(record).__name__, {}), partition=0, offset=self._offset)


def _size(entry: tuple[bytes, bytes | None]) -> int:
    key, value = entry
    return len(key) + len(value or b"")
