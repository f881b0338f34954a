"""Decides how `turngate topics` prepares a broker."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from turngate.cli import acl
from turngate.cli.errors import extra
from turngate.cli.options import Connection, connects

app = typer.Typer(no_args_is_help=True, help="Make the topics, and say who may use them.")
app.command()(acl.acl)


@app.callback()
def topics() -> None:
    """Make the topics that everything else needs, and say who may use them."""


@app.command()
@connects()
def create(
    connection: Connection,
    partitions: Annotated[
        int, typer.Option(min=1, max=10_000, help="Of every topic alike; cannot be changed later.")
    ] = 8,
    replication: Annotated[int, typer.Option(min=1, max=10, help="Copies of each; 3 where there are 3 brokers.")] = 1,
) -> None:
    """Create every topic of the contract that is not there yet, and register the schemas where a registry is named.

    Topics that are there are left as they are and checked. A tenant is in one partition, so partitions are how far the
    load of many tenants can be spread over workers; more than you will ever have workers is right.

    Example:  turngate topics create --bootstrap-servers broker:9092 --partitions 12 --replication 3
    """
    with extra("kafka"):
        from turngate.streams.kafka.registry import register_schemas
        from turngate.streams.kafka.topics import create_topics
    settings, registry = connection.kafka(), connection.registry()
    made = asyncio.run(create_topics(settings, partitions, replication))
    typer.echo(f"{len(made)} topics created" + (f": {', '.join(made)}" if made else ", all of them are there"))
    if registry is not None:
        register_schemas(registry)
        typer.echo(f"schemas registered at {registry.url}")
