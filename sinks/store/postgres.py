"""Decides how records get into Postgres: copied into staging tables, then merged, and the positions with them.

One transaction holds the rows and how far their topics were read, and it begins by locking those positions: whatever is
killed in between leaves nothing, and of two that write the same one finds the store moved on (`Moved`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import orjson
import psycopg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from turngate.schemas.codec import Codec
from turngate.sinks.store.batch import Audiences, Batch, Moved, Place
from turngate.sinks.store.connecting import SCHEMA, postgres_async_engine
from turngate.sinks.store.errors import StoreUnavailable, words
from turngate.sinks.store.migrating import migrate
from turngate.sinks.store.months import ahead, month_of, name_of
from turngate.sinks.store.tables import BY_MONTH, TABLES, Listing, written
from turngate.streams.kafka.settings import PostgresSettings

#: Whoever migrates or makes partitions holds this lock; of two at once, one would fail.
LOCK = 0x5475726F
#: Months for which there are partitions before their first record.
AHEAD = 2
#: Columns that are lists, by table.
_LISTS = {
    name: [n for n, column in enumerate(table.c) if isinstance(column.type, Listing)]
    for name, table in TABLES.tables.items()
}
_MERGE = {
    name: f"INSERT INTO {name} SELECT * FROM staging_{name} ON CONFLICT DO NOTHING" for name in (*BY_MONTH, "policies")
} | {
    "audiences": "INSERT INTO audiences SELECT * FROM staging_audiences ORDER BY tenant, digest "
    "ON CONFLICT (tenant, digest) DO UPDATE SET until = excluded.until WHERE audiences.until < excluded.until"
}
_THERE = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(current_schema())"
_AT = """\
SELECT topic, partition, next FROM positions
WHERE (topic, partition) IN (SELECT * FROM unnest(CAST(:topics AS text[]), CAST(:partitions AS int[])))
ORDER BY topic, partition FOR UPDATE"""
_REACH = """\
UPDATE positions SET next = :next, time = greatest(time, :time), mark = coalesce(:mark, mark)
WHERE topic = :topic AND partition = :partition"""
_BEGIN = """\
INSERT INTO positions (topic, partition, next, time, missed) VALUES (:topic, :partition, :first, 0, :first)
ON CONFLICT (topic, partition) DO UPDATE
SET next = excluded.next, missed = positions.missed + excluded.next - positions.next
WHERE positions.next < excluded.next"""


class PostgresStore:
    """The store in Postgres; for `async with`, which brings the tables up to this version.

    After an error the connection is made anew. Every method raises `StoreUnavailable`, and `LogError` where a newer
    Turngate has made the tables.
    """

    def __init__(self, settings: PostgresSettings, codec: Codec, schema: str = SCHEMA) -> None:
        self._engine = postgres_async_engine(settings, schema)
        self._schema = schema
        self._codec = codec
        self._audiences = Audiences()
        self._months: set[int] = set()
        self._connection: AsyncConnection | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            await self.migrate()
        except BaseException:
            await self._forget()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._forget()

    async def migrate(self) -> None:
        """Bring the schema and its tables up to this version."""
        async with self.transaction() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            if await connection.scalar(text("SELECT to_regnamespace(:name)"), {"name": f'"{self._schema}"'}) is None:
                await connection.execute(text(f'CREATE SCHEMA "{self._schema}"'))
            await connection.run_sync(migrate)
        await self._forget()  # the next connection makes its staging tables like these

    def batch(self) -> Batch:
        """An empty batch for `write`."""
        return Batch(self._codec, self._audiences)

    async def begin(self, firsts: Mapping[Place, int]) -> dict[Place, int]:
        """Where to read on in each place, `firsts` being what is there at all; what was gone before is counted."""
        async with self.transaction() as connection:
            for (topic, partition), first in sorted(firsts.items()):
                await connection.execute(text(_BEGIN), {"topic": topic, "partition": partition, "first": first})
            return await self._at(connection, firsts)

    async def write(self, batch: Batch) -> None:
        """All of a batch, or nothing. Raises `Moved` where the store is not where it begins."""
        await self.have_months(batch.times)
        async with self.transaction() as connection:
            at = await self._at(connection, batch.spans)
            if any(at.get(place) != span.start for place, span in batch.spans.items()):
                raise Moved(at)
            for name, rows in batch.tables:
                await _copy(connection, name, rows)
                await connection.execute(text(_MERGE[name]))
            for place, span in batch.spans.items():
                await connection.execute(text(_REACH), span.row(place))
            for statement in batch.ends.statements():
                await connection.execute(statement)
        self._audiences.are_there(batch.audiences)

    async def have_months(self, ends: Collection[int]) -> None:
        """See to it that there are partitions for the months that end then, and for some after the newest."""
        if not ends or self._months.issuperset(ends):
            return
        wanted = {*ends, *ahead(max(ends) - 1, AHEAD)}
        async with self.transaction() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            there = set(await connection.scalars(text(_THERE)))
            made = [s for end in sorted(wanted - self._months) for s in _partitions(end, there)]
            if made:
                await connection.exec_driver_sql(";".join(made))
        self._months |= wanted

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One after the other, whoever asks: all that is done inside, or nothing."""
        async with self._lock:
            try:
                if self._connection is None:
                    self._connection = await self._engine.connect()
                    await self._stage(self._connection)
                transaction = await self._connection.begin()
                try:
                    yield self._connection
                except Moved:
                    await transaction.rollback()
                    raise
                await transaction.commit()
            except Moved:
                raise
            except (SQLAlchemyError, psycopg.Error, OSError) as error:
                await self._forget()
                raise StoreUnavailable(f"Postgres: {words(error)}") from None
            except BaseException:
                await self._forget()  # which ends the transaction, whatever the connection was doing
                raise

    async def _stage(self, connection: AsyncConnection) -> None:
        """Tables of this connection alone, which every commit empties; none where nothing was migrated yet."""
        async with connection.begin():
            if await connection.scalar(text("SELECT to_regclass('positions')")) is None:
                return
            made = [f"CREATE TEMP TABLE staging_{name} (LIKE {name}) ON COMMIT DELETE ROWS" for name in _MERGE]
            await connection.exec_driver_sql(";".join(made))

    async def _at(self, connection: AsyncConnection, places: Iterable[Place]) -> dict[Place, int]:
        topics, partitions = [topic for topic, _ in places], [partition for _, partition in places]
        found = await connection.execute(text(_AT), {"topics": topics, "partitions": partitions})
        return {(topic, partition): at for topic, partition, at in found}

    def forget_what_is_there(self) -> None:
        """Somebody may have removed months and audiences."""
        self._audiences.clear()
        self._months.clear()

    async def _forget(self) -> None:
        """Let go of the connection, whatever it was doing."""
        self.forget_what_is_there()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await asyncio.shield(_closed(connection))


async def _closed(connection: AsyncConnection) -> None:
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        await connection.invalidate()
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        await connection.close()


async def _copy(connection: AsyncConnection, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    raw = (await connection.get_raw_connection()).driver_connection
    assert isinstance(raw, psycopg.AsyncConnection)
    lists = _LISTS[name]
    async with raw.cursor() as cursor, cursor.copy(f"COPY staging_{name} FROM STDIN") as copy:
        for row in rows:
            plain = [written(value) if type(value) is str else value for value in row]
            for n in lists:
                if row[n] is not None:
                    plain[n] = _json(row[n])
            await copy.write_row(plain)


def _json(value: Any) -> str:
    """JSON; what holds neither a backslash nor U+0000 is as it is, and such JSON has no backslash of its own."""
    plain = orjson.dumps(value)
    return (orjson.dumps(_written(value)) if b"\\" in plain else plain).decode()


def _written(value: Any) -> Any:
    if isinstance(value, str):
        return written(value)
    if isinstance(value, dict):
        return {name: _written(one) for name, one in value.items()}
    return value if value is None or isinstance(value, int) else [*map(_written, value)]


def _partitions(end: int, there: Collection[str]) -> Iterator[str]:
    """Each is made apart and then attached, which holds up nobody who reads or writes its table."""
    start = month_of(end - 1)[0]
    for name in BY_MONTH:
        child = f"{name}_{name_of(end)}"
        if child not in there:
            yield f"CREATE TABLE {child} (LIKE {name})"
            yield f"ALTER TABLE {name} ATTACH PARTITION {child} FOR VALUES FROM ({start}) TO ({end})"
