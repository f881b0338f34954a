"""Measures whether the audit store keeps up with a worker: both run at once, on one broker.

    python -m benchmarks.store_beside_worker [--drafts N] [--members N] [--bootstrap-servers …] [--postgres-dsn DSN]

A node of Apache Kafka is started (Java 17 and Maven), and a Postgres, where none is named. The drafts lie on the broker
before a worker and a store process start. It is noted when the worker has decided the last one, and when the store has
all that came of them.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select

from benchmarks.measure import machine
from benchmarks.store import database
from benchmarks.world import Size, World
from tests.broker import Broker
from tests.kafka.cluster import ROOT, Cluster, Sent
from turngate.schemas.authority import STORED
from turngate.schemas.catalog import DRAFTS, topic_of
from turngate.schemas.codec import Codec
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.tables import DECISIONS, POSITIONS
from turngate.streams.kafka.settings import KafkaSettings, PostgresSettings

CODEC = Codec()
#: Seconds between two looks, and after which a run has failed.
PAUSE, PATIENCE = 0.25, 300


async def prepared(cluster: Cluster, members: int, drafts: int) -> int:
    """Everything that the worker will read; the offset after the last draft."""
    await cluster.make_topics()
    world = World(Size(members), now=int(time.time() * 1000) - 120_000)
    records = [*world.beginning(), *(world.draft(8) for _ in range(drafts))]
    key = world.tenant.encode()
    sent = [Sent(topic_of(type(r).__name__, {}), 0, key, CODEC.encode(r)) for r in records]
    ends = await cluster.send(sent)
    return next(end for place, end in ends.items() if place.topic == DRAFTS)


@contextmanager
def running(cluster: Cluster, folder: Path, dsn: str, schema: str) -> Iterator[None]:
    """A worker and a store process."""
    command = [sys.executable, "-m", "tests.sinks.store.store_process"]
    with (folder / "store").open("wb") as said:
        store = subprocess.Popen(
            [*command, cluster.settings.bootstrap_servers, cluster.prefix, dsn, schema], cwd=ROOT, stderr=said
        )
    worker = cluster.worker(folder / "worker", "--decide")
    try:
        yield
    finally:
        for process in (worker, store):
            process.kill()
            process.wait()


async def measure(cluster: Cluster, folder: Path, dsn: str, drafts: int, members: int) -> tuple[float, float, int]:
    """Seconds until the worker was done and until the store was; how many decisions were stored.

    From the first decision that was seen on, or the look before where that was the last one.
    """
    end, schema = await prepared(cluster, members, drafts), f"b{uuid.uuid4().hex[:8]}"
    began = decided = 0.0
    with running(cluster, folder, dsn, schema):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            now, at = time.monotonic(), await cluster.applied()
            reached = max((offset for place, offset in at.items() if place.topic == DRAFTS), default=0)
            began = now - PAUSE if not began and reached else began
            decided = now if not decided and reached >= end else decided
            if decided and await _stored(cluster, dsn, schema):
                return decided - began, time.monotonic() - began, _decisions(dsn, schema)
            await asyncio.sleep(PAUSE)
    raise RuntimeError(f"not done within {PATIENCE} s: " + (folder / "store").read_text()[-1000:])


async def _stored(cluster: Cluster, dsn: str, schema: str) -> bool:
    ends = {place: messages[-1].offset for place, messages in (await cluster.read(*STORED)).items() if messages}
    with postgres_engine(PostgresSettings(dsn), schema).connect() as connection:
        found = connection.execute(select(POSITIONS.c.topic, POSITIONS.c.partition, POSITIONS.c.next))
        at = {(topic, partition): reached for topic, partition, reached in found}
    return all(at.get((place.topic, place.partition), 0) > last for place, last in ends.items())


def _decisions(dsn: str, schema: str) -> int:
    with postgres_engine(PostgresSettings(dsn), schema).connect() as connection:
        return len(connection.execute(select(DECISIONS.c.offset)).all())


@contextmanager
def broker(bootstrap: str | None, folder: Path) -> Iterator[str]:
    """The one that was named, or one of our own."""
    if bootstrap is not None:
        yield bootstrap
        return
    with Broker(folder / "kafka") as made:
        yield made.bootstrap


def main() -> None:
    """Measure once, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-servers")
    parser.add_argument("--postgres-dsn")
    parser.add_argument("--drafts", type=int, default=12_000)
    parser.add_argument("--members", type=int, default=500)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        database(given.postgres_dsn) as dsn,
        broker(given.bootstrap_servers, Path(folder)) as bootstrap,
    ):
        cluster = Cluster(KafkaSettings.read(bootstrap, environment={}), f"b{uuid.uuid4().hex[:8]}-", 1)
        worker, store, count = asyncio.run(measure(cluster, Path(folder), dsn, given.drafts, given.members))
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    rate = given.drafts / worker
    print(f"{given.members} × 8: a worker decided {given.drafts} drafts in {worker:.1f} s ({rate:,.0f} a second);")
    print(f"{store - worker:.1f} s later all that came of them was stored ({count} decisions)")


if __name__ == "__main__":
    main()
