"""Decides what the embedded log keeps: records, state and positions, in one SQLite file or in memory.

A commit is one transaction, so a crash at any byte loses nothing acknowledged and leaves nothing half done. One process
writes, any number read. Nothing reads a clock here: timestamps come from the caller, or from a clock passed in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.streams import local_rows as rows
from turngate.streams.local_file import clear_errors, open_reader, open_writer, scrub
from turngate.streams.log import Commit, Headers, LogError, Message

_TOPICS = (*INPUT_TOPICS, *OUTPUT_TOPICS)
_MAX_PARTITIONS = 10_000
#: The last millisecond of the year 9999, which is as far as a record's times go.
_MAX_TIMESTAMP = 253_402_300_799_999
#: A page of a scan is no more than this, so that reading needs the same memory however long the log is.
_PAGE_RECORDS = 512
_PAGE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Append:
    """A record to be appended. `timestamp` in milliseconds, None: the log's clock says; `offset` None: the next one."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    partition: int = 0
    headers: Headers = ()
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a partition's last commit left: positions by input topic, state entries, and the engine that wrote them."""

    positions: dict[str, int]
    entries: Iterator[tuple[bytes, bytes]]
    engine: str | None


class LocalLog:
    """The contract's topics in one SQLite file, or in memory where `path` is None. A context manager; for one thread.

    `partitions` is fixed when the log is made (None: one, or as many as it was made with). `read_only` opens a log that
    another process may be writing. `clock` gives milliseconds, for appends without a timestamp.

    Raises `LogError`, here and in every method, where the log cannot be used as asked; nothing is then written.
    """

    def __init__(
        self,
        path: Path | None = None,
        partitions: int | None = None,
        *,
        read_only: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._path = path
        self._clock = clock
        self._writes = not read_only
        self._failed = False
        self._lock: sqlite3.Connection | None = None
        if read_only:
            if path is None:
                raise LogError("a log in memory cannot be opened for reading only; name a file")
            self._db = open_reader(path)
        else:
            self._db, self._lock = open_writer(path)
        try:
            with clear_errors(path):
                self._lanes = self._have_lanes(partitions)
                self._ends = self._read_ends()
        except BaseException:
            self.close()
            raise
        self.partitions = 1 + max((p for _, p in self._lanes), default=0)

    def close(self) -> None:
        """Let go of the file. What was not committed is not written."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is appended and committed inside is written all together, when the block ends, or not at all.

        A transaction inside another one is part of it; where it fails, the outer one cannot be completed any more.
        """
        if self._db.in_transaction:
            try:
                yield
            except BaseException:
                self._failed = True
                raise
            return
        if not self._writes:
            raise LogError(f"{self._path}: this log was opened for reading only")
        self._failed = False
        try:
            with clear_errors(self._path):
                self._db.execute("BEGIN IMMEDIATE")
                yield
                if self._failed:
                    raise LogError("a part of this transaction has failed, so none of it was written")
                self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            with clear_errors(self._path):
                self._ends = self._read_ends()
            raise

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """The file itself, in a transaction: for somebody's own tables, written alone or with records."""
        with self.transaction():
            yield self._db

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        partition: int = 0,
        timestamp: int | None = None,
        headers: Headers = (),
        offset: int | None = None,
    ) -> Message:
        """Append one record and return it as it lies on the log. An explicit `offset` may leave a gap, not go back."""
        return self.append_many([Append(topic, key, value, timestamp, partition, headers, offset)])[0]

    def append_many(self, records: Iterable[Append]) -> list[Message]:
        """Append records in one transaction and return them as they lie on the log."""
        with self.transaction():
            placed = [self._placed(record) for record in records]
            rows.write_messages(self._db, placed)
        return [message for _, message in placed]

    def commit(self, partition: int, commits: Sequence[Commit], timestamp_ms: int) -> list[Message]:
        """Write the outputs, state entries and positions of stretches that followed each other, in one transaction.

        Returns the outputs as they lie on the log, all stamped with `timestamp_ms`.
        """
        if not commits:
            return []
        with self.transaction():
            outputs = self.append_many(
                Append(o.topic, o.key, o.value, timestamp_ms, partition, o.headers) for c in commits for o in c.outputs
            )
            rows.write_entries(self._db, partition, (entry for c in commits for entry in c.entries))
            for topic, position in commits[-1].positions.items():
                lane = self._lane(topic, partition)
                self._db.execute("REPLACE INTO position VALUES (?, ?)", (lane.id, position))
                self._ends[lane.id] = max(self._ends[lane.id], position)
            self._db.execute("REPLACE INTO engine VALUES (?, ?)", (partition, commits[-1].engine))
        return outputs

    def erase(self, emptied: Sequence[Message]) -> None:
        """Give records other values, where they lie, and leave nothing of the former ones in the file or beside it.

        Offsets, times, keys and headers stay. Where writing the file anew fails, the values are replaced all the same.
        """
        with self.transaction():
            rows.replace_values(self._db, [(self._lane(m.topic, m.partition), m) for m in emptied])
        scrub(self._db, self._path)

    def read(self, topic: str, partition: int, start: int, limit: int) -> list[Message]:
        """At most `limit` records, the first of them at `start` or at the next offset that holds one."""
        with clear_errors(self._path):
            return list(rows.select_messages(self._db, self._lane(topic, partition), start, rows.MAX_OFFSET, limit))

    def scan(self, topic: str, partition: int = 0, start: int = 0, end: int | None = None) -> Iterator[Message]:
        """The records from `start` up to, not including, `end` (None: where the log ends now), in bounded memory."""
        lane = self._lane(topic, partition)
        end = self.end(topic, partition) if end is None else end
        while start < end:
            page, size = [], 0
            with clear_errors(self._path):
                for message in rows.select_messages(self._db, lane, start, end, _PAGE_RECORDS):
                    page.append(message)
                    size += len(message.value or b"")
                    if size > _PAGE_BYTES:
                        break
            if not page:
                return
            yield from page
            start = page[-1].offset + 1

    def first(self, topic: str, partition: int) -> int:
        """The offset before which nothing is there any more: nothing is ever removed here."""
        self._lane(topic, partition)
        return 0

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next record gets: after the last record, and after what has been applied."""
        lane = self._lane(topic, partition)
        if self._writes:
            return self._ends[lane.id]
        with clear_errors(self._path):
            return rows.read_end(self._db, lane)

    def topics(self) -> list[str]:
        """The topics that hold a record, in the contract's order."""
        with clear_errors(self._path):
            full = {lane.topic for lane in self._lanes.values() if rows.last_offset(self._db, lane) is not None}
        return [topic for topic in _TOPICS if topic in full]

    def positions(self, partition: int) -> dict[str, int]:
        """The position after the last record applied of each input topic; 0 where nothing was."""
        self._lane(_TOPICS[0], partition)
        with clear_errors(self._path):
            return rows.read_positions(self._db, partition)

    def checkpoint(self, partition: int) -> Checkpoint:
        """What the partition's last commit left, as of now: commits made while the entries are read do not show.

        In a transaction it is what that one has left.
        """
        self._lane(_TOPICS[0], partition)
        with clear_errors(self._path):
            if self._path is None or self._db.in_transaction:
                db, entries = self._db, iter(list(rows.read_entries(self._db, partition)))
            else:
                db = open_reader(self._path)
                db.execute("BEGIN")
                entries = _then_close(db, rows.read_entries(db, partition))
            version = db.execute("SELECT version FROM engine WHERE partition = ?", (partition,)).fetchone()
            return Checkpoint(rows.read_positions(db, partition), entries, None if version is None else version[0])

    def _have_lanes(self, partitions: int | None) -> dict[tuple[str, int], rows.Lane]:
        """A lane for every topic of the contract in every partition; a new log gets them here."""
        (known,) = self._db.execute("SELECT 1 + max(partition) FROM lane").fetchone()
        count = known or 1 if partitions is None else partitions
        if not 1 <= count <= _MAX_PARTITIONS:
            raise LogError(f"{self._path}: a log has 1 to {_MAX_PARTITIONS} partitions, not {count}")
        if known not in (None, count):
            raise LogError(
                f"{self._path}: this log has {known} partitions, which cannot be made {count}; use a new log"
            )
        if self._writes:
            with self.transaction():
                self._db.executemany(
                    "INSERT OR IGNORE INTO lane (topic, partition) VALUES (?, ?)",
                    [(topic, partition) for partition in range(count) for topic in _TOPICS],
                )
        return rows.read_lanes(self._db)

    def _read_ends(self) -> dict[int, int]:
        """A writer's own knowledge of where each lane ends: nobody else moves it."""
        lanes = rows.read_lanes(self._db).values() if self._writes else ()
        return {lane.id: rows.read_end(self._db, lane) for lane in lanes}

    def _lane(self, topic: str, partition: int) -> rows.Lane:
        lane = self._lanes.get((topic, partition))
        if lane is None:
            last = self.partitions - 1
            raise LogError(
                f"{topic}[{partition}]: there is no such place; topics are the contract's, partitions 0 to {last}"
            )
        return lane

    def _placed(self, record: Append) -> tuple[rows.Lane, Message]:
        """The record as it will lie on the log; its place is taken from now on."""
        lane = self._lane(record.topic, record.partition)
        timestamp, offset, end = record.timestamp, record.offset, self._ends[lane.id]
        at = f"{record.topic}[{record.partition}]"
        if timestamp is None:
            if self._clock is None:
                raise LogError(f"{at}: a record without a timestamp needs a log with a clock")
            timestamp = self._clock()
        if not 0 <= timestamp <= _MAX_TIMESTAMP:
            raise LogError(f"{at}: timestamp {timestamp} is no time from 1970 to 9999 in milliseconds")
        offset = end if offset is None else offset
        if not end <= offset < rows.MAX_OFFSET:
            raise LogError(f"{at}: offset {offset} is not free; the next one is {end}")
        self._ends[lane.id] = offset + 1
        return lane, Message(lane.topic, lane.partition, offset, timestamp, record.key, record.value, record.headers)


def _then_close(db: sqlite3.Connection, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    try:
        yield from entries
    finally:
        db.close()
