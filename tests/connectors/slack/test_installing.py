"""An app is installed by who was given a link, in the workspace and for the tenant that the link was made for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from tests.connectors.slack.scene import installed
from tests.connectors.slack.test_intake import served
from tests.connectors.slack.test_tokens import APP, NOW, kept
from tests.slack import Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.http import OAUTH, EventsServer
from turngate.connectors.slack.installations import App, Installations, read_installations, write_installations
from turngate.connectors.slack.installing import GOOD_FOR, Installer, NotInstalled, Wanted, link, opened
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.tokens import Tokens

REDIRECT = "https://turngate.acme.example/slack/oauth"
WANTED = Wanted("A1", "acme", "mesh", "T1", REDIRECT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_installations(tmp_path / "slack.json", Installations([APP], []))
    return tmp_path / "slack.json"


def state_of(address: str) -> str:
    return parse_qs(urlsplit(address).query)["state"][0]


def test_a_link_is_good_for_an_hour_and_for_whom_it_was_made() -> None:
    address = link(APP, WANTED, NOW)
    state = state_of(address)
    assert opened({"A1": APP}, state, NOW + GOOD_FOR) == WANTED
    assert parse_qs(urlsplit(address).query)["team"] == ["T1"]
    assert "s3cr3t" not in address
    other = App("A2", client_id="3", client_secret="another")
    forged = state_of(link(App("A1", client_id="1.2", client_secret=""), WANTED, NOW))
    for wrong, apps in (
        (state, {"A2": other}),
        (state[:-1], {"A1": APP}),
        ("e30=." + state.partition(".")[2], {"A1": APP}),
        ("", {"A1": APP}),
        (forged, {"A1": APP, "A3": App("A3")}),
    ):
        with pytest.raises(NotInstalled):
            opened(apps, wrong, NOW)
    with pytest.raises(NotInstalled):
        opened({"A1": APP}, state, NOW + GOOD_FOR + 1)


@asynccontextmanager
async def installing(api: SlackApi, path: Path) -> AsyncIterator[Callable[..., Any]]:
    installations = read_installations(path, {})
    installer = Installer(api, Tokens(path, installations), installations)

    async def nothing(records: object) -> None:
        raise AssertionError

    intake = Intake(installations, Directory(), nothing)
    async with served(EventsServer(installations, intake, installer=installer)) as url, aiohttp.ClientSession() as web:

        async def returned(**query: str) -> tuple[int, str]:
            async with web.get(url + OAUTH, params=query) as answer:
                return answer.status, await answer.text()

        yield returned


@pytest.mark.parametrize("rotating", [False, True])
async def test_a_workspace_is_installed(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path, rotating: bool
) -> None:
    code, state = slack.oauth_code(acme, rotating=rotating), state_of(link(APP, WANTED))
    async with installing(api, path) as returned:
        assert (await returned(code=code, state=state + "x"))[0] == 400
        assert await returned(code=code, state=state) == (200, "Installed in T1.")
        again = await returned(code=code, state=state)
    assert again == (400, "Nothing was installed: Slack does not give a token: oauth.v2.access: invalid_code.")
    home = kept(path)["T1"]
    assert (home.tenant, home.agent, home.bot_user, home.token) == ("acme", "mesh", "UBOT", acme.token)
    assert (home.refresh_token is None, home.expires_at is None) == (not rotating, not rotating)


async def test_an_organisation_is_installed_in_every_workspace_that_has_the_app(
    slack: Slack, api: SlackApi, path: Path
) -> None:
    slack.page = 1
    homes = [slack.workspace(t, bot="UBOT", enterprise="E1", org_wide=True) for t in ("T1", "T2")]
    async with installing(api, path) as returned:
        answer = await returned(code=slack.oauth_code(homes[0]), state=state_of(link(APP, replace(WANTED, team="E1"))))
    assert answer == (200, "Installed in T1, T2.")
    assert {(h.team, h.enterprise, h.token) for h in kept(path).values()} == {
        ("T1", "E1", homes[0].token),
        ("T2", "E1", homes[0].token),
    }


async def test_a_workspace_is_not_taken_from_somebody_else(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path
) -> None:
    Tokens(path, Installations([APP], [])).put([installed(acme)])
    async with installing(api, path) as returned:
        state = state_of(link(APP, replace(WANTED, tenant="other")))
        status, text = await returned(code=slack.oauth_code(acme), state=state)
        assert (status, "T1 has this app for somebody else" in text) == (400, True)
        assert kept(path)["T1"].tenant == "acme"
        assert (await returned(error="access_denied", state=state))[0] == 400


@pytest.mark.parametrize(("team", "chosen", "fine"), [
    ("T1", "T1", True),
    ("T1", "T2", False),
    ("E1", "E1", True),
    ("T3", "E1", False),  # the whole organisation, where one of its workspaces was meant
    ("E2", "E1", False),
    ("E1", "T2", False),
])  # fmt: skip
async def test_only_the_workspace_that_the_link_names_becomes_the_tenants(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path, team: str, chosen: str, fine: bool
) -> None:
    slack.workspace("T2", bot="UBOT2")
    organisation = slack.workspace("T3", bot="UBOT", enterprise="E1", org_wide=True)
    code = slack.oauth_code(organisation if chosen == "E1" else slack.workspaces[chosen])
    async with installing(api, path) as returned:
        status, text = await returned(code=code, state=state_of(link(APP, replace(WANTED, team=team))))
    assert (status == 200, bool(kept(path))) == (fine, fine)
    assert fine or f"this link is for {team}, and not for {chosen}" in text
