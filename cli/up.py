"""Decides how `turngate up` starts: everything in one process on an embedded log, for a small team."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import embedded
from turngate.cli.gateway import MaxBody, Rate, Tls, TokensFile, limits_of, serving, tokens_of
from turngate.cli.options import Connection, KeysFile
from turngate.cli.running import Work, log_lines, place_of, until_stopped
from turngate.cli.slack_parts import (
    How,
    Listen,
    SlackFile,
    SlackUrl,
    SocketMode,
    following,
    hearing,
    slack_api_at,
    slack_settings,
)
from turngate.cli.what_if import Shadow, ShadowTenant, shadowing

if TYPE_CHECKING:
    from turngate.connectors.slack.api import SlackApi
    from turngate.connectors.slack.installations import Installations
    from turngate.connectors.slack.tokens import Tokens
    from turngate.sinks.errands import Patience
    from turngate.streams.local_feed import LocalFeed
    from turngate.streams.local_log import LocalLog


def up(
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="The embedded log.")],
    *,
    slack: Annotated[bool, typer.Option("--slack", help="Connect Slack, both ways.")] = False,
    slack_file: SlackFile = None,
    slack_api: SlackUrl = None,
    listen: Listen = None,
    socket_mode: SocketMode = False,
    gateway: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the gateway answers.", rich_help_panel="Gateway")
    ] = "127.0.0.1:8080",
    tokens_file: TokensFile = None,
    tls: Tls = None,
    rate: Rate = 200,
    max_body: MaxBody = 1 << 20,
    keys_file: KeysFile = None,
    shadow: Shadow = None,
    shadow_tenant: ShadowTenant = None,
) -> None:
    """Run all of it in one process, on one file, until SIGTERM or Ctrl-C: no broker, no database.

    With a tokens file, agents and connectors ask over HTTP (docs/gateway.md). With --slack, events come in, rooms are
    listed, and what was authorized goes out. Every decision and its trace lie on the log. Killed at any moment it
    loses nothing that was acknowledged, and says nothing twice.

    Example:  turngate up --tokens-file tokens.json --log turngate.db

    Example:  turngate up --slack --socket-mode --slack-file slack.json --log turngate.db
    """
    if not slack and tokens_file is None:
        raise Impossible("nothing to connect: give --slack, or --tokens-file, which `turngate token create` makes")
    place = place_of(gateway, "--gateway")
    chat = _Slack.read(slack_file, slack_api, listen, socket_mode) if slack else None
    connection = Connection({"log": log, "keys_file": keys_file, "bootstrap_servers": None})
    tokens = None if tokens_file is None else tokens_of(connection, tokens_file)[0]
    keys = connection.keys()
    restore = shadowing(shadow, shadow_tenant, keys)
    log_lines(connection)

    async def run() -> None:
        from turngate.streams.local_feed import LocalFeed

        with embedded(log) as there:
            feed = LocalFeed(there, keys, restore=restore)
            async with contextlib.AsyncExitStack() as stack:
                work = [] if chat is None else await chat.connected(there, feed, stack)
                if tokens is not None:
                    work.append(serving(feed, tokens, place, limits_of(rate, max_body), tls, "--gateway").run())
                await until_stopped(feed.tick(), *work)

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class _Slack:
    """Slack, both ways."""

    installations: Installations
    tokens: Tokens | None
    url: str
    how: How

    @classmethod
    def read(cls, file: Path | None, api: str | None, listen: str | None, socket_mode: bool) -> _Slack:
        """Raises `Impossible` or `SettingsError` where the settings are no use."""
        with extra("slack"):
            import turngate.sinks.slack  # noqa: F401
        installations, tokens, url = slack_settings(file, api)
        return cls(installations, tokens, url, How.read(listen, socket_mode, installations))

    async def connected(self, log: LocalLog, feed: LocalFeed, stack: contextlib.AsyncExitStack) -> list[Work]:
        """Connected until the stack is left; the work that is to be done."""
        api = await stack.enter_async_context(slack_api_at(self.url))
        await stack.enter_async_context(following(self.tokens, api))
        heard = await stack.enter_async_context(hearing(self.how, feed, api, self.installations, self.tokens))
        return [*heard, *both_ways(log, feed, api, self.installations)]


def both_ways(
    log: LocalLog, feed: LocalFeed, api: SlackApi, installations: Installations, patience: Patience | None = None
) -> list[Work]:
    """Rooms are listed, and what was authorized goes out."""
    from turngate.connectors.slack.resolving import People
    from turngate.connectors.slack.roster import Roster
    from turngate.schemas.codec import Codec
    from turngate.sinks.embedded import EmbeddedDelivery
    from turngate.sinks.slack import SlackConnector
    from turngate.streams.clock import now_ms

    people = People(api, installations)
    roster = Roster(api, installations, feed, people=people)
    connector = SlackConnector(api, people, installations, now_ms)
    delivery = EmbeddedDelivery(log, Codec(), connector, append=feed.append, patience=patience)
    return [roster.run(), delivery.run(feed)]
