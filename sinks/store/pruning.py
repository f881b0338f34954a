"""Decides how rows that have ended go from Postgres: a month that has ended for everybody as a whole."""

from __future__ import annotations

import re

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from turngate.sinks.store.months import name_of
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.retention import DEFAULT, KEPT, ended
from turngate.sinks.store.tables import BY_MONTH
from turngate.sinks.store.texts import unsettled

#: Milliseconds for which somebody who is reading a month may hold up its end; it is tried again an hour later.
PATIENCE_MS = 5_000
_PARTITIONS = """\
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(:name) ORDER BY c.relname"""


async def prune(store: PostgresStore, now: int) -> None:
    """Remove what has ended by `now`, and the text of what never became a revision. Harmless when repeated.

    Raises `StoreUnavailable`, also where somebody reads a month for too long that would go.
    """
    async with store.transaction() as connection:
        await connection.execute(text(f"SET LOCAL lock_timeout = {PATIENCE_MS}"))
        await connection.execute(unsettled())
        kept = dict((await connection.execute(KEPT)).tuples().all())
        for child in await _months(connection, now - max([DEFAULT, *kept.values()])):
            await connection.execute(text(f"DROP TABLE {child}"))
        for statement in ended(kept, now):
            await connection.execute(statement)
        for child in await _months(connection, now - min([DEFAULT, *kept.values()])):
            if not await connection.scalar(text(f"SELECT EXISTS (SELECT FROM {child})")):
                await connection.execute(text(f"DROP TABLE {child}"))
    store.forget_what_is_there()


async def _months(connection: AsyncConnection, before: int) -> list[str]:
    """Partitions of months that have ended before then."""
    found, last = [], name_of(before)
    for name in BY_MONTH:
        for (child,) in await connection.execute(text(_PARTITIONS), {"name": name}):
            month = re.fullmatch(rf"{name}_(\d{{4}}_\d\d)", child)
            if month is not None and month[1] < last:
                found.append(child)
    return found
