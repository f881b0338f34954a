"""The store beside a broker: whoever is killed, every committed record is in it once, and nothing that was aborted."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from sqlalchemy import select

from tests.kafka.cluster import ROOT, Cluster, until
from tests.sinks.store.stores import Content, content
from tests.streams.history import history
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.authority import STORED
from turngate.schemas.codec import Codec
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.sqlite import SqliteStore
from turngate.sinks.store.tables import POSITIONS
from turngate.streams.kafka.clients import transactional_producer
from turngate.streams.kafka.records import BrokerRecords
from turngate.streams.kafka.settings import KafkaSettings, PostgresSettings
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Message

pytestmark = pytest.mark.kafka

CODEC = Codec()
PARTITIONS = 2


@pytest.fixture
def messages(tmp_path: Path) -> list[Message]:
    """What drafts, memories, grants and membership changes came to, as on a broker's topics."""
    with LocalLog(tmp_path / "log") as log:
        log.append_many(Append(i.topic, i.key, i.value, i.timestamp) for i in history(300))
        LocalRuntime(log, CODEC, keys=TEST_KEYS).step()
        return sorted((m for topic in STORED for m in log.scan(topic)), key=lambda m: m.timestamp)


@contextmanager
def filling(out: Path, *where: str) -> Iterator[subprocess.Popen[bytes]]:
    with out.open("ab") as said:
        command = [sys.executable, "-m", "tests.sinks.store.store_process", *where]
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def send(producer: AIOKafkaProducer, prefix: str, messages: Sequence[Message], partition: int) -> None:
    """Records in one transaction, as a worker writes them, and some in one that it did not live to commit."""
    for some, end in ((messages, producer.commit_transaction), (messages[:20], producer.abort_transaction)):
        await producer.begin_transaction()
        for m in some:
            await producer.send(prefix + m.topic, m.value, m.key, partition, m.timestamp)
        await end()


async def test_killed_again_and_again_everything_is_there_once(
    kafka: str, postgres: str, unique: str, messages: list[Message], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGATE_TEST_TIME", "1")
    cluster = Cluster(KafkaSettings.read(kafka, environment={}), f"{unique}-", PARTITIONS, create_time=True)
    await cluster.make_topics()
    engine = postgres_engine(PostgresSettings(postgres), unique)
    where, said = (kafka, cluster.prefix, postgres, unique), tmp_path / "said"
    chance = random.Random(7)
    async with AsyncExitStack() as stack:
        producers = [transactional_producer(cluster.settings, f"{unique}{n}") for n in range(PARTITIONS)]
        for producer in producers:
            await producer.start()
            stack.push_async_callback(producer.stop)
        running = [stack.enter_context(filling(said, *where)) for _ in range(2)]
        size = len(messages) // 6
        for number, start in enumerate(range(0, len(messages), size)):
            for partition, producer in enumerate(producers):
                await send(producer, cluster.prefix, messages[start : start + size], partition)
            if number % 2:
                before = _read(unique, postgres)

                async def moved(before: dict[tuple[str, int], int] = before) -> bool:
                    return _read(unique, postgres) != before or not await _behind(cluster, before)

                await until(moved)
                victim = chance.randrange(2)
                running[victim].kill()
                running[victim] = stack.enter_context(filling(said, *where))

        async def all_read() -> bool:
            return not await _behind(cluster, _read(unique, postgres))

        await until(all_read, 60)
    assert "Traceback" not in said.read_text()

    def at_once() -> Content:
        with BrokerRecords(cluster.settings, cluster.prefix) as records, SqliteStore(tmp_path / "s", CODEC) as store:
            store.fill(records)
            return content(store.engine)

    assert content(engine) == await asyncio.to_thread(at_once)
    assert len(content(engine)["decisions"]) == PARTITIONS * 300


def _read(schema: str, postgres: str) -> dict[tuple[str, int], int]:
    """How far the store has read."""
    engine = postgres_engine(PostgresSettings(postgres), schema)
    with engine.connect() as connection:
        if connection.exec_driver_sql("SELECT to_regclass('positions')").scalar() is None:
            return {}
        found = connection.execute(select(POSITIONS.c.topic, POSITIONS.c.partition, POSITIONS.c.next))
        return {(topic, partition): at for topic, partition, at in found}


async def _behind(cluster: Cluster, at: dict[tuple[str, int], int]) -> bool:
    """Whether a committed record lies beyond."""
    read = await cluster.read(*STORED)
    ends = {(place.topic, place.partition): messages[-1].offset for place, messages in read.items() if messages}
    return any(at.get(place, 0) <= last for place, last in ends.items())
