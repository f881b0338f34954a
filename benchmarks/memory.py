"""Decides what a tenant's history costs and prints it: `python -m benchmarks.memory [--quick]`.

What a draft takes, and what the process holds, as a tenant's history grows; what a long chain of derivations and a
memory of many leaves cost; and how long an engine takes to come back from its checkpoint.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.history import History
from benchmarks.measure import Spread, add_json, machine, publish, rss, table, told
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.catalog import topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MemoryWrite, Record
from turngate.schemas.outputs import RevisionRecorded, TurnDecided, Verdict
from turngate.schemas.shapes import Position

EPOCH = 1_767_225_600_000
#: Messages of one room, on average, in the largest history.
IN_A_ROOM = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: sizes of the history, drafts at each, the chain's depth, a memory's leaves."""

    messages: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    drafts: int = 1_000
    depth: int = 1_000
    leaves: int = 5_000


QUICK = Plan(messages=(500, 2_000), drafts=20, depth=30, leaves=100)


@dataclass(frozen=True, slots=True)
class Grown:
    """At one size: microseconds of CPU for one draft, those delivered, resident bytes beyond an empty engine's."""

    messages: int
    draft: Spread
    delivered: float
    held: int
    record: float


@dataclass(frozen=True, slots=True)
class Restart:
    """A checkpoint: its entries and their bytes, and the seconds, CPU seconds and resident bytes of coming back."""

    messages: int
    entries: int
    entry_bytes: int
    seconds: float
    cpu: float
    held: int
    total: int


@dataclass(frozen=True, slots=True)
class Deep:
    """Microseconds of CPU for what is done at the end of a chain or with a memory of many leaves, and bytes."""

    what: str
    write: float
    draft: float
    again: float
    entry_bytes: int
    record_bytes: int


class Applied:
    """An engine that is handed records, each timed by this process's CPU."""

    def __init__(self) -> None:
        self.engine = Engine(TEST_KEYS)
        self._offsets: dict[str, int] = {}

    def one(self, record: Record) -> tuple[list[Record], float]:
        """What came of a record, and the microseconds that took."""
        topic = topic_of(type(record).__name__, {"by": getattr(record, "by", None), "op": getattr(record, "op", None)})
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        position = Position.model_construct(topic=topic, partition=0, offset=offset)
        began = time.thread_time_ns()
        out = self.engine.apply(record, position, record.at)
        return out, (time.thread_time_ns() - began) / 1000

    def all(self, records: Iterable[Record]) -> float:
        """Apply them all, with a commit now and then; the mean microseconds of one."""
        spent, count = 0.0, 0
        for record in records:
            spent += self.one(record)[1]
            count += 1
            if count % 1_000 == 0:
                self.engine.take_changes()
        self.engine.take_changes()
        return spent / max(count, 1)


def grown(plan: Plan, folder: Path) -> list[Grown]:
    """One history that grows to each size in turn; at the last, its checkpoint is written to a file there."""
    largest = max(plan.messages)
    history, applied = History(max(4, largest // IN_A_ROOM), now=EPOCH), Applied()
    gc.collect()
    empty = rss()
    applied.all(history.beginning())
    found = []
    for size in plan.messages:
        record = applied.all(history.more(size - history.messages)) if size > history.messages else 0.0
        gc.collect()
        held = rss() - empty
        took, delivered = [], 0
        for _ in range(plan.drafts):
            out, spent = applied.one(history.draft())
            took.append(spent)
            delivered += any(isinstance(r, TurnDecided) and r.verdict is Verdict.DELIVER for r in out)
        applied.engine.take_changes()
        thirds = [sum(took[n::3]) / len(took[n::3]) for n in range(3)]
        found.append(Grown(history.messages, Spread(tuple(thirds)), delivered / plan.drafts, held, record))
    _save(applied.engine, folder / "entries")
    return found


def _save(engine: Engine, file: Path) -> None:
    with file.open("wb") as out:
        for key, value in engine.state.entries():
            out.write(len(key).to_bytes(4, "big") + len(value).to_bytes(4, "big") + key + value)


def saved(file: Path) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a checkpoint that was written to a file."""
    with file.open("rb") as entries:
        while head := entries.read(8):
            key = entries.read(int.from_bytes(head[:4], "big"))
            yield key, entries.read(int.from_bytes(head[4:], "big"))


def restart(messages: int, folder: Path) -> Restart:
    """Come back from that checkpoint, in a process that has done nothing else."""
    file = folder / "entries"
    Engine(TEST_KEYS)
    gc.collect()
    empty, began, cpu = rss(), time.perf_counter(), time.process_time()
    engine = Engine.restore(saved(file), Engine.version, TEST_KEYS)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    gc.collect()
    total = rss()
    entries = sum(len(table.rows) for table in engine.state.tables.values())
    return Restart(messages, entries, file.stat().st_size - 8 * entries, seconds, spent, total - empty, total)


def deep(plan: Plan) -> list[Deep]:
    """Chains as deep as the plan says, of derivations and of amendments, and memories of few and of many leaves."""
    history, applied = History(40, now=EPOCH), Applied()
    applied.all(history.beginning())
    applied.all(history.by_everybody(plan.leaves))
    sources = history.last_of(plan.leaves)
    found = []
    for count in (1, plan.leaves // 10, plan.leaves):
        write = history.write(f"wide-{count}", f"wide-{count}@1", sources[:count])
        found.append(_measured(history, applied, f"a memory of {count:,} leaves", write))
    for what in ("derivations", "amendments"):
        revision, memory = f"{what}@0", what
        applied.one(history.write(memory, revision, sources[:SHORT]))
        for depth in range(1, plan.depth + 1):
            base = revision if what == "amendments" else None
            memory = what if base is not None else f"{what}-{depth}"
            named = () if base is not None else (f"revision:{revision}",)
            write = history.write(memory, f"{what}@{depth}", (*named, sources[SHORT + depth % SHORT]), base)
            if depth in (1, plan.depth):
                found.append(_measured(history, applied, f"{what}, {depth:,} deep", write))
            else:
                applied.one(write)
            revision = f"{what}@{depth}"
    return found


#: Leaves at the foot of a chain, and so many more that join it on the way.
SHORT = 10


def _measured(history: History, applied: Applied, what: str, write: MemoryWrite) -> Deep:
    out, wrote = applied.one(write)
    changed = dict(applied.engine.take_changes())
    (entry,) = (v for k, v in changed.items() if k.startswith(b'["revisions"') and write.revision.encode() in k and v)
    recorded = next(r for r in out if isinstance(r, RevisionRecorded))
    exposed = (f"revision:{write.revision}",)
    first = applied.one(history.draft(exposed))[1]
    again = sorted(applied.one(history.draft(exposed))[1] for _ in range(20))[10]
    applied.engine.take_changes()
    return Deep(what, wrote, first, again, len(entry), len(Codec().encode(recorded)))


def _in_its_own_process(call: object, *arguments: object) -> object:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()  # type: ignore[arg-type]


_SIZES = ("recorded messages", "µs CPU a draft", "delivered", "µs CPU a record", "MB held", "bytes a message")
_BACK = ("restart at", "entries", "MB of entries", "seconds", "CPU seconds", "MB held", "MB of the process")
_DEEP = ("µs of CPU", "the write", "a draft of it", "another", "bytes of its entry", "of its record")
Rows = list[tuple[str, ...]]


def _size(g: Grown) -> tuple[str, ...]:
    held = (f"{g.held / 1e6:,.0f}", f"{g.held / g.messages:,.0f}")
    return (f"{g.messages:,}", g.draft.text(), f"{g.delivered:.0%}", f"{g.record:,.0f}", *held)


def _back(r: Restart) -> tuple[str, ...]:
    took = (f"{r.seconds:,.1f}", f"{r.cpu:,.1f}", f"{r.held / 1e6:,.0f}", f"{r.total / 1e6:,.0f}")
    return (f"{r.messages:,}", f"{r.entries:,}", f"{r.entry_bytes / 1e6:,.0f}", *took)


def _deep(d: Deep) -> tuple[str, ...]:
    return (d.what, *(f"{x:,.0f}" for x in (d.write, d.draft, d.again, d.entry_bytes, d.record_bytes)))


def _text(before: dict[str, str], *tables: tuple[str, ...] | Rows) -> str:
    heads, rows = tables[::2], tables[1::2]
    return "\n\n".join([told(before), *(table(head, row) for head, row in zip(heads, rows, strict=True))])  # type: ignore[arg-type]


def run(plan: Plan, keep: Path | None = None) -> tuple[str, dict[str, object]]:
    """The report, and all of it as plain values; the checkpoint is kept in a file where one is named."""
    before = machine()
    with TemporaryDirectory() as folder:
        sizes: list[Grown] = _in_its_own_process(grown, plan, Path(folder))  # type: ignore[assignment]
        if keep is not None:
            shutil.copyfile(Path(folder) / "entries", keep)
        back: Restart = _in_its_own_process(restart, sizes[-1].messages, Path(folder))  # type: ignore[assignment]
    chains: list[Deep] = _in_its_own_process(deep, plan)  # type: ignore[assignment]
    found = (before, _SIZES, [_size(g) for g in sizes], _BACK, [_back(back)], _DEEP, [_deep(d) for d in chains])
    text = _text(*found)
    values: dict[str, object] = {
        "machine": before,
        "grown": [asdict(g) for g in sizes],
        "restart": asdict(back),
        "deep": [asdict(d) for d in chains],
    }
    return text, values


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small history: some seconds")
    parser.add_argument("--messages", type=int, nargs="+", help="sizes of the history, ascending")
    parser.add_argument("--drafts", type=int)
    parser.add_argument("--depth", type=int)
    parser.add_argument("--leaves", type=int)
    add_json(parser)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the checkpoint there, for benchmarks.restart")
    given = parser.parse_args(arguments)
    base = QUICK if given.quick else Plan()
    plan = Plan(
        messages=tuple(given.messages or base.messages),
        drafts=given.drafts or base.drafts,
        depth=given.depth or base.depth,
        leaves=given.leaves or base.leaves,
    )
    text, values = run(plan, given.keep)
    publish(text, values, given.json)


if __name__ == "__main__":
    main()
