"""Decides how records get into a file of SQLite: beside an embedded log, from which it can be filled again."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import orjson
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from turngate.schemas.authority import STORED
from turngate.schemas.codec import Codec
from turngate.sinks.store.batch import Audiences, Batch, Moved, Place, mark
from turngate.sinks.store.migrating import migrate
from turngate.sinks.store.retention import KEPT, ended
from turngate.sinks.store.tables import BY_MONTH, POSITIONS, TABLES
from turngate.sinks.store.texts import unsettled
from turngate.streams.log import LogError
from turngate.streams.recorded import Records

#: Records that are written at once.
RECORDS = 2_000
_INSERT = {
    name: f"INSERT OR IGNORE INTO {name} VALUES ({', '.join('?' * len(TABLES.tables[name].c))})"
    for name in (*BY_MONTH, "policies")
} | {
    "audiences": f"INSERT INTO audiences VALUES ({', '.join('?' * len(TABLES.tables['audiences'].c))}) "
    "ON CONFLICT (tenant, digest) DO UPDATE SET until = excluded.until WHERE audiences.until < excluded.until"
}
_REACH = """\
INSERT INTO positions (topic, partition, next, time, missed, mark) VALUES (:topic, :partition, :next, :time, 0, :mark)
ON CONFLICT (topic, partition) DO UPDATE
SET next = excluded.next, time = max(positions.time, excluded.time), mark = coalesce(excluded.mark, positions.mark)"""


#: Told how many of how many records have been taken in.
Told = Callable[[int, int], None]


def beside(log: Path) -> Path:
    """Where the store of an embedded log lies: its name and `.store`."""
    return log.with_name(log.name + ".store")


def sqlite_engine(path: Path) -> Engine:
    """A file, in which whoever writes waits for whoever does; what is removed from it is overwritten."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # it can be filled again from the log
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, json_deserializer=_json)
    event.listen(engine, "begin", _begin_at_once)
    return engine


def _json(value: str) -> Any:
    """A list; None where somebody has written what is no JSON."""
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return None


def _begin_at_once(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


class SqliteStore:
    """The store in a file, made where there is none, for its owner alone. Any number of processes may fill it at once.

    Every method raises `LogError` where the file is none of ours or cannot be used.
    """

    def __init__(self, path: Path, codec: Codec) -> None:
        self._path = path
        self._codec = codec
        self._audiences = Audiences()
        self.engine: Engine = sqlite_engine(path)

    def __enter__(self) -> Self:
        with self._clear_errors():
            if not self._path.exists():
                os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
            with self.engine.begin() as connection:
                migrate(connection)
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.dispose()

    def fill(self, records: Records, told: Told = lambda _, __: None) -> int:
        """Take in everything that was recorded and is not there yet; how many records that was.

        `told`: how many of how many, as it goes on. Raises `LogError` where what is there was taken from another log.
        """
        self._same(records)
        places = [(topic, partition) for partition in range(records.partitions) for topic in STORED]
        at = self._at(places)
        total = sum(max(0, records.end(*place) - at[place]) for place in places)
        count = 0
        for place in places:
            while (took := self._take(records, place)) is not None:
                count += took
                told(count, total)
        if count:
            self._prune()
        return count

    def _same(self, records: Records) -> None:
        """Whether the last record that was taken in of each place is still the one that lies there."""
        with self._clear_errors(), self.engine.connect() as connection:
            known = connection.execute(
                select(POSITIONS.c.topic, POSITIONS.c.partition, POSITIONS.c.next, POSITIONS.c.mark)
            )
            for topic, partition, at, found in known.all():
                there = partition < records.partitions and records.end(topic, partition) >= at
                last = next(records.scan(topic, partition, at - 1, at), None) if there else None
                if not there or (last is not None and found is not None and mark(last) != found):
                    raise LogError(f"{self._path}: is the store of another log; remove it to have it anew")

    def _prune(self) -> None:
        """Remove what has ended by the log's own time."""
        with self._clear_errors(), self.engine.begin() as connection:
            connection.execute(unsettled())
            kept = dict(connection.execute(KEPT).tuples().all())
            now = connection.execute(select(func.max(POSITIONS.c.time))).scalar() or 0
            for statement in ended(kept, now):
                connection.execute(statement)
        self._audiences.clear()

    def scrub(self) -> None:
        """Leave nothing in the file, nor beside it, of what was removed. Raises `LogError` where somebody reads it."""
        with self._clear_errors(), self.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)
            raw.execute("VACUUM")
            busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LogError(f"{self._path}: somebody is reading it, so what was removed lies in its -wal; repeat this")

    def _take(self, records: Records, place: Place) -> int | None:
        """The next records of a place; None where there is no more."""
        topic, partition = place
        start = max(self._at([place])[place], records.first(topic, partition))
        end = records.end(topic, partition)
        if start >= end:
            return None
        batch = Batch(self._codec, self._audiences)
        batch.begin(place, start)
        for message in records.scan(topic, partition, start, end):
            batch.add(message)
            if batch.records == RECORDS or batch.full:
                break
        else:
            batch.reach(place, end)
        try:
            self.write(batch)
        except Moved:
            return 0  # somebody else has filled it: from there on
        return batch.records

    def write(self, batch: Batch) -> None:
        """All of a batch, or nothing. Raises `Moved` where the store is not where it begins."""
        with self._clear_errors(), self.engine.begin() as connection:
            at = _at(connection, batch.spans)
            if any(at[place] > span.start for place, span in batch.spans.items()):
                raise Moved(at)
            for name, rows in batch.tables:
                connection.exec_driver_sql(_INSERT[name], [tuple(map(_plain, row)) for row in rows])
            for place, span in batch.spans.items():
                connection.execute(text(_REACH), span.row(place))
            for statement in batch.ends.statements():
                connection.execute(statement)
        self._audiences.are_there(batch.audiences)

    def _at(self, places: Iterable[Place]) -> dict[Place, int]:
        with self._clear_errors(), self.engine.connect() as connection:
            return _at(connection, places)

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            cause = getattr(error, "orig", None) or error
            raise LogError(
                f"{self._path}: the store cannot be used: {cause}; remove the file to have it anew"
            ) from None


def _at(connection: Connection, places: Iterable[Place]) -> dict[Place, int]:
    found = connection.execute(text("SELECT topic, partition, next FROM positions"))
    return dict.fromkeys(places, 0) | {(topic, partition): at for topic, partition, at in found}


def _plain(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, (tuple, list, dict)) else value
