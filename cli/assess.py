"""Decides how `turngate assess` starts."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import extra
from turngate.cli.options import Connection, connects
from turngate.cli.running import stopping

if TYPE_CHECKING:
    from turngate.connectors.assessor.endpoint import EndpointSettings


@connects()
def assess(
    connection: Connection,
    *,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", envvar="TURNGATE_ASSESSOR_ENDPOINT", help="An HTTP endpoint to ask.")
    ] = None,
    endpoint_ca_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pem", envvar="TURNGATE_ASSESSOR_CA_FILE", help="The authority of its certificate."),
    ] = None,
) -> None:
    """Label memory writes, until SIGTERM or Ctrl-C, for tenants whose policy enables `sensitivity`.

    The endpoint gets `{"write", "memory", "text", "kind"}` by POST, and answers `{"label": "ordinary"}`, `sensitive` or
    `uncertain`, with a `note` and `ask_author` if it likes. Anything else, or nothing before the policy's deadline, is
    `uncertain`, and the memory stays in its room. A token for it only from TURNGATE_ASSESSOR_TOKEN. Without an endpoint
    a few rules about English words and numbers decide. Any number of these processes share the writes.

    Example:  turngate assess --endpoint https://labels.acme.example/v1 --bootstrap-servers broker:9092
    """
    with extra("kafka"):
        from turngate.connectors.assessor.endpoint import EndpointSettings
        from turngate.streams.kafka.environment import TlsFiles
    from turngate.streams.stderr import log_to_stderr

    asked = None
    if endpoint is not None:
        token = os.environ.get("TURNGATE_ASSESSOR_TOKEN") or None
        asked = EndpointSettings(endpoint, TlsFiles(ca=endpoint_ca_file), token)
        asked.check()
        if asked.exposed:
            typer.echo("the endpoint is http:// on another machine: texts are sent to it unencrypted", err=True)
    connection.kafka()
    log_to_stderr()
    asyncio.run(_run(connection, asked))


async def _run(connection: Connection, asked: EndpointSettings | None) -> None:
    from turngate.connectors.assessor.endpoint import Endpoint
    from turngate.connectors.assessor.rules import assess_by_rules
    from turngate.connectors.assessor.service import Assessor

    codec = await asyncio.to_thread(connection.codec)
    if asked is None:
        await Assessor(connection.kafka(), codec, assess_by_rules).run(stopping())
        return
    async with Endpoint(asked) as endpoint:
        await Assessor(connection.kafka(), codec, endpoint.assess).run(stopping())
