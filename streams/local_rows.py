"""Decides how records, positions and state entries become rows of a log's file, and rows become them again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from turngate.schemas.catalog import INPUT_TOPICS
from turngate.streams.log import Headers, Message

#: A lane is one partition of one topic. A record's id is `lane << OFFSET_BITS | offset`, so that a lane is one range of
#: the table's own tree: appending needs no second index, and reading in order of offset is reading the tree in order.
OFFSET_BITS = 44
MAX_OFFSET = (1 << OFFSET_BITS) - 1


@dataclass(frozen=True, slots=True)
class Lane:
    """One partition of one topic, and its number in the file."""

    id: int
    topic: str
    partition: int


def read_lanes(db: sqlite3.Connection) -> dict[tuple[str, int], Lane]:
    """Every lane of the file."""
    return {(t, p): Lane(i, t, p) for i, t, p in db.execute("SELECT id, topic, partition FROM lane")}


def write_messages(db: sqlite3.Connection, placed: Iterable[tuple[Lane, Message]]) -> None:
    """Insert records at the places that they name."""
    db.executemany(
        "INSERT INTO record VALUES (?, ?, ?, ?, ?)",
        [(_id(lane, m.offset), m.timestamp, m.key, m.value, _headers_text(m.headers)) for lane, m in placed],
    )


def replace_values(db: sqlite3.Connection, placed: Iterable[tuple[Lane, Message]]) -> None:
    """Give the records at these places these values, and leave all else of them as it is."""
    db.executemany("UPDATE record SET value = ? WHERE id = ?", [(m.value, _id(lane, m.offset)) for lane, m in placed])


def select_messages(db: sqlite3.Connection, lane: Lane, start: int, end: int, limit: int) -> Iterator[Message]:
    """At most `limit` records of a lane with offsets from `start` up to, not including, `end`."""
    rows = db.execute(
        "SELECT id, timestamp, key, value, headers FROM record WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (_id(lane, max(start, 0)), _id(lane, min(end, MAX_OFFSET)), limit),
    )
    for place, timestamp, key, value, headers in rows:
        offset = place & MAX_OFFSET
        yield Message(lane.topic, lane.partition, offset, timestamp, key, value, _headers_of(headers))


def last_offset(db: sqlite3.Connection, lane: Lane) -> int | None:
    """The offset of a lane's last record, None where it has none."""
    row = db.execute(
        "SELECT id FROM record WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1", (_id(lane, 0), _id(lane, MAX_OFFSET))
    ).fetchone()
    return None if row is None else row[0] & MAX_OFFSET


def read_end(db: sqlite3.Connection, lane: Lane) -> int:
    """The offset after a lane's last record and after what has been applied of it."""
    last = last_offset(db, lane)
    applied = db.execute("SELECT position FROM position WHERE lane = ?", (lane.id,)).fetchone()
    return max(0 if last is None else last + 1, 0 if applied is None else applied[0])


def read_positions(db: sqlite3.Connection, partition: int) -> dict[str, int]:
    """The position of every input topic in one partition; 0 where nothing was applied."""
    found = dict(
        db.execute("SELECT topic, position FROM lane JOIN position ON lane = id WHERE partition = ?", (partition,))
    )
    return {topic: found.get(topic, 0) for topic in INPUT_TOPICS}


def read_entries(db: sqlite3.Connection, partition: int) -> Iterator[tuple[bytes, bytes]]:
    """Every state entry of a partition, in order of key."""
    yield from db.execute("SELECT key, value FROM state WHERE partition = ? ORDER BY key", (partition,))


def write_entries(db: sqlite3.Connection, partition: int, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Write state entries, each of its last value; None removes one."""
    last = dict(entries)
    db.executemany(
        "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        [(partition, key, value) for key, value in last.items() if value is not None],
    )
    db.executemany(
        "DELETE FROM state WHERE partition = ? AND key = ?",
        [(partition, key) for key, value in last.items() if value is None],
    )


def _id(lane: Lane, offset: int) -> int:
    return lane.id << OFFSET_BITS | offset


def _headers_text(headers: Headers) -> str | None:
    """Headers as JSON, their bytes as the characters of the same numbers; None for none at all."""
    return _encode([(name, value.decode("latin-1")) for name, value in headers]) if headers else None


def _headers_of(text: str | None) -> Headers:
    return () if text is None else tuple((name, value.encode("latin-1")) for name, value in json.loads(text))


_encode = json.JSONEncoder(separators=(",", ":")).encode
