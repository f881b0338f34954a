"""What live tests do to a broker: topics under a prefix of their own, inputs, workers as processes, reading back."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from turngate.schemas.catalog import APPLIED
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import StretchApplied
from turngate.streams.kafka.clients import plain_producer
from turngate.streams.kafka.driver import make_topics
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import Message

ROOT = Path(__file__).parents[2]
CODEC = Codec()


@dataclass(frozen=True, slots=True)
class Sent:
    """A record on its way to one partition of a topic. `at` in milliseconds, None: the broker's own time."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    at: int | None = None


@dataclass(slots=True)
class Cluster:
    """One set of the contract's topics on a broker, and the workers started on it."""

    settings: KafkaSettings
    prefix: str
    partitions: int
    create_time: bool = False

    async def make_topics(self) -> None:
        await make_topics(self.settings, self.prefix, self.partitions, create_time=self.create_time)

    async def send(self, records: Iterable[Sent], *, one_by_one: bool = False) -> dict[TopicPartition, int]:
        """Write records; the position after the last one of each partition, once all are acknowledged.

        `one_by_one`: each is acknowledged before the next is sent.
        """
        producer = plain_producer(self.settings)
        await producer.start()
        try:
            send = producer.send_and_wait if one_by_one else producer.send
            sent = [
                await send(self.prefix + r.topic, r.value, r.key, partition=r.partition, timestamp_ms=r.at)
                for r in records
            ]
            ends: dict[TopicPartition, int] = {}
            for done in sent if one_by_one else await asyncio.gather(*sent):
                place = TopicPartition(done.topic.removeprefix(self.prefix), done.partition)
                ends[place] = max(ends.get(place, 0), done.offset + 1)
            return ends
        finally:
            await producer.stop()

    async def read(self, *topics: str) -> dict[TopicPartition, list[Message]]:
        """Everything committed on these topics now."""
        consumer = AIOKafkaConsumer(
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **self.settings.client_options(),
        )
        await consumer.start()
        try:
            places = [TopicPartition(self.prefix + t, p) for t in topics for p in range(self.partitions)]
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            read: dict[TopicPartition, list[Message]] = {
                TopicPartition(t, p): [] for t in topics for p in range(self.partitions)
            }
            behind = {place for place in places if ends[place] > 0}
            while behind:
                for place, records in (await consumer.getmany(timeout_ms=200)).items():
                    topic = place.topic.removeprefix(self.prefix)
                    read[TopicPartition(topic, place.partition)] += [
                        Message(topic, r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
                        for r in records
                    ]
                behind = {place for place in behind if await consumer.position(place) < ends[place]}
            return read
        finally:
            await consumer.stop()

    async def stretches(self) -> dict[int, list[StretchApplied]]:
        """What was applied, by partition, in order."""
        found: dict[int, list[StretchApplied]] = {}
        for place, messages in (await self.read(APPLIED)).items():
            records = [CODEC.decode(m.value) for m in messages]
            found[place.partition] = [r for r in records if isinstance(r, StretchApplied)]
        return found

    async def applied(self) -> dict[TopicPartition, int]:
        """The position up to which each input was applied."""
        at: dict[TopicPartition, int] = {}
        for number, stretches in (await self.stretches()).items():
            for stretch in stretches:
                at |= {TopicPartition(p.topic, number): p.offset for p in stretch.to}
        return at

    async def until_applied(self, ends: dict[TopicPartition, int], seconds: float = 40) -> None:
        """Wait until everything before these positions was applied."""

        async def done() -> bool:
            at = await self.applied()
            return all(at.get(place, 0) >= end for place, end in ends.items())

        await until(done, seconds)

    def worker(self, log: Path, *flags: str, group: str = "") -> subprocess.Popen[bytes]:
        """A worker as a process of its own, with the engine of the live tests (see worker_process.py)."""
        command = [sys.executable, "-m", "tests.kafka.worker_process", self.settings.bootstrap_servers, self.prefix]
        environment = os.environ | ({"TURNGATE_TEST_TIME": "1"} if self.create_time else {})
        with log.open("ab") as out:
            return subprocess.Popen(
                [*command, "--group", group, *flags], stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=environment
            )


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 30) -> None:
    """Poll a condition until it holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        await asyncio.sleep(0.1)
