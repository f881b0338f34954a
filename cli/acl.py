"""Decides how `turngate topics acl` prints who may write and read each topic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from turngate.cli.errors import Impossible, extra

_Named = list[str] | None


def _who(role: str, what: str) -> Any:
    return typer.Option(f"--{role}", metavar="TYPE:NAME", help=f"{what}; repeatable.", rich_help_panel="Principals")


def acl(
    *,
    bootstrap_servers: Annotated[
        str,
        typer.Option(metavar="HOST:PORT,…", envvar="TURNGATE_BOOTSTRAP_SERVERS", help="What the commands connect to."),
    ] = "localhost:9092",
    command_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The tool's own properties: how an administrator logs in.")
    ] = None,
    tool: Annotated[str, typer.Option(help="What Kafka's tool is called.")] = "kafka-acls.sh",
    remove: Annotated[bool, typer.Option("--remove", help="Take the same away again.")] = False,
    connector: Annotated[_Named, _who("connector", "Bring in what happens in rooms")] = None,
    agent: Annotated[_Named, _who("agent", "Agents' runtimes")] = None,
    assessor: Annotated[_Named, _who("assessor", "Label memory writes (`turngate assess`)")] = None,
    operator: Annotated[_Named, _who("operator", "Command, publish policies, see everything")] = None,
    worker: Annotated[_Named, _who("worker", "Decide (`turngate worker`)")] = None,
    sink: Annotated[_Named, _who("sink", "Send what was authorized")] = None,
    auditor: Annotated[_Named, _who("auditor", "Keep the record of decisions")] = None,
    store: Annotated[_Named, _who("store", "Fill the audit store (`turngate store fill`)")] = None,
    gateway: Annotated[_Named, _who("gateway", "Write for whoever has a token (`turngate gateway`)")] = None,
) -> None:
    """Print the broker's ACLs that make authority by topic true, as commands for Kafka's own tool.

    Each role is given what it needs to whoever is named for it, and the broker refuses everything else, as long as it
    has an authorizer and `allow.everyone.if.no.acl.found` is false. Nothing is sent to a broker.

    Example:  turngate topics acl --worker User:turngate --operator User:alex --bootstrap-servers broker:9092 | sh
    """
    from turngate.schemas.authority import Role

    with extra("kafka"):
        from turngate.streams.kafka.acl import commands
    given = (connector, agent, assessor, operator, worker, sink, auditor, store, gateway)
    principals = {role: tuple(who or ()) for role, who in zip(Role, given, strict=True)}
    for named in (name for names in principals.values() for name in names):
        kind, _, name = named.partition(":")
        if not kind or not name:
            raise Impossible(f"{named}: a principal is written TYPE:NAME, such as User:alex")
        if name == "*":
            raise Impossible(f"{named}: that is everybody, and a role is somebody's")
    if not any(principals.values()):
        raise Impossible("nobody is named: give principals to roles, such as --worker User:turngate")
    options = ["--bootstrap-server", bootstrap_servers]
    options += [] if command_config is None else ["--command-config", str(command_config)]
    for line in commands(principals, options, tool=tool, remove=remove):
        typer.echo(line)
    left = [role.value for role in Role if not principals[role]]
    if left:
        typer.echo(f"nobody is named for: {', '.join(left)}", err=True)
