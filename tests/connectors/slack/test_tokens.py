"""Tokens that end are renewed before, a changed file is read anew, and what was uninstalled is taken out of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.slack.conftest import Log
from tests.connectors.slack.scene import installed
from tests.slack import Fault, Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.installations import (
    App,
    Installation,
    Installations,
    read_installations,
    write_installations,
)
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.tokens import EARLY, Tokens
from turngate.connectors.slack.uninstalling import Uninstalling

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
    slack.refreshes(home, "xoxe-1")
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


@pytest.mark.parametrize("kind", ["app_uninstalled", "tokens_revoked"])
async def test_what_was_uninstalled_is_taken_out_of_the_file(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path, log: Log, kind: str
) -> None:
    one, two = (slack.workspace(t, bot="UBOT", enterprise="E1", org_wide=True) for t in ("T2", "T3"))
    installations = Installations([APP], [])
    tokens = Tokens(path, installations, look=0.01)
    tokens.put([installed(acme), installed(one), installed(two)])
    uninstalling = Uninstalling(api, tokens, looks=(0, 0.01, 0.01, 0.01))
    taking = Intake(installations, Directory(), log.append, told=uninstalling.told)
    async with during(uninstalling.run()):
        slack.uninstall(one)
        slack.fail("auth.test", Fault.UNAVAILABLE)
        await taking.take("A1", next(e for e in slack.queue if e["event"]["type"] == kind))
        await until(lambda: set(kept(path)) == {"T1"})
        assert [home.team for home in installations] == ["T1"]


async def test_a_workspace_that_left_an_organisations_app_is_taken_out_of_the_file_and_no_other(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path, log: Log
) -> None:
    """Slack may tell of it before it is so, and the token still counts in the others."""
    one, two, three = (slack.workspace(t, bot="UBOT", enterprise="E1", org_wide=True) for t in ("T2", "T3", "T4"))
    installations = Installations([APP], [])
    tokens = Tokens(path, installations, look=0.01)
    tokens.put([installed(home) for home in (acme, one, two, three)])
    uninstalling = Uninstalling(api, tokens, looks=[0, *[0.01] * 500])
    taking = Intake(installations, Directory(), log.append, told=uninstalling.told)
    async with during(uninstalling.run()):
        slack.fail("auth.teams.list", Fault.UNAVAILABLE)
        await taking.take("A1", slack.tell(one, {"type": "team_access_revoked", "team_ids": ["T3"]}))
        await until(lambda: len(slack.called("auth.teams.list")) > 2)
        assert set(kept(path)) == {"T1", "T2", "T3", "T4"}
        slack.take_access(two, one)
        await until(lambda: set(kept(path)) == {"T1", "T2", "T4"})
        assert [home.team for home in installations] == ["T1", "T2", "T4"]


async def test_a_token_that_is_still_good_stays_in_the_file(
    slack: Slack, acme: Workspace, api: SlackApi, path: Path, log: Log
) -> None:
    """The app was installed again before Slack told that it had been removed, or it was somebody else's token."""
    installations = Installations([APP], [])
    tokens = Tokens(path, installations, look=0.01)
    tokens.put([installed(acme)])
    uninstalling = Uninstalling(api, tokens, looks=(0, 0))
    taking = Intake(installations, Directory(), log.append, told=uninstalling.told)
    async with during(uninstalling.run()):
        await taking.take("A1", slack.tell(acme, {"type": "tokens_revoked", "tokens": {"oauth": ["UALEX"], "bot": []}}))
        await until(lambda: len(slack.called("auth.test")) == 2)
        slack.uninstall(acme)
        acme.token, acme.installed = "xoxb-new", True
        tokens.put([installed(acme)])
        await taking.take("A1", slack.queue[-1])
        await until(lambda: len(slack.called("auth.test")) == 4)
    assert kept(path)["T1"].token == "xoxb-new"
