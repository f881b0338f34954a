"""Decides how `turngate export` copies what was recorded into a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turngate.cli.options import Connection, connects
from turngate.cli.progress import progress
from turngate.cli.recorded import recorded


@connects(log=True)
def export(
    connection: Connection,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go.", show_default=False)],
) -> None:
    """Copy inputs, stretches and decisions into a directory of Avro container files.

    What the directory holds already is not written again, so it goes on after an interruption, and a later export adds
    what has come since. The files hold every text that the topics hold: keep them as you keep those.

    Example:  turngate export /backup/turngate --log turngate.db
    """
    from turngate.streams.exporting import export as write

    with recorded(connection) as (records, codec), progress("Exporting") as told:
        count = write(records, directory, codec, told)
    typer.echo(f"{count} records written")
