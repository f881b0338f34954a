"""Decides how `turngate worker` starts."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from turngate.cli.errors import extra
from turngate.cli.options import Connection, connects
from turngate.cli.what_if import Shadow, ShadowTenant, shadowing


@connects(keys=True)
def worker(
    connection: Connection,
    instance: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name that survives restarts: its partitions come back at once."),
    ] = None,
    memory_limit: Annotated[
        int | None, typer.Option(metavar="MIB", min=64, help="Refuse more state than this; else the container's limit.")
    ] = None,
    admit_ahead: Annotated[
        list[int] | None,
        typer.Option(metavar="PARTITION", help="Go on with a partition that halted for records from the future."),
    ] = None,
    shadow: Shadow = None,
    shadow_tenant: ShadowTenant = None,
) -> None:
    """Decide drafts on a broker until SIGTERM or Ctrl-C, then commit and leave.

    It checks the topics first, and says in one sentence what is missing. Any number of workers share the partitions;
    one that dies loses nothing. What it does is logged to standard error.

    With --shadow every decision is also tried under that policy, one step each, and where it would be another,
    `shadow-verdicts` says so. Nothing else changes. Give it to every worker: each tries what it decides itself.

    Examples:  turngate worker --bootstrap-servers broker:9092 --instance "$HOSTNAME"

    turngate worker --bootstrap-servers broker:9092 --shadow acme-8.yaml --shadow-tenant acme
    """
    from turngate.processors.engine import Engine

    with extra("kafka"):
        from turngate.streams.kafka.service import WorkerOptions
        from turngate.streams.kafka.worker import run_worker
    from turngate.streams.stderr import log_to_stderr

    limit = None if memory_limit is None else memory_limit << 20
    options = WorkerOptions(instance=instance, memory_limit=limit, admit_ahead=frozenset(admit_ahead or ()))
    settings, registry = connection.kafka(), connection.registry()
    keys = connection.keys()
    restore = shadowing(shadow, shadow_tenant, keys) or partial(Engine.restore, keys=keys)
    log_to_stderr()
    run_worker(settings, registry, options, restore)
