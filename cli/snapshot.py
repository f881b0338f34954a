"""Decides how `turngate snapshot` writes down the state of a log's partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from turngate.cli.errors import extra
from turngate.cli.options import Connection, connects


@connects(log=True, registry=False)
def snapshot(
    connection: Connection,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go.", show_default=False)],
    *,
    partition: Annotated[int | None, typer.Option(metavar="P", min=0, help="This one; else each.")] = None,
) -> None:
    """Write down the state of each partition, its positions and the engine's version.

    `turngate replay --snapshots DIR` begins at the newest one at or before its first draft, so that it needs no older
    records. The worker goes on meanwhile. The files hold what the state holds: keep them as you keep the topics.

    Example:  turngate snapshot /backup/snapshots --bootstrap-servers HOST:9092
    """
    for path in _taken(connection, directory, partition):
        typer.echo(str(path))


def _taken(connection: Connection, directory: Path, partition: int | None) -> Iterator[Path]:
    log = connection.log_file()
    if log is not None:
        from turngate.streams.local_log import LocalLog
        from turngate.streams.snapshots import snapshot_of

        with LocalLog(log, read_only=True) as there:
            for number in range(there.partitions) if partition is None else [partition]:
                yield snapshot_of(there, number, directory)
        return
    with extra("kafka"):
        from turngate.streams.kafka import snapshots
    settings = connection.kafka()
    for number in asyncio.run(snapshots.partitions_of(settings)) if partition is None else [partition]:
        yield asyncio.run(snapshots.snapshot_of(settings, number, directory))
