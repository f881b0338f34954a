"""Tokens that end are renewed before, a changed file is read anew, and an app is installed by who was given a link."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from tests.connectors.slack.conftest import installed
from tests.connectors.slack.test_intake import served
from tests.slack import Fault, Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.http import OAUTH, EventsServer
from turngate.connectors.slack.installations import (
    App,
    Installation,
    Installations,
    read_installations,
    write_installations,
)
from turngate.connectors.slack.installing import GOOD_FOR, Installer, NotInstalled, link, opened
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.tokens import EARLY, Tokens

APP = App("A1", client_id="1.2", client_secret="s3cr3t")
REDIRECT = "https://turngate.acme.example/slack/oauth"
NOW = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_installations(tmp_path / "slack.json", Installations([APP], []))
    return tmp_path / "slack.json"


@asynccontextmanager
async def during(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(good: Callable[[], bool]) -> None:
    def polled() -> None:
        deadline = time.monotonic() + 30
        while not good():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    await asyncio.to_thread(polled)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def kept(path: Path) -> dict[str, Installation]:
    return {home.team: home for home in read_installations(path, {})}


def ending(slack: Slack, home: Workspace, ends: float) -> Installation:
    """An installation whose token ends then, and that Slack knows the refresh token of."""
    slack._methods.refreshing["xoxe-1"] = home
    slack._methods.rotating = True
    return Installation(**{**_fields(installed(home)), "refresh_token": "xoxe-1", "expires_at": int(ends)})


def _fields(home: Installation) -> dict[str, Any]:
    return {name: getattr(home, name) for name in home.__slots__}


async def test_a_token_is_renewed_two_hours_before_it_ends(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path
) -> None:
    now, before = [NOW], acme.token
    installations = Installations([APP], [])
    tokens = Tokens(path, installations, look=0.01)
    tokens.put([ending(slack, acme, NOW + EARLY + 60)])
    async with during(tokens.renew(api, clock=lambda: now[0])):
        await asyncio.sleep(0)
        assert kept(path)["T1"].token == before
        now[0] += 60
        await until(lambda: kept(path)["T1"].token != before)
    (home,) = installations
    assert (home.token, home.expires_at) == (acme.token, int(NOW) + 60 + 43_200)
    assert home.refresh_token != "xoxe-1"
    assert (await api.call(home, "auth.test"))["user_id"] == "UBOT"
    assert len(slack.called("oauth.v2.access")) == 1
    assert mode(path) == 0o600


async def test_one_that_cannot_be_renewed_is_tried_again_and_stays_as_it_is(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, before = Tokens(path, Installations([APP], []), look=0.01), acme.token
    tokens.put([ending(slack, acme, NOW)])
    slack.fail("oauth.v2.access", Fault.UNAVAILABLE, times=2)
    async with during(tokens.renew(api, clock=lambda: NOW)):
        await until(lambda: kept(path)["T1"].token != before)
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "the token of workspace T1 could not be renewed: oauth.v2.access: http_503"
    ] * 2


async def test_an_organisations_token_is_renewed_once_for_all_its_workspaces(
    slack: Slack, api: SlackApi, path: Path
) -> None:
    one, two = (slack.workspace(t, bot="UBOT", enterprise="E1", org_wide=True) for t in ("T1", "T2"))
    tokens = Tokens(path, Installations([APP], []), look=0.01)
    first = ending(slack, one, NOW)
    tokens.put([first, Installation(**{**_fields(first), "team": "T2"})])
    async with during(tokens.renew(api, clock=lambda: NOW)):
        await until(lambda: kept(path)["T2"].token != first.token)
    assert {h.token for h in kept(path).values()} == {one.token} == {two.token}
    assert len(slack.called("oauth.v2.access")) == 1


async def test_a_changed_file_is_read_anew_and_a_broken_one_is_not_used(
    acme: Workspace, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installations = read_installations(path, {})
    async with during(Tokens(path, installations, look=0.01).follow()):
        Tokens(path, Installations([APP], [])).put([installed(acme)])  # another process
        await until(lambda: installations.of("A1", "T1") is not None)
        await asyncio.to_thread(path.write_text, '{"s3cr3t')
        await until(lambda: "is not used as it is" in caplog.text)
        assert installations.of("A1", "T1") is not None
        assert "s3cr3t" not in caplog.text
        await asyncio.to_thread(path.write_text, '{"apps": [{"id": "A1"}], "workspaces": []}')
        await until(lambda: installations.of("A1", "T1") is None)


async def test_two_who_write_lose_nothing_of_each_other(slack: Slack, acme: Workspace, path: Path) -> None:
    other = slack.workspace("T2", bot="UBOT2")
    mine, theirs = (Tokens(path, read_installations(path, {})) for _ in range(2))
    mine.put([installed(acme)])
    theirs.put([installed(other)])
    assert set(kept(path)) == {"T1", "T2"}


def state_of(address: str) -> str:
    return parse_qs(urlsplit(address).query)["state"][0]


def test_a_link_is_good_for_an_hour_and_for_whom_it_was_made() -> None:
    address = link(APP, "acme", "mesh", REDIRECT, NOW)
    state = state_of(address)
    said = {"app": "A1", "tenant": "acme", "agent": "mesh", "redirect": REDIRECT}
    assert opened({"A1": APP}, state, NOW + GOOD_FOR) == said
    assert "s3cr3t" not in address
    other = App("A2", client_id="3", client_secret="another")
    forged = state_of(link(App("A1", client_id="1.2", client_secret=""), "acme", "mesh", REDIRECT, NOW))
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
    code, state = slack.oauth_code(acme, rotating=rotating), state_of(link(APP, "acme", "mesh", REDIRECT))
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
        answer = await returned(code=slack.oauth_code(homes[0]), state=state_of(link(APP, "acme", "mesh", REDIRECT)))
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
        state = state_of(link(APP, "other", "mesh", REDIRECT))
        status, text = await returned(code=slack.oauth_code(acme), state=state)
        assert (status, "T1 has this app for somebody else" in text) == (400, True)
        assert kept(path)["T1"].tenant == "acme"
        assert (await returned(error="access_denied", state=state))[0] == 400
