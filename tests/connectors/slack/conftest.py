"""A Slack with one workspace, and the Web API asked there with its token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.slack import Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.installations import Installation


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as running:
        yield running


@pytest.fixture
def acme(slack: Slack) -> Workspace:
    home = slack.workspace("T1", bot="UBOT")
    for user in ("UALEX", "UBO", "UCY"):
        home.user(user)
    home.user("UGUEST", guest=True)
    home.user("UAPP", bot=True)
    return home


@pytest.fixture
def home(acme: Workspace) -> Installation:
    return installed(acme)


@pytest.fixture
async def api(slack: Slack) -> AsyncIterator[SlackApi]:
    async with SlackApi(slack.url) as running:
        yield running


def installed(workspace: Workspace, agent: str = "mesh") -> Installation:
    return Installation(
        app=workspace.app,
        team=workspace.id,
        tenant="acme",
        agent=agent,
        bot_user=workspace.bot,
        token=workspace.token,
        enterprise=workspace.enterprise,
    )
