"""Decides how `turngate events`, `roster` and `slack-install` start: what connects a log with Slack, inwards."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.options import Connection, connects
from turngate.cli.running import feed_of, log_lines, until_stopped
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


@connects(log=True, keys=True)
def roster(connection: Connection, *, slack_file: SlackFile = None, slack_api: SlackUrl = None) -> None:
    """List who can read each conversation, when the engine asks and before that goes stale, until SIGTERM or Ctrl-C.

    A listing has everybody, or says that it failed. One of these processes serves any number of workspaces; a second
    one would do everything twice.

    Example:  turngate roster --slack-file slack.json --bootstrap-servers broker:9092
    """
    with extra("slack"):
        from turngate.connectors.slack.roster import Roster
    installations, tokens, url = slack_settings(slack_file, slack_api)
    log_lines(connection)

    async def run() -> None:
        async with feed_of(connection) as (feed, work), slack_api_at(url) as api, following(tokens, api):
            await until_stopped(*work, Roster(api, installations, feed).run())

    asyncio.run(run())


@connects(log=True, keys=True)
def events(
    connection: Connection,
    *,
    slack_file: SlackFile = None,
    slack_api: SlackUrl = None,
    listen: Listen = None,
    socket_mode: SocketMode = False,
) -> None:
    """Take in what happens in Slack, until SIGTERM or Ctrl-C: messages, joins and leaves, whatever changes a room.

    An event is acknowledged when it is on the log, and a request that is not signed by Slack is refused. When it
    starts, every room counts as unknown until it was listed again, since events may have been missed.

    Example:  turngate events --listen 0.0.0.0:3000 --slack-file slack.json --bootstrap-servers broker:9092
    """
    with extra("slack"):
        import turngate.connectors.slack.http  # noqa: F401
    installations, tokens, url = slack_settings(slack_file, slack_api)
    how = How.read(listen, socket_mode, installations)
    log_lines(connection)

    async def run() -> None:
        async with (
            feed_of(connection) as (feed, work),
            slack_api_at(url) as api,
            following(tokens),
            hearing(how, feed, api, installations, tokens) as heard,
        ):
            await until_stopped(*work, *heard)

    asyncio.run(run())


def install(
    app: Annotated[str, typer.Option(metavar="ID", help="The app, as the Slack file names it.")],
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose workspace it is.")],
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent that speaks there.")],
    team: Annotated[str, typer.Option(metavar="ID", help="The workspace (T…), or the whole organisation (E…).")],
    redirect_url: Annotated[
        str, typer.Option(metavar="URL", help="Where `turngate events` answers: https://…/slack/oauth")
    ],
    *,
    slack_file: SlackFile = None,
) -> None:
    """Print the address at which somebody installs the app in that workspace or organisation, within the next hour.

    `turngate events --listen` takes Slack's answer and writes the token to the Slack file, which every other process
    then reads anew. The app needs its client_id and client_secret there.

    Example:  turngate slack-install --app A0123 --team T0123 --tenant acme --agent mesh --redirect-url https://…/oauth
    """
    from pydantic import TypeAdapter, ValidationError

    from turngate.connectors.slack.installations import read_installations
    from turngate.schemas.shapes import Tenant

    with extra("slack"):
        from turngate.connectors.slack.ids import is_id
        from turngate.connectors.slack.installing import Wanted, link
    found = read_installations(slack_file).apps.get(app)
    if found is None or found.client_id is None or found.client_secret is None:
        raise Impossible(f"--app {app}: the Slack file has no such app, or not its client_id and client_secret")
    try:
        TypeAdapter(Tenant).validate_python(tenant)
    except ValidationError:
        raise Impossible(f"--tenant {tenant}: is no tenant's id") from None
    if not is_id(team) or team[0] not in "TE":
        raise Impossible(f"--team {team}: is neither a workspace's id (T…) nor an organisation's (E…)")
    typer.echo(link(found, Wanted(app, tenant, agent, team, redirect_url)))
