"""Decides how `turngate store` fills the audit store, makes its tables, and says who may read it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.options import Connection, connects
from turngate.cli.progress import progress
from turngate.cli.running import stopping

if TYPE_CHECKING:
    from turngate.streams.kafka.settings import PostgresSettings

app = typer.Typer(no_args_is_help=True)


@app.callback()
def store() -> None:
    """Keep decisions, their reasons and their evidence in a database, where they can be asked for later."""


@app.command()
@connects(log=True, postgres=True)
def fill(connection: Connection) -> None:
    """Take what workers decide into Postgres, until SIGTERM or Ctrl-C; or what an embedded log holds, into its store.

    Each record is in the store once, whatever is killed: positions and rows are one transaction. Any number of these
    processes share a broker's partitions. The tables are made, and brought up to this version, when it starts; once an
    hour whatever is older than each tenant's `retention.log` is removed.

    The store of an embedded log is a file beside it, named like it and `.store`. `explain`, `who-can-see` and
    `blast-radius` fill it themselves.

    Example:  turngate store fill --postgres-dsn postgresql://db/turngate --bootstrap-servers broker:9092
    """
    log = connection.log_file()
    if log is not None:
        typer.echo(f"{filled(log)} records stored")
        return
    with extra("kafka"):
        import turngate.streams.kafka.settings
    with extra("store"):
        import turngate.sinks.store.tables
    with extra("postgres"):
        import turngate.sinks.store.service  # noqa: F401
    from turngate.streams.stderr import log_to_stderr

    postgres = needed(connection)
    connection.kafka()
    log_to_stderr()
    asyncio.run(_fill(connection, postgres))


@app.command()
@connects(broker=False, postgres=True)
def migrate(connection: Connection) -> None:
    """Make the store's tables in Postgres, in the schema `turngate`, or bring them up to this version.

    `turngate store fill` does that too, when it starts: this is for whoever wants it done before.

    Example:  turngate store migrate --postgres-dsn postgresql://owner@db/turngate
    """
    from turngate.schemas.codec import Codec

    with extra("store"), extra("postgres"):
        from turngate.sinks.store.postgres import PostgresStore

    async def run() -> None:
        async with PostgresStore(needed(connection), Codec()):
            pass

    asyncio.run(run())
    typer.echo("the store's tables are of this version")


@app.command("read-only")
@connects(broker=False, postgres=True)
def read_only(
    connection: Connection,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="Made where there is none.", show_default=False)],
    *,
    texts: Annotated[bool, typer.Option("--texts", help="Memories' texts too.")] = False,
) -> None:
    """Let a role of Postgres read the store and do nothing else; without --texts, no text of a memory.

    The role cannot log in: grant it to whoever does. Give the command again after an upgrade that brought new tables.

    Example:  turngate store read-only auditors --postgres-dsn postgresql://owner@db/turngate
    """
    with extra("store"), extra("postgres"):
        from turngate.sinks.store.connecting import postgres_engine
        from turngate.sinks.store.migrating import opened
        from turngate.sinks.store.roles import read_only as give

    with opened(postgres_engine(needed(connection))) as asking:
        give(asking, role, texts=texts)
        asking.commit()
    typer.echo(f"{role} may read the store" + ("" if texts else ", but no text of a memory"))


def needed(connection: Connection) -> PostgresSettings:
    """The database that was named. Raises `Impossible` where none was."""
    settings = connection.postgres()
    if settings is None:
        raise Impossible("no database: give --postgres-dsn or TURNGATE_POSTGRES_DSN")
    return settings


def filled(log: Path, *, scrub: bool = False) -> int:
    """Take what an embedded log holds into the store beside it; how many records were new.

    `scrub`: leave nothing in the file of what has gone from the store.
    """
    from turngate.schemas.codec import Codec
    from turngate.streams.local_log import LocalLog

    with extra("store"):
        from turngate.sinks.store.sqlite import SqliteStore, beside

    with LocalLog(log, read_only=True) as records, SqliteStore(beside(log), Codec()) as made:
        with progress("Filling the store") as told:
            count = made.fill(records, told)
        if scrub:
            made.scrub()
        return count


async def _fill(connection: Connection, postgres: PostgresSettings) -> None:
    from turngate.sinks.store.postgres import PostgresStore
    from turngate.sinks.store.service import StoreService
    from turngate.streams.clock import now_ms

    codec = await asyncio.to_thread(connection.codec)
    stop = stopping()
    async with PostgresStore(postgres, codec) as made:
        await StoreService(connection.kafka(), made, now_ms).run(stop)
