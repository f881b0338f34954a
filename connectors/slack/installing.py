"""Decides how an app gets into a workspace by Slack's OAuth: the one that an operator names, for a tenant's agent.

The link that Slack is asked with carries a state that is signed with the app's client secret and good for an hour, so
that nobody installs an app for a tenant who was not given a link by whoever holds the secret, nor anywhere else: the
rooms of a workspace are the tenant's from then on.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.installations import App, Installation, Installations
from turngate.connectors.slack.members import next_cursor
from turngate.connectors.slack.rooms import Odd
from turngate.connectors.slack.tokens import Tokens
from turngate.streams.log import LogError

AUTHORIZE = "https://slack.com/oauth/v2/authorize"
#: Seconds for which a link is good.
GOOD_FOR = 3_600
#: What is asked for (docs/slack.md says what each is for).
SCOPES = (
    *("channels:read", "groups:read", "im:read", "mpim:read", "users:read"),
    *("channels:history", "groups:history", "im:history", "mpim:history", "metadata.message:read"),
    *("conversations.connect:read", "chat:write", "im:write", "team:read", "commands"),
)
_MOST_PAGES = 100

log = logging.getLogger(__name__)


class NotInstalled(Exception):
    """An installation that is not to be. The message says why, and quotes no secret."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be installed: an app for a tenant's agent in a workspace (`T…`) or organisation (`E…`).

    `redirect`: the address to which Slack sends whoever has agreed.
    """

    app: str
    tenant: str
    agent: str
    team: str
    redirect: str


def link(app: App, wanted: Wanted, now: float | None = None) -> str:
    """The address at which somebody installs the app."""
    state = _signed(app, asdict(wanted), now)
    asked = {"client_id": app.client_id, "scope": ",".join(SCOPES), "redirect_uri": wanted.redirect, "state": state}
    asked |= {"team": wanted.team} if wanted.team.startswith("T") else {}
    return f"{AUTHORIZE}?{urlencode(asked)}"


def opened(apps: Mapping[str, App], state: str, now: float | None = None) -> Wanted:
    """What a state says. Raises `NotInstalled` for one not ours, or too old."""
    body, _, given = state.partition(".")
    for app in apps.values():
        if app.client_secret is not None and hmac.compare_digest(_signature(app, body).encode(), given.encode()):
            said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body))
            if said["app"] != app.id or said.pop("until") < (time.time() if now is None else now):
                break
            with suppress(TypeError):  # of a version that signed something else
                return Wanted(**said)
    raise NotInstalled("this link is not good, or not any more; ask for another one")


async def wrong(api: SlackApi, home: Installation) -> str | None:
    """What is not right about an installation, in words; None where its token is whose the file says, with all scopes.

    Without `commands` and `team:read` all else works.
    """
    try:
        answer, scopes = await api.identity(home)
    except CallFailed as failed:
        return f"Slack does not know its token: {failed}"
    if answer.get("user_id") != home.bot_user:
        return "its token is another account's than bot_user says"
    if answer.get("is_enterprise_install") is not True and answer.get("team_id") != home.team:
        return "its token is another workspace's"
    if answer.get("enterprise_id") != home.enterprise:
        return "its enterprise is another than Slack says, so who is of the organisation is not known"
    missing = [scope for scope in SCOPES if scope not in scopes and scope not in ("commands", "team:read")]
    return f"its token lacks {', '.join(missing)}: see docs/slack.md, and install it again" if missing else None


class Installer:
    """Finishes what `link` began, and writes it to the Slack file."""

    def __init__(self, api: SlackApi, tokens: Tokens, installations: Installations) -> None:
        self._api = api
        self._tokens = tokens
        self._installations = installations

    async def finish(self, code: str, state: str) -> str:
        """What is said to whoever installed it. Raises `NotInstalled`."""
        wanted = opened(self._installations.apps, state)
        app = self._installations.apps[wanted.app]
        try:
            answer = await self._api.authorize(app, code=code, redirect_uri=wanted.redirect)
            homes = await installations_of(self._api, app, answer, wanted.tenant, wanted.agent)
            _as_wanted(homes, answer, wanted)
            for home in homes:
                there = self._installations.of(home.app, home.team)
                if there is not None and (there.tenant, there.agent) != (home.tenant, home.agent):
                    raise NotInstalled(f"workspace {home.team} has this app for somebody else; take it out of the file")
            self._tokens.put(homes)
        except (CallFailed, Odd) as failed:
            raise NotInstalled(f"Slack does not give a token: {failed}") from None
        except LogError as error:
            log.error("an installation cannot be written: %s", error)
            raise NotInstalled("it cannot be written down; the log says why") from None
        log.info("installed in %s", ", ".join(home.team for home in homes))
        return f"Installed in {', '.join(home.team for home in homes)}."


def _as_wanted(homes: Sequence[Installation], answer: Mapping[str, Any], wanted: Wanted) -> None:
    """Raise `NotInstalled` where somebody has chosen another workspace than the one that the link is for."""
    everywhere = answer.get("is_enterprise_install") is True
    there = {home.enterprise for home in homes} if everywhere else {home.team for home in homes}
    if there != {wanted.team}:
        places = ", ".join(sorted(str(place) for place in there))
        raise NotInstalled(f"this link is for {wanted.team}, and not for {places}: remove the app there again")


async def installations_of(
    api: SlackApi, app: App, answer: Mapping[str, Any], tenant: str, agent: str, now: float | None = None
) -> Sequence[Installation]:
    """What Slack's answer to the code comes to: a workspace, or each of an organisation's. Raises `NotInstalled`."""
    token, bot, seconds = (answer.get(name) for name in ("access_token", "bot_user_id", "expires_in"))
    enterprise, team = (_id(answer.get(name)) for name in ("enterprise", "team"))
    if answer.get("app_id") != app.id or not isinstance(token, str) or not is_id(bot):
        raise NotInstalled("Slack's answer is not about this app")
    refresh = answer.get("refresh_token")
    ends = int(time.time() if now is None else now) + seconds if isinstance(seconds, int) else None
    one = Installation(
        app=app.id,
        team=team or "",
        tenant=tenant,
        agent=agent,
        bot_user=str(bot),
        token=token,
        enterprise=enterprise,
        refresh_token=refresh if isinstance(refresh, str) else None,
        expires_at=ends,
    )
    if answer.get("is_enterprise_install") is not True:
        if team is None:
            raise NotInstalled("Slack's answer names no workspace")
        return [one]
    teams = await teams_of(api, one)
    if not teams:
        raise NotInstalled("no workspace of the organisation has the app yet: add it to one, then install again")
    return [Installation(**{**_fields(one), "team": name}) for name in teams]


async def teams_of(api: SlackApi, home: Installation) -> list[str]:
    """The workspaces of the organisation that have the app. Raises `CallFailed`, and `Odd` for what is no answer."""
    teams: list[str] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        answer = await api.call(home, "auth.teams.list", limit=100, cursor=cursor)
        found = answer.get("teams")
        if not isinstance(found, list) or not all(isinstance(t, dict) and is_id(t.get("id")) for t in found):
            raise Odd("teams")
        teams += [str(t["id"]) for t in found]
        cursor = next_cursor(answer)
        if cursor is None:
            return teams
    raise Odd("pages_without_end")


def _fields(home: Installation) -> dict[str, Any]:
    return {name: getattr(home, name) for name in home.__slots__}


def _id(value: object) -> str | None:
    found = value.get("id") if isinstance(value, dict) else None
    return str(found) if is_id(found) else None


def _signed(app: App, said: dict[str, str], now: float | None) -> str:
    until = int(time.time() if now is None else now) + GOOD_FOR
    body = base64.urlsafe_b64encode(json.dumps({**said, "until": until}).encode()).decode()
    return f"{body}.{_signature(app, body)}"


def _signature(app: App, body: str) -> str:
    secret = (app.client_secret or "").encode()
    return hmac.new(secret, b"turngate-install:" + body.encode(), hashlib.sha256).hexdigest()
