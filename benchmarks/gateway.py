"""Decides how the gateway's contest goes and prints it: `python -m benchmarks.gateway [--quick]`.

The same drafts are asked for over HTTP, by so many connections that each ask one thing at a time: of a server that
answers a constant, of `turngate up` on an embedded log, and of `turngate gateway` before a broker with a worker behind
it. All are processes as they are installed; whoever asks is this one. Every round begins with another of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from benchmarks.measure import Spread, add_json, load, machine, percentile, publish, ratios, table, told
from benchmarks.world import Size, World
from tests.broker import Broker
from tests.jvm import free_port
from turngate.schemas.catalog import topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.streams.kafka.feed import KafkaFeed
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog

TURNGATE = Path(sys.executable).with_name("turngate")
#: Of a run's drafts, how many fill its caches.
WARM = 0.2
#: Seconds after which a run has failed.
PATIENCE = 180


class Contender(StrEnum):
    """Who is asked."""

    CONSTANT = "the same server answering a constant"
    UP = "`turngate up`"
    KAFKA = "`turngate gateway` on Kafka"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    members: int = 500
    sources: int = 8
    connections: tuple[int, ...] = (1, 32)
    drafts: int = 3_000
    rounds: int = 3
    contenders: tuple[Contender, ...] = tuple(Contender)


@dataclass(frozen=True, slots=True)
class Result:
    """One run: seconds of each draft that was measured, and CPU seconds of each process that answered, in all."""

    seconds: float
    latencies: tuple[float, ...]
    cpu: dict[str, float]

    @property
    def rate(self) -> float:
        """Drafts answered in a second."""
        return len(self.latencies) / self.seconds

    def cpu_of(self, process: str) -> float:
        """CPU seconds of a process for one draft."""
        return self.cpu.get(process, 0.0) / len(self.latencies)


class Stage:
    """A world's records and drafts, a token, and the servers that are asked."""

    def __init__(self, plan: Plan, folder: Path, bootstrap: str | None) -> None:
        self._plan = plan
        self._folder = folder
        self._bootstrap = bootstrap
        self._world = World(Size(plan.members), now=int(time.time() * 1000) - 60_000)
        self._records = list(self._world.beginning())
        self._tokens = folder / "tokens.json"
        who = ("--tenant", self._world.tenant, "--agent", "mesh", "--scope", "agent", "--tokens-file", self._tokens)
        made = subprocess.run([TURNGATE, "token", "create", *who], capture_output=True, text=True, check=True)
        self._token = made.stdout.strip()
        if bootstrap is not None:
            topics = ("topics", "create", "--bootstrap-servers", bootstrap, "--partitions", "1")
            subprocess.run([TURNGATE, *topics], check=True, capture_output=True)
            asyncio.run(_begin_on_kafka(bootstrap, self._records))

    def run(self, contender: Contender, connections: int) -> Result:
        """Start a contender, ask it for new drafts, and end it. Raises `RuntimeError` where it answers wrongly."""
        bodies = [_body(self._world.draft(self._plan.sources)) for _ in range(self._plan.drafts)]
        with self._served(contender) as (url, processes):
            return asyncio.run(self._ask(url, bodies, connections, processes, contender is not Contender.CONSTANT))

    @contextmanager
    def _served(self, contender: Contender) -> Iterator[tuple[str, dict[str, psutil.Process]]]:
        port = free_port()
        place = ("--tokens-file", self._tokens, "--rate", 1_000_000)
        with ExitStack() as stack:
            if contender is Contender.CONSTANT:
                commands = {"gateway": [sys.executable, "-m", "benchmarks.answering", port]}
            elif contender is Contender.UP:
                log = self._folder / f"log-{time.monotonic_ns()}"
                asyncio.run(_begin(log, self._records))
                commands = {"gateway": [TURNGATE, "up", "--gateway", f"127.0.0.1:{port}", *place, "--log", log]}
            else:
                broker = ("--bootstrap-servers", str(self._bootstrap))
                commands = {
                    "worker": [TURNGATE, "worker", *broker, "--instance", "bench"],
                    "gateway": [TURNGATE, "gateway", "--listen", f"127.0.0.1:{port}", *place, *broker],
                }
            processes = {}
            for name, command in commands.items():
                out = stack.enter_context((self._folder / f"{name}.err").open("ab"))
                running = subprocess.Popen([str(word) for word in command], stderr=out)
                stack.callback(_end, running)
                processes[name] = psutil.Process(running.pid)
            _until_listening(port)
            yield f"http://127.0.0.1:{port}/v1/drafts", processes

    async def _ask(
        self, url: str, bodies: list[bytes], connections: int, processes: dict[str, psutil.Process], real: bool
    ) -> Result:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        latencies: list[float] = []
        verdicts: list[str] = []
        waiting = iter(bodies)

        async def one(session: aiohttp.ClientSession) -> None:
            for body in waiting:
                began = time.perf_counter()
                async with session.post(url, data=body, headers=headers) as answer:
                    text = await answer.read()
                latencies.append(time.perf_counter() - began)
                verdicts.append(json.loads(text)["verdict"] if real else str(answer.status))
                if len(latencies) == warm:
                    begun.append((time.perf_counter(), _cpu(processes)))

        warm = int(len(bodies) * WARM)
        begun: list[tuple[float, dict[str, float]]] = []
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
            await asyncio.gather(*(one(session) for _ in range(connections)))
        ended, after = time.perf_counter(), _cpu(processes)
        delivered = verdicts.count("deliver") / len(verdicts)
        if real and not 0.5 < delivered < 0.95:
            raise RuntimeError(f"{delivered:.0%} of the drafts were delivered")
        start, before = begun[0]
        return Result(ended - start, tuple(latencies[warm:]), {name: after[name] - before[name] for name in after})


async def _begin_on_kafka(bootstrap: str, records: Sequence[Record]) -> None:
    async with KafkaFeed(KafkaSettings.read(bootstrap), Codec()) as feed:
        for topic in ("policies", "membership-refreshes", "observed-messages"):
            await feed.append([r for r in records if topic_of(type(r).__name__, {}) == topic])


async def _begin(path: Path, records: Sequence[Record]) -> None:
    with LocalLog(path) as log:
        await LocalFeed(log).append(records)


def _body(draft: Record) -> bytes:
    return json.dumps(draft.model_dump(mode="json", exclude={"tenant", "agent"})).encode()


def _cpu(processes: dict[str, psutil.Process]) -> dict[str, float]:
    times = {name: process.cpu_times() for name, process in processes.items()}
    return {name: used.user + used.system for name, used in times.items()}


def _until_listening(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not any(c.laddr.port == port and c.status == psutil.CONN_LISTEN for c in psutil.net_connections("tcp4")):
        if time.monotonic() > deadline:
            raise RuntimeError("a server did not begin to listen")
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


def contest(plan: Plan, bootstrap: str | None) -> dict[int, dict[Contender, list[Result]]]:
    """Every contender's results by the number of connections, one for each round."""
    results: dict[int, dict[Contender, list[Result]]] = {n: {c: [] for c in plan.contenders} for n in plan.connections}
    everybody = plan.contenders
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if bootstrap is None and Contender.KAFKA in plan.contenders:
            bootstrap = stack.enter_context(Broker(folder / "kafka")).bootstrap
        stage = Stage(plan, folder, bootstrap)
        for number in range(plan.rounds):
            for connections in plan.connections:
                for contender in (*everybody[number % len(everybody) :], *everybody[: number % len(everybody)]):
                    result = stage.run(contender, connections)
                    results[connections][contender].append(result)
                    said = f"round {number + 1}: {contender}, {connections}: {result.rate:,.0f} drafts/s, load {load()}"
                    print(said, file=sys.stderr, flush=True)
    return results


def report(results: dict[int, dict[Contender, list[Result]]]) -> str:
    """The rates and delays, and each as a ratio to the constant and to Kafka's, round by round."""
    rows = []
    for connections, by in results.items():
        rate = {c: Spread(tuple(r.rate for r in rs)) for c, rs in by.items()}
        for contender, found in by.items():
            delay = [Spread(tuple(percentile(r.latencies, share) * 1e3 for r in found)) for share in (0.5, 0.99)]
            cpu = [Spread(tuple(r.cpu_of(p) * 1e6 for r in found)).median for p in ("gateway", "worker")]
            rows.append(
                (
                    f"{contender}, {connections} at a time",
                    rate[contender].text(),
                    delay[0].text(1),
                    delay[1].text(1),
                    " + ".join(f"{c:,.0f}" for c in cpu if c),
                    ratios(rate[contender], rate[Contender.CONSTANT]).text(2),
                    ratios(rate[contender], rate[Contender.KAFKA]).text(2) if Contender.KAFKA in rate else "",
                )
            )
    head = ("contender", "drafts/s", "p50, ms", "p99, ms", "µs CPU a draft", "it : the constant", "it : on Kafka")
    return table(head, rows)


def run(plan: Plan, bootstrap: str | None) -> tuple[str, dict[str, Any]]:
    """The report, and all of it as plain values."""
    before = machine()
    results = contest(plan, bootstrap)
    text = "\n".join(
        [
            told(before),
            "",
            f"Rooms of {plan.members:,}, drafts of {plan.sources} sources, {plan.rounds} rounds of {plan.drafts:,}:",
            "",
            report(results),
        ]
    )
    values = {n: {c.name: [asdict(r) for r in rs] for c, rs in by.items()} for n, by in results.items()}
    return text, {"machine": before, "plan": asdict(plan), "results": values}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--members", type=int, help="of a room, from 5 on")
    parser.add_argument("--sources", type=int, help="of a draft, up to 100")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--drafts", type=int, help="in each run")
    parser.add_argument("--embedded", action="store_true", help="without a broker")
    parser.add_argument("--bootstrap-servers", help="a broker without our topics, instead of one of our own")
    add_json(parser)
    given = parser.parse_args(arguments)
    base = Plan(rounds=1, drafts=400) if given.quick else Plan()
    said = {name: getattr(given, name) for name in ("members", "sources", "rounds", "drafts")}
    if given.embedded:
        base = replace(base, contenders=(Contender.CONSTANT, Contender.UP))
    text, values = run(replace(base, **{k: v for k, v in said.items() if v is not None}), given.bootstrap_servers)
    publish(text, values, given.json)


if __name__ == "__main__":
    main()
