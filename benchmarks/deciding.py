"""Decides how decisions are timed: one record after the other, the same for every contender, in one process.

A lap is a number of decisions of one kind. Within a round every contender runs the same lap of the same records, one
contender after the other, so that what else the machine does falls upon all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.bare import Bitmaps, Sets
from benchmarks.world import World
from turngate.processors.engine import Engine
from turngate.schemas.catalog import topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MembershipPage, Record, TurnDrafted
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.schemas.shapes import Position

CODEC = Codec()
#: In a lap of changes, one membership changes before each of so many decisions.
DECISIONS_A_CHANGE = 10


class Case(StrEnum):
    """What a lap consists of."""

    #: Drafts alone; every pair of a destination and a source has been asked before.
    WARM = "warm"
    #: Before every tenth draft a membership changes, and five drafts later the room is listed anew.
    CHANGING = "changing"
    #: A message, a context request for its candidates, and a draft with what was permitted.
    TURN = "turn"


@dataclass(slots=True)
class Lap:
    """What a contender needed. `decisions`: nanoseconds of each draft; `others`: of all other records together.

    `share`: of the lap's time, how much this thread had a core; the rest went to other processes. Rates are of that
    part: what a core does in a second if nothing else wants it.
    """

    decisions: list[int] = field(default_factory=list)
    others: int = 0
    delivered: list[bool] = field(default_factory=list)
    share: float = 1.0

    @property
    def deciding(self) -> float:
        """Decisions in a second, the drafts alone."""
        return len(self.decisions) / sum(self.decisions) * 1e9 / self.share

    @property
    def rate(self) -> float:
        """Decisions in a second, with everything else that the lap holds."""
        return len(self.decisions) / (sum(self.decisions) + self.others) * 1e9 / self.share


class Deciding:
    """The engine, fed with records that have been on a wire."""

    def __init__(self) -> None:
        self.engine = Engine()
        self._offset = 0

    def place(self, record: Record) -> Position:
        """The next position on the record's topic."""
        self._offset += 1
        return Position(topic=topic_of(type(record).__name__, {}), partition=0, offset=self._offset)

    def lap(self, records: Iterable[Record]) -> Lap:
        """Apply records and time each."""
        lap, apply, clock = Lap(), self.engine.apply, time.perf_counter_ns
        placed = [(record, self.place(record)) for record in records]
        cpu, start = time.thread_time_ns(), clock()
        for record, place in placed:
            began = clock()
            emitted = apply(record, place, record.at)
            took = clock() - began
            if isinstance(record, TurnDrafted):
                lap.decisions.append(took)
                lap.delivered += [e.verdict is Verdict.DELIVER for e in emitted if isinstance(e, TurnDecided)]
            else:
                lap.others += took
        lap.share = (time.thread_time_ns() - cpu) / (clock() - start)
        self.engine.take_changes()
        return lap


def bare_lap(contender: Sets | Bitmaps, records: Iterable[Record]) -> Lap:
    """The same for one that only asks `D ⊆ S`."""
    lap, apply, clock = Lap(), contender.apply, time.perf_counter_ns
    cpu, start = time.thread_time_ns(), clock()
    for record in records:
        began = clock()
        inside = apply(record)
        took = clock() - began
        if inside is None:
            lap.others += took
        else:
            lap.decisions.append(took)
            lap.delivered.append(inside)
    lap.share = (time.thread_time_ns() - cpu) / (clock() - start)
    return lap


class Contest:
    """One world, and everybody who decides about it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._deciding, self._sets, self._bitmaps = Deciding(), Sets(), Bitmaps()
        for record in world.beginning():
            self._all([record])

    def run(self, case: Case, sources: int, count: int) -> dict[str, Lap]:
        """A lap of each contender. Raises `AssertionError` where they do not agree on every draft."""
        if case is Case.WARM:
            self._all(list(self.world.every_pair()))
        records = lap_records(self.world, case, sources, count)
        laps = self._all(records)
        if case is Case.TURN:  # its drafts name no sources, but the context that was permitted: only the engine knows
            return {"engine": laps["engine"]}
        verdicts = [lap.delivered for lap in laps.values()]
        assert verdicts[0] == verdicts[1] == verdicts[2], "the engine, sets and bitmaps do not agree on every draft"
        return laps

    def _all(self, records: list[Record]) -> dict[str, Lap]:
        records = [on_a_wire(record) for record in records]
        return {
            "engine": self._deciding.lap(records),
            "sets": bare_lap(self._sets, records),
            "bitmaps": bare_lap(self._bitmaps, records),
        }


def lap_records(world: World, case: Case, sources: int, count: int) -> list[Record]:
    """What happens in a lap of so many decisions."""
    records: list[Record] = []
    for number in range(count):
        if case is Case.TURN:
            records += world.turn(sources)
            continue
        if case is Case.CHANGING and number % DECISIONS_A_CHANGE == 0:
            event, ends = world.change()
            records.append(event)
        records.append(world.draft(sources))
        if case is Case.CHANGING and number % DECISIONS_A_CHANGE == DECISIONS_A_CHANGE // 2:
            records += ends()
    return records


def on_a_wire(record: Record) -> Record:
    """A record as a worker sees it, whose strings are no other record's; listings stay as they are, for their size."""
    return record if isinstance(record, MembershipPage) else CODEC.decode(CODEC.encode(record))
