"""Decides how claims lie in an embedded log's own file, and how far its outputs were handled."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from turngate.schemas.shapes import Reason
from turngate.sinks import claim_rows as rows
from turngate.sinks.claims import Claim, Key, Place, State
from turngate.streams.local_log import LocalLog

_REACHED = """\
CREATE TABLE IF NOT EXISTS turngate_reached (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (topic, partition)
)"""


class LocalClaims:
    """Claims in the file of the log that they are about, so that one copy of it holds both; for one thread."""

    def __init__(self, log: LocalLog) -> None:
        self._log = log
        with log.database() as db:
            db.execute(rows.TABLE)
            db.execute(_REACHED)

    async def take(self, key: Key, place: Place, owner: str, at: int) -> Claim:
        """See `Claims`."""
        given = rows.placed(key, place, owner, at)
        with self._log.database() as db:
            _run(db, rows.TAKE, given)
            return rows.claim_of(_run(db, rows.READ, given).fetchone())

    async def begin(self, key: Key, owner: str) -> bool:
        """See `Claims`."""
        with self._log.database() as db:
            return _run(db, rows.BEGIN, rows.named(key, owner=owner)).rowcount == 1

    async def release(self, key: Key, owner: str) -> bool:
        """See `Claims`."""
        with self._log.database() as db:
            return _run(db, rows.RELEASE, rows.named(key, owner=owner)).rowcount == 1

    async def end(
        self, key: Key, owner: str, state: State, message: str | None = None, reasons: tuple[Reason, ...] = ()
    ) -> Claim:
        """See `Claims`."""
        given = rows.ended(key, owner, state, message, reasons)
        with self._log.database() as db:
            _run(db, rows.END, given)
            return rows.claim_of(_run(db, rows.READ, given).fetchone())

    async def read(self, key: Key) -> Claim:
        """See `Claims`."""
        with self._log.database() as db:
            return rows.claim_of(_run(db, rows.READ, rows.named(key)).fetchone())

    async def uncertain(self, since: int) -> list[Claim]:
        """See `Claims`."""
        with self._log.database() as db:
            return [rows.claim_of(row) for row in _run(db, rows.UNCERTAIN, {"since": since}).fetchall()]

    async def questions(self, tenant: str, turn: str) -> list[Claim]:
        """See `Claims`."""
        with self._log.database() as db:
            found = _run(db, rows.QUESTIONS, {"tenant": tenant, "turn": turn}).fetchall()
        return rows.about(turn, map(rows.claim_of, found))

    async def prune(self, before: int) -> int:
        """See `Claims`."""
        with self._log.database() as db:
            return _run(db, rows.PRUNE, {"before": before}).rowcount

    def reached(self, topic: str, partition: int) -> int:
        """The position before which everything on an output was handled."""
        with self._log.database() as db:
            found = db.execute(
                "SELECT position FROM turngate_reached WHERE topic = ? AND partition = ?", (topic, partition)
            ).fetchone()
        return 0 if found is None else int(found[0])

    def reach(self, topic: str, partition: int, position: int) -> None:
        """Remember that everything before this was handled."""
        with self._log.database() as db:
            db.execute("REPLACE INTO turngate_reached VALUES (?, ?, ?)", (topic, partition, position))


def _run(db: sqlite3.Connection, statement: str, given: Mapping[str, Any]) -> sqlite3.Cursor:
    return db.execute(statement.replace("%(", ":").replace(")s", ""), given)
