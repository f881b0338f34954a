"""Decides where the records of an export wait until all of it was read: in a temporary file, in order of time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence

from turngate.connectors.slack.entries import RoomEvent
from turngate.connectors.slack_export.errors import ExportError
from turngate.schemas.catalog import INPUT_TOPICS

_RANK = {topic: rank for rank, topic in enumerate(INPUT_TOPICS)}


class Spool:
    """Any number of records, in order of time, topic (as in contract section 3) and arrival, in bounded memory."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")  # a private file of SQLite's, which it deletes
        self._db.execute(
            "CREATE TABLE spool (at INTEGER, rank INTEGER, seq INTEGER PRIMARY KEY, record TEXT, value TEXT)"
        )

    def add(self, events: list[RoomEvent]) -> None:
        """Take records in. Raises `ExportError` where the disk is full."""
        rows = [(e.at, _RANK[e.topic], e.record, json.dumps([e.topic, e.fields])) for e in events]
        self._run("INSERT INTO spool (at, rank, record, value) VALUES (?, ?, ?, ?)", rows)

    def in_order(self) -> Iterator[RoomEvent]:
        """Give them out. Raises `ExportError` where the disk is full."""
        self._run("CREATE INDEX IF NOT EXISTS in_order ON spool (at, rank, seq)", [()])
        for at, record, value in self._db.execute("SELECT at, record, value FROM spool ORDER BY at, rank, seq"):
            topic, fields = json.loads(value)
            yield RoomEvent(record, at, topic, fields)

    def close(self) -> None:
        """Delete the file."""
        self._db.close()

    def _run(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            self._db.executemany(sql, rows)
        except sqlite3.Error as error:
            raise ExportError("temporary folder", f"cannot hold the export while it is read: {error}") from error
