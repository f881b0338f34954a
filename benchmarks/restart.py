"""Decides what a worker's return costs and prints it: `python -m benchmarks.restart FILE [--copies 10] [--engine]`.

FILE is the checkpoint that `benchmarks.memory --keep FILE` has left. Its entries are written to the state topic of a
broker, and a worker in a process of its own comes back from them; or, with `--engine`, an engine without any broker.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.measure import cpu_seconds, load, machine, peak_rss, rss
from benchmarks.memory import saved
from benchmarks.worker import broker
from tests.kafka.cluster import Cluster, until
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.codec import Codec
from turngate.streams.kafka.checkpoint import Layout
from turngate.streams.kafka.clients import plain_producer, send_all
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.log import Commit

#: Seconds after which a worker has not come back.
PATIENCE = 3_600
#: Entries of one commit.
IN_A_COMMIT = 2_000
_DIGEST = re.compile(rb'"[0-9a-f]([0-9a-f]{31})"')


@dataclass(frozen=True, slots=True)
class Back:
    """Entries, their bytes; seconds and CPU seconds until there is a state; resident bytes before, then and at most."""

    entries: int
    entry_bytes: int
    seconds: float
    cpu: float
    before: int
    held: int
    peak: int


def copied(file: Path, copies: int) -> Iterator[tuple[bytes, bytes]]:
    """The checkpoint so many times over: each copy has rooms, turns and leaves of its own, and shares the audiences."""
    for copy in range(copies):
        room, turn, leaf = f"/C{copy}".encode(), f"turn{copy}-".encode(), f'"{copy:x}'.encode() + rb'\1"'
        for key, value in saved(file):
            if copy == 0:
                yield key, value
            else:
                yield tuple(  # type: ignore[misc]
                    _DIGEST.sub(leaf, part.replace(b"/C0", room).replace(b"turn-", turn)) for part in (key, value)
                )


async def fill(settings: KafkaSettings, cluster: Cluster, file: Path, copies: int) -> None:
    """Write the entries as a worker writes its commits."""
    await cluster.make_topics()
    layout, entries = Layout(), copied(file, copies)
    producer = plain_producer(settings)
    await producer.start()
    try:
        while some := list(islice(entries, IN_A_COMMIT)):
            records = layout.records(Commit([], [*some], {}, Engine.version))
            await asyncio.gather(*await send_all(producer, cluster.prefix + STATE_TOPIC, 0, records))
    finally:
        await producer.stop()


async def come_back(bootstrap: str, prefix: str) -> Back:
    """A worker of the one partition, until it owns it."""
    gc.collect()
    before, began, cpu = rss(), time.perf_counter(), cpu_seconds()
    options = WorkerOptions(names=Names(prefix=prefix, group=f"{prefix}restart"))
    restore = partial(Engine.restore, keys=TEST_KEYS)
    async with Worker(KafkaSettings.read(bootstrap), Codec(), options, restore) as worker:

        async def owned() -> bool:
            if worker.runtime.failed.done():
                await worker.failed()
            return 0 in worker.runtime.owned

        await until(owned, PATIENCE)
        seconds, spent = time.perf_counter() - began, cpu_seconds() - cpu
        held, peak = rss(), peak_rss()
        state = worker.runtime.owned[0].held.engine.state  # type: ignore[attr-defined]
        sizes = [len(key) + len(value) for key, value in state.entries()]
    return Back(len(sizes), sum(sizes), seconds, spent, before, held, peak)


def engine_alone(file: Path, copies: int) -> Back:
    """An engine that is made of the entries."""
    before, began, cpu = rss(), time.perf_counter(), cpu_seconds()
    engine = Engine.restore(copied(file, copies), Engine.version, TEST_KEYS)
    seconds, spent = time.perf_counter() - began, cpu_seconds() - cpu
    held, peak = rss(), peak_rss()
    sizes = [len(key) + len(value) for key, value in engine.state.entries()]
    return Back(len(sizes), sum(sizes), seconds, spent, before, held, peak)


def with_a_worker(file: Path, copies: int, bootstrap: str | None) -> Back:
    """A worker in a process of its own. Raises `RuntimeError` where it does not come back."""
    with broker(bootstrap) as (address, _):
        settings, prefix = KafkaSettings.read(address), f"b{uuid.uuid4().hex[:8]}-"
        asyncio.run(fill(settings, Cluster(settings, prefix, 1), file, copies))
        command = [sys.executable, "-m", "benchmarks.restart", str(file), "--here", address, prefix]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the worker did not come back: {done.stderr[-2000:]}")
        return Back(**json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restart", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="what `benchmarks.memory --keep` has left")
    parser.add_argument("--copies", type=int, default=1, help="of all rooms and what was said there; up to 10")
    parser.add_argument("--engine", action="store_true", help="an engine alone, without a broker")
    parser.add_argument("--bootstrap-servers", help="a broker that runs, instead of one of our own")
    parser.add_argument("--here", nargs=2, metavar=("BROKER", "PREFIX"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here is not None:
        print(json.dumps(asdict(asyncio.run(come_back(*given.here)))))
        return
    before = machine()
    if given.engine:
        back = engine_alone(given.file, given.copies)
    else:
        back = with_a_worker(given.file, given.copies, given.bootstrap_servers)
    print(json.dumps({"machine": before, "load after": load(), "copies": given.copies, **asdict(back)}, indent=1))


if __name__ == "__main__":
    main()
