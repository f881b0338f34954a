"""Decides how `turngate demo` is started."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def demo(
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR|ZIP", help="A Slack export of your own instead of the stories."),
    ] = None,
    story: Annotated[
        Literal["guards"] | None,
        typer.Option("--story", help="What goes out, where values come from, and the interlock, instead."),
    ] = None,
) -> None:
    """Show what Turngate decides, and why, on the history of a small workspace. No server, under 30 seconds.

    An agent that answers with whatever it knows drafts replies, some of which carry one room's words to another; each
    decision is shown as it falls, with its reason in words, and a table at the end.

    Example:  turngate demo --export my-workspace.zip
    """
    from rich.console import Console

    from turngate.demo import run_demo, run_guards

    if story is not None:
        if export is not None:
            raise typer.BadParameter("--story has a workspace of its own; leave --export out")
        raise typer.Exit(run_guards(Console()))
    raise typer.Exit(run_demo(Console(), export))
