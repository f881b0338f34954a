"""Decides how `turngate policy` judges a policy document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turngate.cli import policy_diff, policy_suggest
from turngate.cli.errors import NO
from turngate.cli.files import policy_text
from turngate.streams.stderr import one_line

app = typer.Typer(no_args_is_help=True)
app.command()(policy_diff.diff)
app.command()(policy_suggest.suggest)


@app.callback()
def policy() -> None:
    """Look at tenants' policy documents."""


@app.command()
def check(
    document: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML or JSON document, `-` for standard input.")],
) -> None:
    """Say whether a policy document would be taken up, and if not, which line is wrong and why.

    A document that this refuses, the pipeline refuses too, and keeps the policy before it. Exit code 1: it is invalid.

    Example:  turngate policy check acme.yaml
    """
    from turngate.schemas.policy import PolicyInvalid, parse_policy
    from turngate.schemas.tooling import doubles

    text = policy_text(document)
    try:
        valid = parse_policy(text)
    except PolicyInvalid as error:
        typer.echo(one_line(f"{document}: {error}"), err=True)
        raise typer.Exit(NO) from None
    counts = (
        f"{len(valid.agents)} agents, {len(valid.tools)} tools, {len(valid.operations)} operations, "
        f"{len(valid.skills)} skills"
    )
    typer.echo(f"{document}: valid, version {valid.version}: {counts}")
    found = [(name, server, other) for server in valid.tools for name, other in doubles(valid, server).items()]
    for name, *servers in found:
        if servers == sorted(servers):  # each pair is found from both sides
            both = " and ".join(f"{server}'s {name.removeprefix(f'{server}.')}" for server in servers)
            typer.echo(
                f"{document}: operations.{name} is {both}, and `turngate mcp` calls neither: rename a server", err=True
            )
    if not valid.agents:
        typer.echo(f"{document}: names no agent, so nobody may say anything under it", err=True)
