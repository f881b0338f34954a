"""Decides how each contender reads the drafts of a broker and writes what comes of them; one process for each run.

`python -m benchmarks.contender JOB`, JOB being a `Job` as JSON; prints a `Result` as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.measure import cpu_seconds, peak_rss
from benchmarks.sample import Constant, Sample, sample
from benchmarks.world import POLICY, Size, World
from turngate.processors.engine import Engine
from turngate.processors.shadow import Shadowing
from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.streams.kafka.clients import plain_consumer, transactional_producer
from turngate.streams.kafka.intake import SLICE
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.owner import Writer
from turngate.streams.kafka.partition import INTERVAL, Restore
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.worker import COLLECTING
from turngate.streams.log import Commit

#: Records of one fetch at most, of the contenders that are not the worker.
POLL_RECORDS = 1_000


class Contender(StrEnum):
    """Who reads the drafts."""

    #: The worker as it is.
    WORKER = "worker"
    #: The worker, every decision replaced by one of the same size.
    CONSTANT = "constant"
    #: The worker with `--shadow`: every decision is also tried under a policy, under which none would be another.
    SHADOW = "shadow"
    #: aiokafka, and nothing else: the same bytes in the same transactions, made beforehand.
    BARE = "bare"
    #: An agent of stock Faust that sends every draft on as it is: at least once, no transactions.
    FAUST = "faust"


@dataclass(frozen=True, slots=True)
class Job:
    """One run. The first `warm` of all `drafts` are not measured. `core`: the only one to compute on, if any."""

    contender: Contender
    bootstrap: str
    prefix: str
    partitions: int
    members: int
    sources: int
    drafts: int
    warm: int
    core: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to, for the drafts that were measured. `cpu`: of the whole process, in seconds."""

    drafts: int
    seconds: float
    cpu: float
    commits: int
    peak_rss: int

    @property
    def rate(self) -> float:
        """Drafts in a second."""
        return self.drafts / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Drafts in a second of this process's own computing: what a core of its own would allow."""
        return self.drafts / self.cpu

    @property
    def share(self) -> float:
        """How much of a core the process used."""
        return self.cpu / self.seconds


@dataclass(slots=True)
class Progress:
    """What was done when. The measured part begins when `warm` drafts have been acknowledged.

    Drafts that are already decided by then, and only wait to be written, are not counted as done in it.
    """

    warm: int
    commits: int = 0
    _notes: list[tuple[int, float, float]] = field(default_factory=list)

    def note(self, done: int, begun: int) -> None:
        """So many drafts have been acknowledged by now, and of so many the work has begun."""
        if done >= self.warm:
            self.commits += bool(self._notes)
            self._notes[1:] = [(done if self._notes else begun, time.perf_counter(), cpu_seconds())]

    def result(self) -> Result:
        """From the first note to the last. Raises `RuntimeError` where there is nothing between them."""
        if len(self._notes) < 2 or self._notes[1][0] == self._notes[0][0]:
            raise RuntimeError("there were too few drafts to measure anything")
        (begun, began, cpu), (done, ended, all_cpu) = self._notes
        return Result(done - begun, ended - began, all_cpu - cpu, self.commits, peak_rss())


async def carried(job: Job, restore: Restore) -> Result:
    """By Turngate's worker, with this engine. Raises `RuntimeError` where a barrier was late: such drafts cost less."""
    gc.set_threshold(*COLLECTING)  # as `run_worker` does
    progress = Progress(job.warm)
    options = WorkerOptions(names=Names(job.prefix, job.prefix), report_every=3_600)
    async with Worker(KafkaSettings.read(job.bootstrap), Codec(), options, restore) as worker:
        failed = asyncio.create_task(worker.failed())
        done = 0
        while done < job.drafts:
            news = asyncio.create_task(worker.runtime.wait_changed())
            await asyncio.wait({news, failed}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                await failed
            before, done = done, sum(positions[DRAFTS] for positions in worker.committed().values())
            if done > before:
                owned = worker.runtime.owned.values()
                progress.note(done, sum(one.partition.fold.positions[DRAFTS] for one in owned))
        late = sum(owned.partition.late for owned in worker.runtime.owned.values())
        failed.cancel()
    if late:
        raise RuntimeError(f"{late} stretches had late barriers")
    return progress.result()


class Loop:
    """The bare loop. Commits are paced as the worker's, and written by the same function."""

    def __init__(self, job: Job, sample: Sample) -> None:
        self._job = job
        self._sample = sample
        self._settings = KafkaSettings.read(job.bootstrap)
        self._progress = Progress(job.warm)
        self._writers: dict[int, Writer] = {}
        self._writing: dict[int, asyncio.Task[None]] = {}
        self._began = dict.fromkeys(range(job.partitions), 0.0)
        self._waiting = dict.fromkeys(range(job.partitions), 0)
        self._positions: dict[int, dict[str, int]] = {p: dict.fromkeys(INPUT_TOPICS, 0) for p in range(job.partitions)}
        self._done = self._answered = 0

    async def run(self) -> Result:
        """Read, answer, commit, until all drafts are done."""
        for number in range(self._job.partitions):
            producer = transactional_producer(self._settings, f"{self._job.prefix}-{number}")
            await producer.start()
            self._writers[number] = Writer(producer, number, self._job.prefix)
        consumer = plain_consumer(self._settings, committed=True)
        await consumer.start()
        places = [TopicPartition(self._job.prefix + t, p) for t in INPUT_TOPICS for p in range(self._job.partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        while self._done < self._job.drafts:
            await self._read(consumer)
            for number in self._waiting:
                await self._commit(number)
        await consumer.stop()
        for writer in self._writers.values():
            await writer.stop()
        return self._progress.result()

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        room = [place for place in consumer.assignment() if self._waiting[place.partition] < POLL_RECORDS]
        if not room:
            await asyncio.wait(self._writing.values(), return_when=asyncio.FIRST_COMPLETED)
            return
        wait_ms = 1 if any(self._waiting.values()) else 50
        for place, records in (await consumer.getmany(*room, timeout_ms=wait_ms, max_records=POLL_RECORDS)).items():
            topic = place.topic.removeprefix(self._job.prefix)
            self._positions[place.partition][topic] = records[-1].offset + 1
            if topic == DRAFTS:
                self._waiting[place.partition] += len(records)

    async def _commit(self, number: int) -> None:
        """Begin the next commit of a partition, if there is something for it and the one before is written."""
        writing = self._writing.get(number)
        if writing is not None and writing.done():
            await self._writing.pop(number)
            writing = None
        count = min(self._waiting[number], SLICE)
        due = count == SLICE or time.monotonic() - self._began[number] >= INTERVAL
        if writing is not None or count == 0 or not due:
            return
        self._began[number] = time.monotonic()
        self._waiting[number] -= count
        self._writing[number] = asyncio.create_task(self._write(number, count))

    async def _write(self, number: int, count: int) -> None:
        decided = self._sample.decided
        picked = [decided[(self._answered + i) % len(decided)] for i in range(count)]
        self._answered += count
        outputs = [out for one in picked for out in one.outputs]
        entries = [*self._sample.once, *(entry for one in picked for entry in one.entries)]
        commit = Commit([*outputs, self._sample.applied], entries, dict(self._positions[number]), Engine.version)
        await self._writers[number].write(commit)
        self._done += count
        self._progress.note(self._done, self._answered)


async def forwarded(job: Job) -> Result:
    """By an agent of stock Faust."""
    app = faust.App(
        job.prefix,
        broker=f"kafka://{job.bootstrap}",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_wait_empty=False,
        datadir=tempfile.mkdtemp(),
        store="memory://",
        broker_max_poll_records=POLL_RECORDS,
        stream_recovery_delay=0,
    )
    source, sink = (
        app.topic(name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
        for name in (job.prefix + DRAFTS, job.prefix + "outbound")
    )
    progress, finished = Progress(job.warm), asyncio.Event()

    @app.agent(source)
    async def forward(stream: faust.StreamT[bytes]) -> None:
        done = 0
        async for event in stream.events():
            await sink.send(key=event.key, value=event.value)
            done += 1
            if done == job.warm:
                progress.note(done, done)
            if done == job.drafts:
                await app.producer.flush()
                progress.note(done, done)
                finished.set()

    started = asyncio.create_task(app.start())
    await finished.wait()
    await app.stop()
    await started
    return progress.result()


def compete(job: Job) -> Result:
    """Run a job in this process."""
    if job.core is not None:
        os.sched_setaffinity(0, {job.core})
    match job.contender:
        case Contender.WORKER:
            return asyncio.run(carried(job, Engine.restore))
        case Contender.SHADOW:
            return asyncio.run(carried(job, partial(Shadowing.under, POLICY, None)))
        case Contender.CONSTANT:
            made = _sample(job)
            return asyncio.run(carried(job, lambda entries, version: Constant(made)))
        case Contender.BARE:
            return asyncio.run(Loop(job, _sample(job)).run())
        case Contender.FAUST:
            return asyncio.run(forwarded(job))


def _sample(job: Job) -> Sample:
    now = int(time.time() * 1000)
    return sample(World(Size(job.members), tenant="tenant-0", now=now, seed=0), job.sources)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    given = json.loads(sys.argv[1])
    print(json.dumps(asdict(compete(Job(**{**given, "contender": Contender(given["contender"])})))))
