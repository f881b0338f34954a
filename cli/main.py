"""Decides which commands `turngate` has."""

from __future__ import annotations

import io
import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from turngate.cli import (
    apply,
    assess,
    audit,
    deliver,
    demo,
    doctor,
    explain,
    export,
    gateway,
    importing,
    keys,
    mcp,
    operating,
    policy,
    replay,
    report,
    scenarios,
    send,
    slack,
    snapshot,
    store,
    tail,
    token,
    topics,
    up,
    worker,
)
from turngate.cli.group import Commands, ended

app = typer.Typer(
    name="turngate",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # a traceback with the values of variables would show texts and passwords
    context_settings={"help_option_names": ["-h", "--help"]},
)

_TRY = "Try it"
_ONE = "Run it in one process"
_RUN = "Run it on Kafka"
_FEED = "Bring records in"
_COMMAND = "Command it"
_LOOK = "Look at it"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(version("turngate"))
        raise typer.Exit


@app.callback()
def turngate(
    shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Turngate authorizes what AI agents say in chat rooms.

    A turn is delivered only if every possible reader of its destination was permitted every piece of evidence that fed
    it.

    To see it decide, without any server:  `turngate demo`

    To run it:  `turngate topics create`, `turngate worker`, and `turngate doctor` when something does not work.

    A log is either embedded (`--log FILE`) or on a broker (`--bootstrap-servers`). Settings are also read from
    `TURNGATE_…` variables; passwords only from there. Exit codes: 0 done, 1 the answer is no, 2 it could not be done.
    """


app.command(rich_help_panel=_TRY)(demo.demo)
app.command(rich_help_panel=_TRY)(scenarios.scenarios)
app.command(rich_help_panel=_TRY)(apply.apply)
app.command(rich_help_panel=_ONE)(up.up)
app.add_typer(topics.app, name="topics", rich_help_panel=_RUN)
app.command(rich_help_panel=_RUN)(worker.worker)
app.command(rich_help_panel=_RUN)(assess.assess)
app.command(rich_help_panel=_RUN)(deliver.deliver)
app.command(rich_help_panel=_RUN)(gateway.gateway)
app.command(rich_help_panel=_RUN)(mcp.mcp)
app.add_typer(token.app, name="token", rich_help_panel=_RUN)
app.add_typer(store.app, name="store", rich_help_panel=_RUN)
app.add_typer(keys.app, name="keys", rich_help_panel=_RUN)
app.add_typer(importing.app, name="import", rich_help_panel=_FEED)
app.command(rich_help_panel=_FEED)(send.send)
app.command(rich_help_panel=_FEED)(slack.events)
app.command(rich_help_panel=_FEED)(slack.roster)
app.command("slack-install", rich_help_panel=_FEED)(slack.install)
app.add_typer(policy.app, name="policy", rich_help_panel=_FEED)
for command in (operating.pause, operating.resume, operating.forget, operating.grant, operating.revoke):
    app.command(rich_help_panel=_COMMAND)(command)
app.command(rich_help_panel=_LOOK)(tail.tail)
app.command(rich_help_panel=_LOOK)(doctor.doctor)
app.command(rich_help_panel=_LOOK)(export.export)
app.command(rich_help_panel=_LOOK)(explain.explain)
app.command(rich_help_panel=_LOOK)(explain.who_can_see)
app.command(rich_help_panel=_LOOK)(explain.blast_radius)
app.command(rich_help_panel=_LOOK)(replay.replay)
app.add_typer(audit.app, name="audit", rich_help_panel=_LOOK)
app.command(rich_help_panel=_LOOK)(report.report)
app.command(rich_help_panel=_LOOK)(snapshot.snapshot)


def main() -> None:
    """The entry point of the command line."""
    # Libraries' own complaints would stand beside the one sentence that a command says; `worker` logs all of them.
    logging.getLogger().addHandler(logging.NullHandler())
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What other programs read is UTF-8 wherever it is written; in a file's name that is none, JSON's escapes.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:
        sys.exit(ended(error))
