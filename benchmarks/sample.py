"""Decides what stands for a decision where nothing is decided: what the engine made of some drafts, in turn."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from benchmarks.world import World
from turngate.processors.engine import Engine
from turngate.schemas.catalog import APPLIED, DRAFTS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record, TurnDrafted
from turngate.schemas.shapes import Position
from turngate.streams.fold import Fold
from turngate.streams.log import Message, Outgoing, Stretch

Entry = tuple[bytes, bytes | None]

#: Decisions that a sample holds: enough to have delivered and dropped ones in their usual shares.
DECISIONS = 100
#: Entries that a stretch has once, however many decisions it holds: the clock, and the end of each tenant's chain.
_ONCE = (b'["clock"', b'["heads"')


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of one draft: records, the same as bytes with their headers, and the entries that are its own."""

    records: list[Record]
    outputs: list[Outgoing]
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some decisions, and what every stretch adds to its own: the entries that it has once, and its record."""

    decided: list[Decided]
    once: list[Entry]
    applied: Outgoing


def sample(world: World, sources: int) -> Sample:
    """The real engine's decisions about some drafts of this world."""
    engine, codec = Engine(), Codec()
    for at, record in enumerate(world.beginning()):
        topic = topic_of(type(record).__name__, {})
        engine.apply(record, Position(topic=topic, partition=0, offset=at), record.at)
    engine.take_changes()
    recorded = _Recorded(engine)
    fold = Fold(0, recorded, codec, {DRAFTS: 0})
    decided: list[Decided] = []
    for number in range(DECISIONS):
        draft = world.draft(sources)
        message = Message(DRAFTS, 0, number, draft.at, draft.tenant.encode(), codec.encode(draft))
        commit = fold.apply(Stretch(dict(fold.positions), {**fold.positions, DRAFTS: number + 1}, [message]))
        outputs = [out for out in commit.outputs if out.topic != APPLIED]
        entries = [entry for entry in commit.entries if not entry[0].startswith(_ONCE)]
        decided.append(Decided(recorded.emitted, outputs, entries))
    once = [entry for entry in commit.entries if entry[0].startswith(_ONCE)]
    return Sample(decided, once, commit.outputs[-1])


class _Recorded:
    """An engine whose last answer can be looked at."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.version = engine.version
        self.emitted: list[Record] = []
        self.late, self.refuse, self.take_changes = engine.late, engine.refuse, engine.take_changes

    @property
    def now(self) -> int:
        """Stream time."""
        return self._engine.now

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """As the engine does."""
        self.emitted = self._engine.apply(record, position, timestamp, raw)
        return self.emitted


class Constant:
    """An engine that decides nothing: it answers a draft with the next decision of a sample, all else with nothing.

    What comes out of it has the sizes of what the real one makes, so a worker with it does everything but deciding.
    """

    version = Engine.version

    def __init__(self, sample: Sample) -> None:
        self.now = 0
        self._next = itertools.cycle(sample.decided)
        self._once = sample.once
        self._entries: list[Entry] = []

    def hold_ms(self) -> int:
        """As the default policy has it."""
        return 5_000

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """The next decision of the sample, if it is a draft."""
        self.now = max(self.now, timestamp)
        if not isinstance(record, TurnDrafted):
            return []
        decided = next(self._next)
        self._entries += decided.entries
        return decided.records

    late = apply

    def refuse(self, tenant: str, schema: str | None, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """Nothing."""
        return []

    def take_changes(self) -> list[Entry]:
        """The entries of the decisions since this was last asked, and those that a stretch has once."""
        taken, self._entries = [*self._once, *self._entries], []
        return taken
