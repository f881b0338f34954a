"""What was recorded lies in the store once, the same in Postgres and in SQLite, whatever ends while it is filled."""

from __future__ import annotations

import asyncio
import itertools
import types
from collections.abc import Coroutine, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import select, text

from tests.sinks.records import ALEX, AT, KIM, ROOM, authorized, made
from tests.sinks.store.stores import Content, content, pour
from tests.streams.history import history
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MessageDeleted
from turngate.sinks.store.batch import Audiences, Batch, Moved
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.errors import StoreUnavailable, words
from turngate.sinks.store.migrating import VERSION_TABLE
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.sqlite import SqliteStore, sqlite_engine
from turngate.sinks.store.tables import AUDIENCES, AUTHORIZATIONS, POSITIONS, TABLES, names
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import LogError, Message

CODEC = Codec()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLog]:
    """Drafts, memories, grants and membership changes, and what was decided of them."""
    with LocalLog(tmp_path_factory.mktemp("log") / "log") as made:
        made.append_many(Append(i.topic, i.key, i.value, i.timestamp) for i in history(400))
        LocalRuntime(made, CODEC, keys=TEST_KEYS).step()
        yield made


@pytest.fixture(scope="module")
def expected(log: LocalLog, tmp_path_factory: pytest.TempPathFactory) -> Content:
    """What a file of SQLite holds that was filled at once."""
    with SqliteStore(tmp_path_factory.mktemp("store") / "store", CODEC) as store:
        store.fill(log)
        return content(store.engine)


@pytest.fixture
def settings(postgres: str) -> PostgresSettings:
    return PostgresSettings(postgres)


async def test_both_databases_hold_the_same(
    log: LocalLog, expected: Content, settings: PostgresSettings, unique: str
) -> None:
    async with PostgresStore(settings, CODEC, unique) as store:
        await pour(store, log)
    assert content(postgres_engine(settings, unique)) == expected
    assert len(expected["decisions"]) >= 400
    filled = {name for name, rows in expected.items() if rows}
    assert filled == TABLES.tables.keys() - {"positions", "candidates", "deliveries", "messages", "erasures"}


@pytest.mark.parametrize("database", ["postgres", "sqlite"])
async def test_the_migrations_come_to_the_tables_and_can_be_repeated(
    request: pytest.FixtureRequest, database: str, unique: str, tmp_path: Path
) -> None:
    if database == "sqlite":
        for _ in range(2):
            with SqliteStore(tmp_path / "store", CODEC):
                pass
        engine = sqlite_engine(tmp_path / "store")
    else:
        settings = PostgresSettings(request.getfixturevalue("postgres"))
        for _ in range(2):
            async with PostgresStore(settings, CODEC, unique):
                pass
        engine = postgres_engine(settings, unique)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        assert compare_metadata(context, TABLES) == []
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    if database == "sqlite":
        with pytest.raises(LogError, match="a newer Turngate"):
            SqliteStore(tmp_path / "store", CODEC).__enter__()
    else:
        with pytest.raises(LogError, match="a newer Turngate"):
            await PostgresStore(settings, CODEC, unique).__aenter__()


def test_a_log_that_has_taken_anothers_place_is_noticed(log: LocalLog, tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store", CODEC) as store:
        assert store.fill(log) > 0
        assert store.fill(log) == 0
        for drafts, seed in ((400, 2), (10, 1)):  # as long, and shorter
            with LocalLog() as other:
                other.append_many(Append(i.topic, i.key, i.value, i.timestamp) for i in history(drafts, seed=seed))
                LocalRuntime(other, CODEC, keys=TEST_KEYS).step()
                with pytest.raises(LogError, match="is the store of another log; remove it"):
                    store.fill(other)
        assert store.fill(log) == 0


async def test_two_at_once_write_everything_once(
    log: LocalLog, expected: Content, settings: PostgresSettings, unique: str
) -> None:
    async with PostgresStore(settings, CODEC, unique) as one, PostgresStore(settings, CODEC, unique) as other:
        await asyncio.gather(pour(one, log, 30), pour(other, log, 50))
    assert content(postgres_engine(settings, unique)) == expected


@types.coroutine
def ended_at(work: Coroutine[Any, Any, None], wait: int) -> Generator[Any, Any, bool]:
    """Drive some work up to where it waits for the so many-th time, and cancel it there; whether it was done before."""
    try:
        waiting = work.send(None)
        for number in itertools.count(1):
            if number == wait:
                waiting = work.throw(asyncio.CancelledError())
            else:
                yield waiting
                waiting = work.send(None)
    except StopIteration:
        return True
    except asyncio.CancelledError:
        pass
    return False


async def test_ended_wherever_it_waits_a_batch_is_there_or_not_at_all(
    log: LocalLog, settings: PostgresSettings, unique: str
) -> None:
    places = [("turn-verdicts", 0), ("memory-writes", 0)]
    engine = postgres_engine(settings, unique)
    async with PostgresStore(settings, CODEC, unique) as store:
        await store.begin(dict.fromkeys(places, 0))
        batch = store.batch()
        for place in places:
            batch.begin(place, 0)
            for message in log.scan(*place, 0, 50):
                batch.add(message)
        await store.have_months(batch.times)
        nothing = content(engine)
        for wait in itertools.count(1):
            done = await ended_at(store.write(batch), wait)
            there = content(engine)
            assert (there == nothing) != (await store.begin(dict.fromkeys(places, 0)) == dict.fromkeys(places, 50))
            if done or there != nothing:
                break
    assert wait > 10
    assert (len(there["decisions"]), len(there["memories"])) == (50, 50)


async def test_a_connection_that_is_cut_is_an_error_and_the_next_try_goes_on(
    log: LocalLog, expected: Content, settings: PostgresSettings, unique: str
) -> None:
    async with PostgresStore(settings, CODEC, unique) as store:
        await pour(store, log, 100)
        with psycopg.connect(settings.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(StoreUnavailable, match="Postgres: "):
            await pour(store, log)
        await pour(store, log)
    assert content(postgres_engine(settings, unique)) == expected


async def test_a_batch_that_does_not_begin_where_the_store_is_is_not_written(
    log: LocalLog, settings: PostgresSettings, unique: str
) -> None:
    place = ("turn-verdicts", 0)

    async def write(start: int) -> None:
        batch = store.batch()
        batch.begin(place, start)
        for message in log.scan(*place, start, start + 10):
            batch.add(message)
        await store.write(batch)

    async with PostgresStore(settings, CODEC, unique) as store:
        assert await store.begin({place: 0}) == {place: 0}
        for start, at in ((5, 0), (0, None), (0, 10), (5, 10), (11, 10)):
            if at is None:
                await write(start)
                continue
            with pytest.raises(Moved) as moved:
                await write(start)
            assert moved.value.at == {place: at}
    assert len(content(postgres_engine(settings, unique))["decisions"]) == 10


async def test_what_retention_took_before_it_was_read_is_counted(settings: PostgresSettings, unique: str) -> None:
    place = ("turn-verdicts", 3)
    async with PostgresStore(settings, CODEC, unique) as store:
        assert await store.begin({place: 7}) == {place: 7}
        assert await store.begin({place: 2}) == {place: 7}
        assert await store.begin({place: 9}) == {place: 9}
    with postgres_engine(settings, unique).connect() as connection:
        assert connection.execute(select(POSITIONS.c.next, POSITIONS.c.missed)).one() == (9, 9)


def _authorized(**fields: Any) -> Message:
    return Message("outbound", 0, 0, AT, b"acme", CODEC.encode(authorized(**fields)))


NAMES = ("\0", "a\0b", "\\0", "\\\0\\\\", "\ufffd", "\U0001f680" * 512)


async def test_any_name_that_an_agent_chooses_can_be_stored_and_found(
    settings: PostgresSettings, unique: str, tmp_path: Path
) -> None:
    place, engine = ("outbound", 0), postgres_engine(settings, unique)
    async with PostgresStore(settings, CODEC, unique) as store:
        await store.begin({place: 0})
        with SqliteStore(tmp_path / "store", CODEC) as file:
            batch = Batch(CODEC, Audiences())
            batch.begin(place, 0)
            for offset, name in enumerate(NAMES):
                lists = {"provenance": [f"revision:{name}"], "grants": [name]}
                batch.add(replace(_authorized(turn=name, thread=name, **lists), offset=offset))
            file.write(batch)
            await store.write(batch)
            for database, name in itertools.product((engine, file.engine), NAMES):
                with database.connect() as connection:
                    row = connection.execute(select(AUTHORIZATIONS).where(AUTHORIZATIONS.c.turn == name)).one()
                    assert (row.thread, row.provenance, row.grants) == (name, [f"revision:{name}"], [name])
                    listed = select(AUDIENCES).where(names(AUDIENCES.c.readers, ALEX))
                    assert connection.execute(listed).one().readers == [ALEX, KIM]


async def test_a_ref_longer_than_an_index_takes_is_stored(settings: PostgresSettings, unique: str) -> None:
    letters = "".join(chr(0x4E00 + n) for n in range(1_000))  # three bytes each, and nothing to compress
    record = made(MessageDeleted, agent="mesh", room=ROOM, message=f"{ROOM}/{letters}")
    place = ("observed-messages", 0)
    async with PostgresStore(settings, CODEC, unique) as store:
        await store.begin({place: 0})
        batch = store.batch()
        batch.begin(place, 0)
        batch.add(Message(*place, 0, AT, b"acme", CODEC.encode(record)))
        await store.write(batch)
    assert len(content(postgres_engine(settings, unique))["messages"]) == 1


async def test_a_late_record_finds_its_month_and_months_are_made_ahead(settings: PostgresSettings, unique: str) -> None:
    place = ("outbound", 0)
    async with PostgresStore(settings, CODEC, unique) as store:
        await store.begin({place: 0})
        for offset, time in enumerate((AT, AT - 1, AT - 100 * 86_400_000)):  # 2026-01-01, the day before, and September
            batch = store.batch()
            batch.begin(place, offset)
            batch.add(replace(_authorized(), offset=offset, timestamp=time))
            await store.write(batch)
    with postgres_engine(settings, unique).connect() as connection:
        counted = "SELECT tableoid::regclass::text, count(*) FROM authorizations GROUP BY 1 ORDER BY 1"
        months = [(f"authorizations_{month}", 1) for month in ("2025_09", "2025_12", "2026_01")]
        assert connection.execute(text(counted)).all() == months
        assert connection.scalar(text("SELECT to_regclass('decisions_2026_03')")) == "decisions_2026_03"
        assert connection.scalar(text("SELECT to_regclass('decisions_2026_04')")) is None


async def test_a_workers_record_that_cannot_be_read_stops_it_and_anybody_elses_does_not(
    settings: PostgresSettings, unique: str
) -> None:
    async with PostgresStore(settings, CODEC, unique) as store:
        batch = store.batch()
        for topic in ("memory-writes", "outbound"):
            batch.begin((topic, 0), 0)
        batch.add(Message("memory-writes", 0, 0, AT, b"acme", b"garbage"))
        batch.add(replace(_authorized(), topic="memory-writes", offset=1))  # on a topic that is not its own
        assert list(batch.tables) == []
        with pytest.raises(LogError, match=r"outbound\[0\]: a record at 0 cannot be read"):
            batch.add(Message("outbound", 0, 0, AT, b"acme", b"\xc3\x01 garbage"))


def test_what_a_database_says_of_a_value_is_not_repeated(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT CAST('a secret' AS bigint)")
        assert "a secret" in str(refused.value)
        assert words(refused.value) == "a value was refused (SQLSTATE 22P02)"
        with pytest.raises(psycopg.Error) as missing:
            connection.execute("SELECT * FROM nowhere")
        assert words(missing.value) == 'relation "nowhere" does not exist'
