"""Decides how the worker's contest on a broker goes and prints it: `python -m benchmarks.worker [--quick]`.

One node of Apache Kafka, its jars from Maven, or the one that `--bootstrap-servers` names. In every round each
contender gets topics of its own with the same bytes on them, and a process of its own; the next round begins with
another one. The drafts lie there before it starts, so what is measured is how fast they are worked off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.contender import Contender, Job, Result
from benchmarks.measure import Spread, add_json, cores, load, machine, publish, ratios, table, told
from benchmarks.world import Size, World
from tests.broker import Broker
from tests.kafka.cluster import Cluster
from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS, OUTPUT_TOPICS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.streams.kafka.clients import Entry, plain_producer, send_all
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC

#: Of a run's drafts, how many tell how fast it is once it runs; those before fill its caches.
MEASURED = 0.8
#: Seconds after which a run has failed.
PATIENCE = 180

CODEC = Codec()


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `drafts` of the worker; the others get more, as they are faster.

    So many that the worker runs for eight seconds and more. In two, its last commits, with nothing beside them, are a
    twentieth of the time, and commits are a third smaller than those of a worker that has run for a while.
    """

    members: int = 500
    sources: int = 8
    partitions: int = 4
    rounds: int = 3
    drafts: int = 40_000
    shadow: bool = False

    def of(self, contender: Contender) -> int:
        """How many drafts a contender is given."""
        return self.drafts * {Contender.CONSTANT: 2, Contender.BARE: 3}.get(contender, 1)


QUICK = Plan(rounds=1, drafts=6_000)


class Inputs:
    """The bytes that every contender finds on its topics, by topic and partition; one tenant for each partition."""

    def __init__(self, plan: Plan) -> None:
        self.drafts: list[list[Entry]] = []
        self.others: list[dict[str, list[Entry]]] = []
        most = max(plan.of(contender) for contender in Contender) // plan.partitions
        now = int(time.time() * 1000) - 120_000
        for number in range(plan.partitions):
            world = World(Size(plan.members), tenant=f"tenant-{number}", now=now, seed=number)
            others: dict[str, list[Entry]] = {}
            for record in world.beginning():
                entry = (record.tenant.encode(), CODEC.encode(record), ())
                others.setdefault(topic_of(type(record).__name__, {}), []).append(entry)
            self.others.append(others)
            key = world.tenant.encode()
            self.drafts.append([(key, CODEC.encode(world.draft(plan.sources)), ()) for _ in range(most)])


class Ground:
    """A broker, and what is done on it before and after a run."""

    def __init__(self, bootstrap: str, plan: Plan, inputs: Inputs, core: int | None) -> None:
        self._settings = KafkaSettings.read(bootstrap)
        self._plan = plan
        self._inputs = inputs
        self._core = core

    def run(self, contender: Contender) -> Result:
        """One run of a contender. Raises `RuntimeError` where it fails or has not answered every draft."""
        cluster = Cluster(self._settings, f"b{uuid.uuid4().hex[:8]}-", self._plan.partitions)
        drafts = self._plan.of(contender)
        asyncio.run(self._prepare(cluster, drafts // self._plan.partitions))
        job = Job(
            contender=contender,
            bootstrap=self._settings.bootstrap_servers,
            prefix=cluster.prefix,
            partitions=self._plan.partitions,
            members=self._plan.members,
            sources=self._plan.sources,
            drafts=drafts,
            warm=int(drafts * (1 - MEASURED)),
            core=self._core,
        )
        result = _compete(job)
        asyncio.run(self._finish(cluster, contender, drafts))
        return result

    async def _prepare(self, cluster: Cluster, drafts: int) -> None:
        await cluster.make_topics()
        producer = plain_producer(self._settings)
        await producer.start()
        try:
            for number, others in enumerate(self._inputs.others):
                for topic, entries in {**others, DRAFTS: self._inputs.drafts[number][:drafts]}.items():
                    await asyncio.gather(*await send_all(producer, cluster.prefix + topic, number, entries))
        finally:
            await producer.stop()

    async def _finish(self, cluster: Cluster, contender: Contender, drafts: int) -> None:
        if contender in (Contender.WORKER, Contender.SHADOW):
            read = await cluster.read("turn-verdicts")
            decided = [CODEC.decode(m.value) for messages in read.values() for m in messages]
            delivered = sum(isinstance(r, TurnDecided) and r.verdict is Verdict.DELIVER for r in decided)
            if len(decided) != drafts or not 0.5 < delivered / drafts < 0.95:
                raise RuntimeError(f"of {drafts} drafts {len(decided)} were decided and {delivered} delivered")
        admin = AIOKafkaAdminClient(**self._settings.client_options())
        await admin.start()
        try:
            await admin.delete_topics([cluster.prefix + t for t in (*INPUT_TOPICS, *OUTPUT_TOPICS, STATE_TOPIC)])
        finally:
            await admin.close()


def _compete(job: Job) -> Result:
    command = [sys.executable, "-m", "benchmarks.contender", json.dumps(asdict(job))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{job.contender} failed: {done.stderr[-2000:]}")
    return Result(**json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def broker(bootstrap: str | None) -> Iterator[tuple[str, int | None]]:
    """A broker's address, and the core that is left for the contenders, where the broker can have one of its own."""
    if bootstrap is not None:
        yield bootstrap, None
        return
    core = None
    if cores() > 1:
        first, *_, core = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {first})  # the broker inherits it
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "kafka") as node:
        yield node.bootstrap, core


def contest(plan: Plan, bootstrap: str | None) -> dict[Contender, list[Result]]:
    """Every contender's results, one for each round."""
    results: dict[Contender, list[Result]] = {c: [] for c in Contender if c is not Contender.SHADOW or plan.shadow}
    everybody = list(results)
    with broker(bootstrap) as (address, core):
        ground = Ground(address, plan, Inputs(plan), core)
        for number in range(plan.rounds):
            for contender in (*everybody[number % len(everybody) :], *everybody[: number % len(everybody)]):
                result = ground.run(contender)
                results[contender].append(result)
                print(
                    f"round {number + 1}: {contender} {result.rate:,.0f} drafts/s, load {load()}",
                    file=sys.stderr,
                    flush=True,
                )
    return results


def report(results: dict[Contender, list[Result]]) -> str:
    """The rates, and the worker's as ratios to the others', round by round."""
    wall = {c: Spread(tuple(r.rate for r in rs)) for c, rs in results.items()}
    cpu = {c: Spread(tuple(r.cpu_rate for r in rs)) for c, rs in results.items()}
    rows = [
        (
            contender,
            wall[contender].text(),
            f"{1e6 / cpu[contender].median:,.0f}",
            Spread(tuple(r.share for r in results[contender])).text(2),
            ratios(wall[Contender.WORKER], wall[contender]).text(2),
            ratios(cpu[Contender.WORKER], cpu[contender]).text(2),
            f"{max(r.peak_rss for r in results[contender]) / 1e6:,.0f}",
            f"{Spread(tuple(r.drafts / max(1, r.commits) for r in results[contender])).median:,.0f}",
        )
        for contender in results
    ]
    head = (
        "contender",
        "drafts/s",
        "µs CPU a draft",
        "share of a core",
        "worker : it, by time",
        "worker : it, by CPU",
        "peak RSS, MB",
        "drafts a commit",
    )
    return table(head, rows)


def run(plan: Plan, bootstrap: str | None) -> tuple[str, dict[str, object]]:
    """The report, and all of it as plain values."""
    before = machine()
    results = contest(plan, bootstrap)
    text = "\n".join(
        [
            told(before),
            "",
            f"Rooms of {plan.members:,}, drafts of {plan.sources} sources, {plan.partitions} partitions,"
            f" {plan.rounds} rounds:",
            "",
            report(results),
        ]
    )
    return text, {
        "machine": before,
        "plan": asdict(plan),
        "results": {contender.value: [asdict(r) for r in rs] for contender, rs in results.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print."""
    # a topic has no leader for a moment after it was made; sending to it is tried again, and every try is a line
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: some 40 seconds")
    parser.add_argument("--members", type=int, help="of a room, from 5 on")
    parser.add_argument("--sources", type=int, help="of a draft, up to 100")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--drafts", type=int, help="that the worker is given; the others get more")
    parser.add_argument("--shadow", action="store_true", help="the worker with another policy beside, too")
    parser.add_argument("--bootstrap-servers", help="a broker that runs, instead of one of our own")
    add_json(parser)
    given = parser.parse_args(arguments)
    base = QUICK if given.quick else Plan()
    plan = Plan(
        members=given.members or base.members,
        sources=given.sources or base.sources,
        partitions=given.partitions or base.partitions,
        rounds=given.rounds or base.rounds,
        drafts=given.drafts or base.drafts,
        shadow=given.shadow,
    )
    if plan.drafts % plan.partitions or plan.members < 5 or plan.sources > 100:
        parser.error("rooms have 5 members or more, drafts up to 100 sources, and partitions get equal parts of them")
    text, values = run(plan, given.bootstrap_servers)
    publish(text, values, given.json)


if __name__ == "__main__":
    main()
