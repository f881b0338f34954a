"""Decides how claims lie in Postgres, and what happens when it does not answer: nothing is sent.

Its texts cannot hold U+0000, which an agent may put into an id; a backslash stands before what stands for that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection

from turngate.schemas.shapes import Reason
from turngate.sinks import claim_rows as rows
from turngate.sinks.claims import Claim, ClaimsUnavailable, Key, Place, State
from turngate.streams.kafka.settings import PostgresSettings

#: Seconds in which a database must have answered.
PATIENCE = 5.0
#: Whoever makes the table first holds this lock; of two at once, one would fail.
_LOCK = 0x5475726E


class PostgresClaims:
    """Claims in one table of a database, which is made where it is missing. For `async with`, and any number of tasks.

    After an error the connection is made anew. A database that forgets what it has acknowledged (an asynchronous
    standby that takes over) lets something be sent twice.
    """

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection[tuple[Any, ...]] | None = None

    async def __aenter__(self) -> Self:
        await self._run("SELECT 1", {})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def take(self, key: Key, place: Place, owner: str, at: int) -> Claim:
        """See `Claims`."""
        _, found = await self._run(rows.TAKE, rows.placed(key, place, owner, at), rows.READ)
        return rows.claim_of(found[0] if found else None)

    async def begin(self, key: Key, owner: str) -> bool:
        """See `Claims`."""
        return (await self._run(rows.BEGIN, rows.named(key, owner=owner)))[0] == 1

    async def release(self, key: Key, owner: str) -> bool:
        """See `Claims`."""
        return (await self._run(rows.RELEASE, rows.named(key, owner=owner)))[0] == 1

    async def end(
        self, key: Key, owner: str, state: State, message: str | None = None, reasons: tuple[Reason, ...] = ()
    ) -> Claim:
        """See `Claims`."""
        given = rows.ended(key, owner, state, message, reasons)
        _, found = await self._run(rows.END, given, rows.READ)
        return rows.claim_of(found[0] if found else None)

    async def read(self, key: Key) -> Claim:
        """See `Claims`."""
        _, found = await self._run("SELECT 1", rows.named(key), rows.READ)
        return rows.claim_of(found[0] if found else None)

    async def uncertain(self, since: int) -> list[Claim]:
        """See `Claims`."""
        _, found = await self._run("SELECT 1", {"since": since}, rows.UNCERTAIN)
        return [rows.claim_of(row) for row in found]

    async def questions(self, tenant: str, turn: str) -> list[Claim]:
        """See `Claims`."""
        _, found = await self._run("SELECT 1", {"tenant": tenant, "turn": turn}, rows.QUESTIONS)
        return rows.about(turn, map(rows.claim_of, found))

    async def prune(self, before: int) -> int:
        """See `Claims`."""
        return (await self._run(rows.PRUNE, {"before": before}))[0]

    async def _run(
        self, statement: str, given: Mapping[str, Any], read: str | None = None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        """Carry out a statement and then read, in one transaction: how many rows were changed, and what was read."""
        given = {name: _written(value) for name, value in given.items()}
        async with self._lock:
            try:
                async with asyncio.timeout(PATIENCE):
                    connection = await self._connected()
                    async with connection.transaction():
                        changed = (await connection.execute(statement, given)).rowcount
                        found = [] if read is None else await (await connection.execute(read, given)).fetchall()
                    return changed, [tuple(_read(value) for value in row) for row in found]
            except (psycopg.Error, TimeoutError) as error:
                await self._forget()
                # the first line names host and cause, and no password
                cause = "no answer" if isinstance(error, TimeoutError) else str(error).splitlines()[0]
                raise ClaimsUnavailable(f"Postgres: {cause}") from None

    async def _connected(self) -> AsyncConnection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            made = await AsyncConnection.connect(self._settings.conninfo(), autocommit=True)
            self._connection = made
            async with made.transaction():
                await made.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                await made.execute(rows.TABLE)
        return self._connection

    async def _forget(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()


def _written(value: Any) -> Any:
    return value.replace("\\", r"\\").replace("\0", r"\0") if isinstance(value, str) else value


def _read(value: Any) -> Any:
    return re.sub(r"\\(.)", lambda m: "\0" if m[1] == "0" else m[1], value) if isinstance(value, str) else value
