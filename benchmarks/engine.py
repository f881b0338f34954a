"""Decides what is asked of the engine and prints the answers: `python -m benchmarks.engine [--quick]`.

For each number of members a process of its own, twice: the contest of the engine with bare sets and bitmaps, and the
engine alone, for its memory and the stages of a decision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import TypeVar

from benchmarks.deciding import DECISIONS_A_CHANGE, Case, Contest, Lap
from benchmarks.measure import Spread, add_json, machine, percentile, publish, table, told
from benchmarks.stages import Alone, Held, Stages
from benchmarks.world import Size, World

#: 2026-01-01T00:00:00Z in milliseconds: time is a record here, and passes as the world says.
EPOCH = 1_767_225_600_000
#: From so many members on, fewer decisions make a lap: a change lists so many again, and plain sets are slow by then.
LARGE = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `decisions` in a lap."""

    members: tuple[int, ...] = (5, 500, 50_000)
    sources: tuple[int, ...] = (1, 8, 32)
    rounds: int = 5
    decisions: int = 1_000
    stretches: int = 30

    def lap(self, members: int, case: Case) -> int:
        """How many decisions a lap has."""
        if members < LARGE:
            return self.decisions
        return max(DECISIONS_A_CHANGE, self.decisions // (10 if case is Case.WARM else 20))


QUICK = Plan(rounds=3, decisions=200, stretches=5, members=(5, 500))


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of the result. Rates are decisions in a second of CPU; `p50` and `p99` microseconds of one decision."""

    members: int
    sources: int
    case: Case
    deciding: Spread
    rate: Spread
    p50: float
    p99: float
    delivered: float
    share: Spread
    sets: Spread | None
    bitmaps: Spread | None


def contest(members: int, plan: Plan) -> list[Cell]:
    """Everybody's laps, in rounds."""
    found = Contest(World(_size(members), now=EPOCH))
    laps: dict[tuple[int, Case], list[dict[str, Lap]]] = {}
    for _ in range(plan.rounds if members < LARGE else min(plan.rounds, 3)):
        for sources in plan.sources:
            for case in Case:
                lap = found.run(case, sources, plan.lap(members, case))
                laps.setdefault((sources, case), []).append(lap)
    return [_cell(members, sources, case, rounds) for (sources, case), rounds in laps.items()]


def alone(members: int, plan: Plan) -> tuple[Held, dict[int, Stages]]:
    """The engine's memory, and the stages of a decision by the number of its sources."""
    found = Alone(World(_size(members), now=EPOCH))
    stretches = plan.stretches if members < LARGE else max(1, plan.stretches // 10)
    return found.held, {sources: found.stages(sources, stretches) for sources in plan.sources}


def _size(members: int) -> Size:
    return Size(members) if members < LARGE else Size(members, destinations=2, sources=40, narrow=2)


def _cell(members: int, sources: int, case: Case, rounds: list[dict[str, Lap]]) -> Cell:
    engine = [lap["engine"] for lap in rounds]
    each = [ns / 1000 for lap in engine for ns in lap.decisions]
    said = [delivered for lap in engine for delivered in lap.delivered]
    return Cell(
        members=members,
        sources=sources,
        case=case,
        deciding=_spread([lap.deciding for lap in engine]),
        rate=_spread([lap.rate for lap in engine]),
        p50=percentile(each, 0.5),
        p99=percentile(each, 0.99),
        delivered=sum(said) / len(said),
        share=_spread([lap.share for lap in engine]),
        sets=None if case is Case.TURN else _spread([lap["sets"].deciding for lap in rounds]),
        bitmaps=None if case is Case.TURN else _spread([lap["bitmaps"].deciding for lap in rounds]),
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(tuple(values))


def _in_its_own_process(call: Callable[..., T], *arguments: object) -> T:
    """So that memory is of one world, and what one allocates does not slow the next."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


_HEAD = (
    "members × sources, case",
    "decisions/s, drafts alone",
    "decisions/s, all records",
    "µs p50",
    "µs p99",
    "delivered",
    "sets: asks of all sources/s",
    "bitmaps: the same/s",
)


def _cells(cells: list[Cell]) -> str:
    return table(
        _HEAD,
        [
            (
                f"{c.members:,} × {c.sources}, {c.case}",
                c.deciding.text(),
                c.rate.text(),
                f"{c.p50:,.0f}",
                f"{c.p99:,.0f}",
                f"{c.delivered:.0%}",
                "" if c.sets is None else c.sets.text(),
                "" if c.bitmaps is None else c.bitmaps.text(),
            )
            for c in cells
        ],
    )


_STAGES = ("members × sources", "decode", "decide", "encode", "state", "rest", "fold", "decide : carry")
_BYTES = ("members × sources", "draft", "TurnDecided", "TurnAuthorized", "state entries", "their bytes")


def _stages(members: int, stages: dict[int, Stages]) -> list[tuple[str, ...]]:
    rows = []
    for sources, s in stages.items():
        rest = s.fold - s.decode - s.decide - s.encode - s.entries
        parts = (s.decode, s.decide, s.encode, s.entries, rest, s.fold)
        rows.append((f"{members:,} × {sources}", *(f"{x:,.0f}" for x in parts), f"{s.decide / s.carry:.2f}"))
    return rows


def _bytes(members: int, stages: dict[int, Stages]) -> list[tuple[str, ...]]:
    return [
        (
            f"{members:,} × {sources}",
            *(f"{x:,.0f}" for x in (s.bytes_in, s.bytes_decided, s.bytes_authorized)),
            f"{s.entries_count:.2f}",
            f"{s.entries_bytes:,.0f}",
        )
        for sources, s in stages.items()
    ]


def _held(members: int, held: Held) -> tuple[str, ...]:
    megabytes = (held.before, held.peak, held.entries_bytes)
    rooms = _size(members)
    count = rooms.destinations + rooms.sources + rooms.narrow
    return (f"{members:,}", f"{count}", *(f"{x / 1e6:,.1f}" for x in megabytes), f"{held.rows:,}")


def run(plan: Plan) -> tuple[str, dict[str, object]]:
    """The report, and all of it as plain values."""
    before = machine()
    cells = [cell for members in plan.members for cell in _in_its_own_process(contest, members, plan)]
    lone = {members: _in_its_own_process(alone, members, plan) for members in plan.members}
    shares = _spread([share for cell in cells for share in cell.share.values])
    text = "\n\n".join(
        [
            told(before),
            _cells(cells),
            "Rates are of a second of CPU, p50 and p99 by the clock."
            f" The engine's laps had a core for {shares.text(2)} of their time.",
            "Microseconds of CPU for one draft:\n\n"
            + table(_STAGES, [row for n, (_, stages) in lone.items() for row in _stages(n, stages)]),
            "Bytes of one draft and of what comes of it (means over delivered and dropped ones):\n\n"
            + table(_BYTES, [row for n, (_, stages) in lone.items() for row in _bytes(n, stages)]),
            "Memory, MB:\n\n"
            + table(
                ("members", "rooms", "resident before", "peak with the state", "state as entries", "entries"),
                [_held(n, held) for n, (held, _) in lone.items()],
            ),
        ]
    )
    values: dict[str, object] = {
        "machine": before,
        "cells": [asdict(cell) for cell in cells],
        "alone": {
            n: {"held": asdict(h), "stages": {k: asdict(s) for k, s in st.items()}} for n, (h, st) in lone.items()
        },
    }
    return text, values


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small laps and no large rooms: some 15 seconds")
    parser.add_argument("--members", type=int, nargs="+", help="sizes of rooms, from 5 on")
    parser.add_argument("--sources", type=int, nargs="+", help="sources of a draft, up to 100")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--decisions", type=int, help="in a lap; a multiple of ten")
    parser.add_argument("--stretches", type=int, help="stretches of 100 drafts that the stages are measured by")
    add_json(parser)
    given = parser.parse_args(arguments)
    base = QUICK if given.quick else Plan()
    plan = Plan(
        members=tuple(given.members or base.members),
        sources=tuple(given.sources or base.sources),
        rounds=given.rounds or base.rounds,
        decisions=given.decisions or base.decisions,
        stretches=given.stretches or base.stretches,
    )
    if min(plan.members) < 5 or max(plan.sources) > 100 or plan.decisions % DECISIONS_A_CHANGE:
        parser.error("rooms have 5 members or more, drafts up to 100 sources, laps a multiple of ten decisions")
    text, values = run(plan)
    publish(text, values, given.json)


if __name__ == "__main__":
    main()
