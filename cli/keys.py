"""Decides how `turngate keys` makes the keys that share codes are made with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def keys() -> None:
    """Make the keys that share codes are made with."""


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the keys lie, or shall lie.", show_default=False)],
) -> None:
    """Make a key. In a file that holds keys already it becomes the current one, and the old ones still find codes.

    Give every worker the same file (`--keys-file` or TURNGATE_KEYS_FILE) and restart them. Without keys nobody is
    offered to share. Keep old keys for as long as somebody may take a grant back by its code, and keep the file as you
    keep passwords: whoever reads it can guess codes. It is never printed.

    Example:  turngate keys new /etc/turngate/keys.json
    """
    from turngate.streams.keys import add_key

    made = add_key(file)
    older = len(made.secrets) - 1
    typer.echo(f"{file}: key {made.current} is current" + (f", {older} older" if older else ""))
