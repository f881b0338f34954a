"""Decides what the commands around Slack share: its settings and tokens, and how events come in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.running import Work, place_of
from turngate.streams.clock import now_ms

if TYPE_CHECKING:
    from turngate.connectors.slack.api import SlackApi
    from turngate.connectors.slack.http import EventsServer
    from turngate.connectors.slack.installations import Installations
    from turngate.connectors.slack.intake import Intake
    from turngate.connectors.slack.tokens import Tokens
    from turngate.streams.feed import Feed

_PANEL = "Slack"
SlackFile = Annotated[
    Path | None,
    typer.Option(
        "--slack-file",
        metavar="FILE",
        help="Apps, workspaces and tokens, of mode 600; see docs/slack.md. [TURNGATE_SLACK_FILE]",
        rich_help_panel=_PANEL,
    ),
]
SlackUrl = Annotated[
    str | None,
    typer.Option(
        "--slack-api",
        metavar="URL",
        envvar="TURNGATE_SLACK_API",
        help="Another Web API, as GovSlack has.",
        rich_help_panel=_PANEL,
    ),
]
Listen = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Take Slack's POSTs to /slack/events here.", rich_help_panel=_PANEL),
]
SocketMode = Annotated[
    bool, typer.Option("--socket-mode", help="Connect to Slack instead, by each app_token.", rich_help_panel=_PANEL)
]
#: Milliseconds by which this clock and a broker's may differ.
_SKEW = 60_000


def slack_settings(slack_file: Path | None, slack_api: str | None) -> tuple[Installations, Tokens | None, str]:
    """The workspaces, what keeps them as their file says, if they are in one, and where Slack's Web API is.

    Raises `Impossible` or `SettingsError` where they are no use.
    """
    from turngate.connectors.slack.installations import installations_file, read_installations

    with extra("slack"):
        from turngate.connectors.slack.api import BASE_URL
        from turngate.connectors.slack.tokens import Tokens
    from turngate.streams.kafka.settings import loopback

    url = slack_api or BASE_URL
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback(parts.hostname or "")):
        raise Impossible("--slack-api: must be an https:// URL, or tokens would be sent unencrypted")
    installations, path = read_installations(slack_file), installations_file(slack_file)
    if path is None and any(home.refresh_token is not None for home in installations):
        raise Impossible("TURNGATE_SLACK: a token that is renewed needs a file to be written to: give --slack-file")
    return installations, None if path is None else Tokens(path, installations), url


@asynccontextmanager
async def following(tokens: Tokens | None, api: SlackApi | None = None) -> AsyncIterator[None]:
    """The installations are as their file says; with an `api`, tokens that end are renewed."""
    work = [] if tokens is None else [tokens.follow()] if api is None else [tokens.follow(), tokens.renew(api)]
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def slack_api_at(url: str) -> SlackApi:
    """The Web API there."""
    from turngate.connectors.slack.api import SlackApi

    return SlackApi(url)


@dataclass(frozen=True, slots=True)
class How:
    """How events come: `place` is where they are POSTed, None over Socket Mode."""

    place: tuple[str, int] | None

    @classmethod
    def read(cls, listen: str | None, socket_mode: bool, installations: Installations) -> How:
        """Raises `Impossible` where it is not said, or the Slack file has nothing for it."""
        if (listen is None) is not socket_mode:
            raise Impossible("give either --listen HOST:PORT or --socket-mode")
        apps = installations.apps.values()
        if not any((app.signing_secret if listen else app.app_token) for app in apps):
            raise Impossible(f"no app has {'a signing_secret' if listen else 'an app_token'}; see docs/slack.md")
        return cls(None if listen is None else place_of(listen))


@asynccontextmanager
async def hearing(
    how: How, feed: Feed, api: SlackApi, installations: Installations, tokens: Tokens | None
) -> AsyncIterator[list[Work]]:
    """Take in what happens in Slack while the work that this gives is done."""
    from turngate.connectors.slack.answers import Answers
    from turngate.connectors.slack.directory import looked_back
    from turngate.connectors.slack.http import EventsServer
    from turngate.connectors.slack.installing import Installer
    from turngate.connectors.slack.intake import Intake
    from turngate.connectors.slack.socket import Socket
    from turngate.connectors.slack.uninstalling import Uninstalling
    from turngate.sinks.presses import Presses

    directory = await looked_back(feed, now_ms())
    uninstalling = Uninstalling(api, tokens)
    intake = Intake(installations, directory, feed.append, told=uninstalling.told)
    answers = Answers(installations, directory, feed.append, Presses())
    await intake.missed()
    if how.place is None:
        apps = [app for app in installations.apps.values() if app.app_token is not None]
        yield [
            _learning(feed, intake),
            uninstalling.run(),
            *(Socket(api, app, intake, answers.take).run() for app in apps),
        ]
        return
    installer = None if tokens is None else Installer(api, tokens, installations)
    async with _serving(EventsServer(installations, intake, answers.take, installer), how.place):
        yield [_learning(feed, intake), uninstalling.run()]


async def _learning(feed: Feed, intake: Intake) -> None:
    """Follow the listings. Those that came while the process began are seen again, which changes nothing."""
    async for record in feed.follow("membership-refreshes", now_ms() - _SKEW):
        await intake.listed(record)


@asynccontextmanager
async def _serving(server: EventsServer, place: tuple[str, int]) -> AsyncIterator[None]:
    from aiohttp import web

    runner = web.AppRunner(server.application(), access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *place).start()
        except OSError as error:
            raise Impossible(f"--listen {place[0]}:{place[1]}: {error.strerror}") from None
        for host, port, *_ in runner.addresses:
            logging.getLogger(__name__).info("listening on %s:%d", host, port)
        yield
    finally:
        await runner.cleanup()
