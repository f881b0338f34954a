"""Decides how `turngate deliver` starts: what was authorized goes out into Slack, from an embedded log or a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import embedded
from turngate.cli.options import Connection, connects
from turngate.cli.running import log_lines, stopping, until_stopped
from turngate.cli.slack_parts import SlackFile, SlackUrl, following, slack_api_at, slack_settings

if TYPE_CHECKING:
    from turngate.connectors.slack.installations import Installations
    from turngate.connectors.slack.tokens import Tokens
    from turngate.streams.kafka.settings import PostgresSettings


@connects(log=True, postgres=True, keys=True)
def deliver(connection: Connection, *, slack_file: SlackFile = None, slack_api: SlackUrl = None) -> None:
    """Send what was authorized into Slack, once, until SIGTERM or Ctrl-C, and record what became of it.

    Right before, it lists the room and reads the log to its end: what has changed since withholds a turn. It also asks
    for approvals and shows offers to share. Any number of these processes share a broker's partitions and one Postgres,
    in which each turn is claimed; beside an embedded log the claims lie in its file.

    Example:  turngate deliver --slack-file slack.json --postgres-dsn postgresql://db/x --bootstrap-servers broker:9092
    """
    log = connection.log_file()
    with extra("slack"):
        import turngate.sinks.slack
    if log is None:
        with extra("kafka"):
            import turngate.sinks.service
        with extra("postgres"):
            import turngate.sinks.postgres_claims  # noqa: F401
    installations, tokens, url = slack_settings(slack_file, slack_api)
    if log is not None:
        log_lines(connection)
        asyncio.run(_on_log(connection, log, installations, tokens, url))
        return
    postgres = connection.postgres()
    if postgres is None:
        raise Impossible("no database to claim turns in: give --postgres-dsn or TURNGATE_POSTGRES_DSN")
    log_lines(connection)
    asyncio.run(_on_broker(connection, postgres, installations, tokens, url))


async def _on_log(
    connection: Connection, path: Path, installations: Installations, tokens: Tokens | None, url: str
) -> None:
    from turngate.connectors.slack.resolving import People
    from turngate.schemas.codec import Codec
    from turngate.sinks.embedded import EmbeddedDelivery
    from turngate.sinks.slack import SlackConnector
    from turngate.streams.clock import now_ms
    from turngate.streams.local_feed import LocalFeed

    with embedded(path) as log:
        feed = LocalFeed(log, connection.keys())
        async with slack_api_at(url) as api:
            connector = SlackConnector(api, People(api, installations), installations, now_ms)
            delivery = EmbeddedDelivery(log, Codec(), connector, append=feed.append)
            async with following(tokens):
                await until_stopped(feed.tick(), delivery.run(feed))


async def _on_broker(
    connection: Connection, postgres: PostgresSettings, installations: Installations, tokens: Tokens | None, url: str
) -> None:
    from turngate.connectors.slack.resolving import People
    from turngate.sinks.claims import ClaimsUnavailable
    from turngate.sinks.postgres_claims import PostgresClaims
    from turngate.sinks.service import DeliveryService
    from turngate.sinks.slack import SlackConnector
    from turngate.streams.clock import now_ms

    codec = await asyncio.to_thread(connection.codec)
    stop = stopping()
    try:
        async with slack_api_at(url) as api, PostgresClaims(postgres) as claims:
            connector = SlackConnector(api, People(api, installations), installations, now_ms)
            async with following(tokens):
                await DeliveryService(connection.kafka(), codec, claims, connector).run(stop)
    except ClaimsUnavailable as error:
        raise Impossible(str(error)) from None
