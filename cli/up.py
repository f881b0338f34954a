"""Decides how `turngate up` starts: everything in one process on an embedded log, for a small team."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import embedded
from turngate.cli.options import Connection, KeysFile
from turngate.cli.slack_parts import (
    How,
    Listen,
    SlackFile,
    SlackUrl,
    SocketMode,
    following,
    hearing,
    log_lines,
    slack_api_at,
    slack_settings,
    until_stopped,
)


def up(
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="The embedded log.")],
    *,
    slack: Annotated[bool, typer.Option("--slack", help="Connect Slack, both ways.")] = False,
    slack_file: SlackFile = None,
    slack_api: SlackUrl = None,
    listen: Listen = None,
    socket_mode: SocketMode = False,
    keys_file: KeysFile = None,
) -> None:
    """Run all of it in one process, on one file, until SIGTERM or Ctrl-C: no broker, no database.

    Events come in, rooms are listed, drafts are decided, and what was authorized goes out. Killed at any moment it
    loses nothing that was acknowledged, and says nothing twice.

    Example:  turngate up --slack --socket-mode --slack-file slack.json --log turngate.db
    """
    if not slack:
        raise Impossible("nothing to connect: give --slack")
    with extra("slack"):
        import turngate.sinks.slack  # noqa: F401
    installations, tokens, url = slack_settings(slack_file, slack_api)
    how = How.read(listen, socket_mode, installations)
    connection = Connection({"log": log, "keys_file": keys_file, "bootstrap_servers": None})
    keys = connection.keys()
    log_lines(connection)

    async def run() -> None:
        from turngate.connectors.slack.members import People
        from turngate.connectors.slack.roster import Roster
        from turngate.schemas.codec import Codec
        from turngate.sinks.delivery import now_ms
        from turngate.sinks.embedded import EmbeddedDelivery
        from turngate.sinks.slack import SlackConnector
        from turngate.streams.local_feed import LocalFeed

        with embedded(log) as there:
            feed = LocalFeed(there, keys)
            async with (
                slack_api_at(url) as api,
                following(tokens, api),
                hearing(how, feed, api, installations, tokens) as heard,
            ):
                people = People(api)
                roster = Roster(api, installations, feed, people=people)
                connector = SlackConnector(api, people, installations, now_ms)
                delivery = EmbeddedDelivery(there, Codec(), connector, append=feed.append)
                await until_stopped(feed.tick(), *heard, roster.run(), delivery.run(feed))

    asyncio.run(run())
