"""The store beside a broker: whoever is killed, every committed record is in it once, and nothing that was aborted."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy import select

from tests.broker import quiet
from tests.kafka.cluster import ROOT, Cluster, Sent, until
from tests.sinks.records import authorized
from tests.sinks.store.stores import Content, content
from tests.streams.history import history
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.authority import STORED
from turngate.schemas.codec import Codec
from turngate.sinks.delivery import now_ms
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.service import StoreService
from turngate.sinks.store.sqlite import SqliteStore
from turngate.sinks.store.tables import AUTHORIZATIONS, POSITIONS
from turngate.streams.kafka.clients import transactional_producer
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.records import BrokerRecords
from turngate.streams.kafka.settings import KafkaSettings, PostgresSettings
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import LogError, Message

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

    assert content(engine) == await asyncio.to_thread(at_once, cluster, tmp_path)
    assert len(content(engine)["decisions"]) == PARTITIONS * 300


def at_once(cluster: Cluster, folder: Path) -> Content:
    """What a file holds that is filled from the same topics, by one process, without any haste."""
    with BrokerRecords(cluster.settings, cluster.prefix) as records, SqliteStore(folder / "s", CODEC) as store:
        store.fill(records)
        return content(store.engine)


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


@asynccontextmanager
async def serving(cluster: Cluster, dsn: str, schema: str, group: str = "store") -> AsyncIterator[asyncio.Task[None]]:
    """A store that is filled in this process, ended without warning."""
    async with PostgresStore(PostgresSettings(dsn), CODEC, schema) as store:
        names = Names(prefix=cluster.prefix, group=f"{cluster.prefix}{group}")
        service = StoreService(cluster.settings, store, now_ms, names, session=2)
        running = asyncio.create_task(service.run(asyncio.Event()))
        try:
            yield running
        finally:
            running.cancel()
            await asyncio.wait([running])


@pytest.fixture
async def cluster(kafka: str, unique: str) -> Cluster:
    made = Cluster(KafkaSettings.read(kafka, environment={}), f"{unique}-", 1)
    await made.make_topics()
    return made


def let_out(*turns: str) -> list[Sent]:
    return [Sent("outbound", 0, b"acme", CODEC.encode(authorized(turn=turn))) for turn in turns]


def turns(dsn: str, schema: str) -> list[str]:
    with postgres_engine(PostgresSettings(dsn), schema).connect() as connection:
        if connection.exec_driver_sql("SELECT to_regclass('authorizations')").scalar() is None:
            return []
        return sorted(connection.execute(select(AUTHORIZATIONS.c.turn)).scalars())


async def test_while_the_database_lets_nobody_in_it_waits_and_then_has_everything_once(
    cluster: Cluster, postgres: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    dsn, named = make_conninfo(postgres, dbname=unique), sql.Identifier(unique)
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(named))
        async with serving(cluster, dsn, unique) as running:
            await cluster.send(let_out("t1"))

            async def first() -> bool:
                return turns(dsn, unique) == ["t1"]

            await until(first)
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(named))
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (unique,))
            await cluster.send(let_out("t2", "t3"))

            async def waits() -> bool:
                return any("asked again in" in line for line in caplog.messages)

            await until(waits)
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(named))

            async def all_there() -> bool:
                return turns(dsn, unique) == ["t1", "t2", "t3"]

            await until(all_there)
            assert not running.done()


async def test_what_was_gone_before_it_was_read_is_counted_and_said(
    cluster: Cluster, postgres: str, unique: str
) -> None:
    async def there(*expected: str) -> None:
        async def all_there() -> bool:
            return turns(postgres, unique) == list(expected)

        async with serving(cluster, postgres, unique):
            await until(all_there)

    await cluster.send(let_out("t1", "t2"))
    await there("t1", "t2")
    await cluster.send(let_out("t3", "t4", "t5"))
    admin = AdminClient(quiet(cluster.settings.bootstrap_servers))
    topic = f"{cluster.prefix}outbound"
    for gone in admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        gone.result(30)
    await there("t1", "t2", "t5")
    with postgres_engine(PostgresSettings(postgres), unique).connect() as connection:
        missed = select(POSITIONS.c.missed).where(POSITIONS.c.topic == "outbound")
        assert connection.execute(missed).scalar() == 2


async def test_another_clusters_store_is_refused(cluster: Cluster, postgres: str, unique: str) -> None:
    async with PostgresStore(PostgresSettings(postgres), CODEC, unique) as store:
        await store.begin({("outbound", 0): 7})
    async with serving(cluster, postgres, unique) as running:
        with pytest.raises(LogError, match="it is another cluster's store; name another database"):
            await asyncio.wait_for(running, 60)


async def test_two_that_read_the_same_in_small_parts_write_everything_once(
    kafka: str, postgres: str, unique: str, messages: list[Message], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither knows of the other, so that each finds the store moved on again and again."""
    monkeypatch.setenv("TURNGATE_TEST_TIME", "1")
    monkeypatch.setattr("turngate.sinks.store.batch._MOST", 50)
    cluster = Cluster(KafkaSettings.read(kafka, environment={}), f"{unique}-", 1, create_time=True)
    await cluster.make_topics()
    sent = [Sent(m.topic, 0, m.key or b"", m.value or b"", m.timestamp) for m in messages]
    await cluster.send(sent[: len(sent) // 2])
    async with serving(cluster, postgres, unique), serving(cluster, postgres, unique, "other"):
        await cluster.send(sent[len(sent) // 2 :])

        async def all_read() -> bool:
            return not await _behind(cluster, _read(unique, postgres))

        await until(all_read, 60)

    there = content(postgres_engine(PostgresSettings(postgres), unique))
    assert there == await asyncio.to_thread(at_once, cluster, tmp_path)
    assert len(there["decisions"]) == 300


async def test_without_the_topics_it_says_so(kafka: str, postgres: str, unique: str) -> None:
    nowhere = Cluster(KafkaSettings.read(kafka, environment={}), f"{unique}-", 1)
    async with serving(nowhere, postgres, unique) as running:
        with pytest.raises(LogError, match=f"there is no topic {unique}-.*; create the topics with"):
            await asyncio.wait_for(running, 60)
