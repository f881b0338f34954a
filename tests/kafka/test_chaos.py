"""The worker under faults: whatever dies, stalls or is cut off, every input is applied exactly once (R-RUN-4)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from tests.broker import Broker
from tests.kafka.chained import Chained
from tests.kafka.cluster import Cluster, until
from tests.kafka.exactness import assert_exact
from tests.kafka.feeding import mixture
from turngate.streams.kafka.settings import KafkaSettings

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

COUNT = 4_000
PARTITIONS = 4
#: Seconds that the engine takes over each record: the workers are slow enough to be caught in the middle.
SLOW = ("--pause", "0.0008")


class Workers:
    """Worker processes of one test, and what they said."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, *flags: str, group: str = "") -> subprocess.Popen[bytes]:
        log = self.folder / f"worker-{len(self.all)}.log"
        self.all.append(self.cluster.worker(log, *SLOW, *flags, group=group))
        return self.all[-1]

    def said(self, worker: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"worker-{self.all.index(worker)}.log").read_text()

    def running(self) -> list[subprocess.Popen[bytes]]:
        return [w for w in self.all if w.poll() is None]

    async def stop(self) -> None:
        """SIGTERM to all that live; each must end by itself, without an error."""
        ended = self.running()
        for worker in ended:
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in ended:
            assert await asyncio.to_thread(worker.wait, 20) == 0, self.said(worker)


@contextmanager
def processes(cluster: Cluster, folder: Path) -> Iterator[Workers]:
    workers = Workers(cluster, folder)
    try:
        yield workers
    finally:
        for worker in workers.running():
            worker.kill()
            worker.wait()


@pytest.fixture
async def cluster(kafka: str, unique: str) -> Cluster:
    made = Cluster(KafkaSettings.read(kafka), f"{unique}-", PARTITIONS)
    await made.make_topics()
    return made


async def progress(cluster: Cluster, least: int, seconds: float = 40) -> None:
    """Wait until so many inputs were applied."""

    async def there() -> bool:
        return sum((await applied_inputs(cluster)).values()) >= least

    await until(there, seconds)


async def applied_inputs(cluster: Cluster) -> dict[TopicPartition, int]:
    return {place: at for place, at in (await cluster.applied()).items() if place.topic != "ticks"}


async def test_killed_in_mid_stream_twice_the_next_worker_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    ends = await cluster.send(mixture(COUNT, PARTITIONS))
    with processes(cluster, tmp_path) as workers:
        for share in (0.2, 0.5):
            worker = workers.start()
            await progress(cluster, int(share * COUNT))
            worker.kill()
            worker.wait()
        workers.start()
        await cluster.until_applied(ends)
        await workers.stop()
    await assert_exact(cluster, Chained.restore, ends)


async def test_two_workers_share_and_a_rebalance_moves_partitions_between_them(
    cluster: Cluster, tmp_path: Path
) -> None:
    ends = await cluster.send(mixture(COUNT, PARTITIONS))
    with processes(cluster, tmp_path) as workers:
        first = workers.start()
        await progress(cluster, COUNT // 8)
        second = workers.start()

        async def shared() -> bool:
            return "of which kept" in workers.said(first) and "assigned: [2, 3]" in workers.said(second)

        await until(shared, 20)
        await progress(cluster, COUNT // 2)
        first.terminate()
        assert await asyncio.to_thread(first.wait, 20) == 0, workers.said(first)
        await cluster.until_applied(ends)
        await workers.stop()
        assert "is lost" not in workers.said(first) + workers.said(second)
    await assert_exact(cluster, Chained.restore, ends)


async def test_a_zombie_that_wakes_up_is_fenced_and_writes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    ends = await cluster.send(mixture(COUNT, PARTITIONS))
    with processes(cluster, tmp_path) as workers:
        zombie = workers.start()
        await progress(cluster, COUNT // 8)
        zombie.send_signal(signal.SIGSTOP)
        workers.start()
        await cluster.until_applied(ends)  # its partitions have moved, and are done
        zombie.send_signal(signal.SIGCONT)

        async def fenced() -> bool:
            return "is lost" in workers.said(zombie)

        await until(fenced, 20)
        more = await cluster.send(mixture(400, PARTITIONS, start=COUNT))
        await cluster.until_applied(more)
        await workers.stop()
    await assert_exact(cluster, Chained.restore, ends | more)


async def test_two_workers_that_both_believe_they_own_everything_stay_exact(cluster: Cluster, tmp_path: Path) -> None:
    """In two groups, each is assigned all partitions, and they fence each other: the epoch alone decides."""
    ends = await cluster.send(mixture(COUNT, PARTITIONS))
    with processes(cluster, tmp_path) as workers:
        both = [workers.start(group=f"{cluster.prefix}{n}") for n in (1, 2)]
        await cluster.until_applied(ends, 60)
        await workers.stop()
        assert all("is lost" in workers.said(worker) for worker in both)
    await assert_exact(cluster, Chained.restore, ends)


async def test_a_broker_that_is_killed_and_started_again_finds_the_worker_going_on(
    own_broker: Broker, unique: str, tmp_path: Path
) -> None:
    cluster = Cluster(KafkaSettings.read(own_broker.bootstrap), f"{unique}-", PARTITIONS)
    await cluster.make_topics()
    ends = await cluster.send(mixture(COUNT, PARTITIONS))
    with processes(cluster, tmp_path) as workers:
        worker = workers.start()
        await progress(cluster, COUNT // 4)
        own_broker.kill()
        await asyncio.to_thread(own_broker.restart)
        await cluster.until_applied(ends, 60)
        assert worker.poll() is None
        await workers.stop()
    await assert_exact(cluster, Chained.restore, ends)


@pytest.mark.parametrize("seed", [int(os.environ.get("TURNGATE_TEST_SEED", "7"))])
async def test_random_faults(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    """Kill, suspend, end and start workers at random while records keep coming.

    The seed chooses the faults; when they strike is the machine's doing.
    """
    ends: dict[TopicPartition, int] = {}
    with processes(cluster, tmp_path) as workers:
        feeding = asyncio.create_task(keep_feeding(cluster, ends))
        events = await strike(workers, random.Random(seed), seconds=18)
        feeding.cancel()
        await asyncio.wait([feeding])
        if not workers.running():
            workers.start()
        await cluster.until_applied(ends, 60)
        await workers.stop()
    assert events["kill"] + events["end"] + events["suspend"] >= 5, events
    await assert_exact(cluster, Chained.restore, ends)


async def keep_feeding(cluster: Cluster, ends: dict[TopicPartition, int]) -> None:
    """Send records, some hundreds a second, until cancelled; `ends` tells how far they have come."""
    for start in range(0, 1_000_000, 60):
        ends |= await cluster.send(mixture(60, PARTITIONS, start))
        await asyncio.sleep(0.1)


async def strike(workers: Workers, chance: random.Random, seconds: float) -> Counter[str]:
    """Faults until the time is up; then nobody is suspended any more."""
    events: Counter[str] = Counter()
    suspended: dict[subprocess.Popen[bytes], float] = {}
    signals = {"kill": signal.SIGKILL, "end": signal.SIGTERM, "suspend": signal.SIGSTOP}
    deadline = time.monotonic() + seconds
    workers.start()
    workers.start()
    while time.monotonic() < deadline:
        await asyncio.sleep(chance.uniform(0.3, 2.0))
        for worker in [w for w, end in suspended.items() if time.monotonic() > end]:
            worker.send_signal(signal.SIGCONT)
            del suspended[worker]
        live = [w for w in workers.running() if w not in suspended]
        event = chance.choices(["kill", "end", "suspend", "start"], [3, 2, 2, 5])[0]
        if event == "start" and len(live) < 3:
            workers.start()
        elif event != "start" and live:
            worker = chance.choice(live)
            worker.send_signal(signals[event])
            if event == "suspend":
                suspended[worker] = time.monotonic() + chance.choice([0.5, 2, 5])
        else:
            continue
        events[event] += 1
    for worker in suspended:
        worker.send_signal(signal.SIGCONT)
    return events
