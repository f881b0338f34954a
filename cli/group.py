"""Decides what becomes of an error that a command raises."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from turngate.cli.errors import IMPOSSIBLE, Impossible
from turngate.streams.stderr import one_line


class Commands(TyperGroup):
    """A group of commands whose expected errors are one line on stderr and exit code 2, and no traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            raise typer.Exit(ended(error)) from None
        except Exception as error:
            message = _expected(error)
            if message is None:
                raise
            _say(message)
            raise typer.Exit(IMPOSSIBLE) from None


def ended(error: OSError) -> int:
    """Say in one line what the system refused, such as to write to a full disk; the exit code, which is no answer."""
    try:
        sys.stdout.flush()
    except OSError:
        # What is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):  # whoever read the output has seen enough
        what = error.strerror or type(error).__name__
        _say(what if error.filename is None else f"{error.filename}: {what}")
    return IMPOSSIBLE


def _say(message: str) -> None:
    seen = "\n".join(map(one_line, message.split("\n")))  # a file's name may hold what a terminal takes for a command
    typer.secho(f"turngate: {seen}", err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)


def _expected(error: Exception) -> str | None:
    """The message of an error that is the world's and not the program's, else None."""
    if isinstance(error, Impossible):
        return str(error)
    # Whatever raises one of these has imported its module already; importing it here would slow every command down.
    for module, name in (
        ("turngate.streams.log", "LogError"),
        ("turngate.streams.scenarios.errors", "ScenarioError"),
        ("turngate.processors.errors", "StateVersionError"),
        ("turngate.connectors.slack_export.errors", "ExportError"),
    ):
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return str(error)
    return None
