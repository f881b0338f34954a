"""Decides which workspaces an app of Slack's is installed in, whose they are, and where tokens and secrets come from.

The document is JSON: `apps`, a list of objects with the fields of `App`, and `workspaces`, one with those of
`Installation`. An app that is installed for a whole organisation has an entry for each of its workspaces, with the same
token. No secret is in a record, a log, an error or a `repr`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StrictInt, StringConstraints, ValidationError

from turngate.connectors.slack.ids import SLACK_ID
from turngate.schemas.shapes import Id, Tenant
from turngate.streams.kafka.environment import Environment, SettingsError
from turngate.streams.private import private_text, write_private

_FILE = "Slack file"
SlackId = Annotated[str, StringConstraints(pattern=rf"^{SLACK_ID.pattern}$")]
Secret = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=r"^[!-~]+$")]


@dataclass(frozen=True, slots=True)
class App:
    """An app. `signing_secret`: of what Slack POSTs; `app_token`: opens Socket Mode; `client_…`: for installing it."""

    id: str
    signing_secret: str | None = field(default=None, repr=False)
    app_token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Installation:
    """An app in a workspace: for whom it is there, the account that it speaks as, and its token.

    A token that ends at `expires_at` (seconds since 1970) is renewed by its `refresh_token`, which is good once.
    """

    app: str
    team: str
    tenant: str
    agent: str
    bot_user: str
    token: str = field(repr=False)
    enterprise: str | None = None
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: int | None = None

    @property
    def namespace(self) -> str:
        """The namespace of its rooms and readers."""
        return f"slack:{self.team}"

    @property
    def account(self) -> str:
        """The reader id of the agent's own account, as the policy lists it."""
        return f"{self.namespace}/{self.bot_user}"

    def room(self, conversation: str) -> str:
        """The room id of a conversation."""
        return f"{self.namespace}/{conversation}"


class Installations:
    """All of them. An app has one installation in a workspace, and an agent of a tenant has one app there."""

    def __init__(self, apps: Iterable[App], installations: Iterable[Installation]) -> None:
        self.apps = {app.id: app for app in apps}
        self._all: dict[tuple[str, str], Installation] = {}
        self._agents: dict[tuple[str, str, str], Installation] = {}
        for i in installations:
            agent = (i.tenant, i.agent, i.team)
            if i.app not in self.apps:
                raise SettingsError(f"Slack: workspace {i.team} has app {i.app}, which is not under apps")
            if (i.app, i.team) in self._all or agent in self._agents:
                raise SettingsError(f"Slack: workspace {i.team} is there twice for app {i.app} or agent {i.agent}")
            self._all[i.app, i.team] = i
            self._agents[agent] = i

    def become(self, other: Installations) -> None:
        """Be as these are from now on, for everybody who holds this."""
        self.apps, self._all, self._agents = other.apps, other._all, other._agents

    def __iter__(self) -> Iterator[Installation]:
        return iter(self._all.values())

    def of_app(self, app: str) -> list[Installation]:
        """Where an app is installed."""
        return [i for i in self._all.values() if i.app == app]

    def of(self, app: str, team: str) -> Installation | None:
        """An app in a workspace."""
        return self._all.get((app, team))

    def of_agent(self, tenant: str, agent: str, team: str) -> Installation | None:
        """An agent's in a workspace."""
        return self._agents.get((tenant, agent, team))

    def of_room(self, tenant: str, agent: str, room: str) -> Installation | None:
        """The one whose token is used for a room: the agent's, in the room's own workspace."""
        namespace, _, conversation = room.partition("/")
        connector, _, team = namespace.partition(":")
        found = self.of_agent(tenant, agent, team)
        return found if connector == "slack" and SLACK_ID.fullmatch(conversation) else None


class _App(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    id: SlackId
    signing_secret: Secret | None = None
    app_token: Secret | None = None
    client_id: Secret | None = None
    client_secret: Secret | None = None


class _Workspace(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    app: SlackId
    team: SlackId
    tenant: Tenant
    agent: Id
    bot_user: SlackId
    token: Secret
    enterprise: SlackId | None = None
    refresh_token: Secret | None = None
    expires_at: StrictInt | None = None


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    apps: list[_App]
    workspaces: list[_Workspace]


def read_installations(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Installations:
    """Those of this file, else of the file that `TURNGATE_SLACK_FILE` names, or of `TURNGATE_SLACK` (the document).

    Raises `SettingsError` for a file that is missing, that others could read, or that holds something else; where both
    variables are set, and where none is. The message quotes nothing that was read.
    """
    path = installations_file(file, environment)
    if path is not None:
        return _parsed(f"{_FILE} {path}", private_text(_FILE, path))
    text = Environment("TURNGATE", environment).text("SLACK", None)
    if text is None:
        raise SettingsError("no Slack workspace: give --slack-file, TURNGATE_SLACK_FILE or TURNGATE_SLACK")
    return _parsed("TURNGATE_SLACK", text)


def installations_file(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file that is read, None where it is the environment. Raises `SettingsError` where that names both."""
    env = Environment("TURNGATE", environment)
    path = env.path("SLACK_FILE", None if file is None else str(file))
    if path is not None and file is None and env.text("SLACK", None) is not None:
        raise SettingsError("TURNGATE_SLACK_FILE and TURNGATE_SLACK are both set: keep one of them")
    return path


def write_installations(path: Path, installations: Installations) -> None:
    """Write the document anew, all of it or nothing. Raises `SettingsError`."""
    document = {
        "apps": [_given(app) for app in installations.apps.values()],
        "workspaces": [_given(home) for home in installations],
    }
    write_private(_FILE, path, json.dumps(document, indent=2) + "\n")


def _given(one: App | Installation) -> dict[str, object]:
    return {name: value for name, value in asdict(one).items() if value is not None}


def _parsed(source: str, text: str) -> Installations:
    try:
        document = _Document.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "it"
        raise SettingsError(f"{source}: {place}: {first['msg']}") from None
    apps = (App(**dict(app)) for app in document.apps)
    return Installations(apps, (Installation(**dict(home)) for home in document.workspaces))
