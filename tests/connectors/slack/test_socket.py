"""What Socket Mode brings is on the log in Slack's order, and acknowledged when it is; silence is a gap."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.connectors.slack.conftest import APPS, BUTTON, Log, answers, listed
from tests.connectors.slack.scene import installed
from tests.slack import Fault, Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.http import LARGEST
from turngate.connectors.slack.installations import Installations
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.socket import Socket
from turngate.schemas.inputs import ActionApproved, RoomChanged
from turngate.streams.log import LogError


async def test_a_button_over_socket_mode(slack: Slack, installations: Installations, taking: Intake, log: Log) -> None:
    async with socket_of(slack, taking, answer=answers(installations, log).take):
        envelope = await asyncio.to_thread(slack.push, BUTTON, "interactive")
        await asyncio.to_thread(slack.wait_acknowledged, envelope)
    assert [type(r) for r in log.records] == [ActionApproved]


async def test_what_socket_mode_brings_is_acknowledged_once_it_is_on_the_log(
    slack: Slack, taking: Intake, log: Log, message: dict[str, Any]
) -> None:
    async with socket_of(slack, taking):
        log.broken = LogError("no broker answers")
        envelope = await asyncio.to_thread(slack.push, message)
        await log.tried.wait()
        log.broken = None
        assert await asyncio.to_thread(slack.push_again) == 1  # it was not acknowledged
        await asyncio.to_thread(slack.wait_acknowledged, envelope)
        assert log.texts() == ["hello"]
        assert await asyncio.to_thread(slack.push_again) == 0


async def test_socket_mode_keeps_the_order(slack: Slack, acme: Workspace, taking: Intake, log: Log) -> None:
    room = slack.channel("C1", acme, ["UBOT", "UALEX"])
    async with socket_of(slack, taking):
        sent = []
        for number in range(50):
            slack.say(room, "UALEX", str(number))
            sent.append(await asyncio.to_thread(slack.push, slack.queue[-1]))
        await asyncio.to_thread(slack.wait_acknowledged, sent[-1])
    assert log.texts() == [str(number) for number in range(50)]


@pytest.mark.parametrize("fault", [None, Fault.RATE_LIMITED, Fault.UNAVAILABLE, "internal_error"])
async def test_a_connection_that_ends_is_followed_by_another(
    slack: Slack, acme: Workspace, taking: Intake, log: Log, message: dict[str, Any], fault: Fault | str | None
) -> None:
    slack.retry_after = 0.1
    async with socket_of(slack, taking):
        if fault is not None:
            slack.fail("apps.connections.open", fault)
        await asyncio.to_thread(slack.disconnect)
        envelope = await asyncio.to_thread(slack.push, message)
        await asyncio.to_thread(slack.wait_acknowledged, envelope)
    assert log.texts() == ["hello"]
    assert not [r for r in log.records if isinstance(r, RoomChanged)]


@pytest.mark.parametrize("turned_away", [0, 1])
async def test_a_gap_makes_every_room_unknown(
    slack: Slack,
    acme: Workspace,
    taking: Intake,
    directory: Directory,
    log: Log,
    message: dict[str, Any],
    turned_away: int,
) -> None:
    listed(directory, installed(acme), "C1")
    now = [0.0]
    async with socket_of(slack, taking, clock=lambda: now[0]):
        await asyncio.to_thread(slack.wait_acknowledged, await asyncio.to_thread(slack.push, message))
        assert not [r for r in log.records if isinstance(r, RoomChanged)]
        slack.fail("apps.connections.open", "internal_error")
        slack.turned_away = turned_away  # a connection on which nothing is heard ends no gap
        await asyncio.to_thread(slack.disconnect)
        calls = len(slack.called("apps.connections.open"))
        await asyncio.to_thread(slack.wait, lambda: len(slack.called("apps.connections.open")) > calls, "attempt")
        now[0] = 60.0
        again = await asyncio.to_thread(slack.push, message | {"event_id": "Ev9"})
        await asyncio.to_thread(slack.wait_acknowledged, again)
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T1/C1"]


async def test_a_first_connection_that_comes_late_is_a_gap_too(
    slack: Slack, acme: Workspace, taking: Intake, directory: Directory, log: Log, message: dict[str, Any]
) -> None:
    listed(directory, installed(acme), "C1")
    now = iter((0.0, *[60.0] * 9))
    async with socket_of(slack, taking, clock=lambda: next(now)):
        await asyncio.to_thread(slack.wait_acknowledged, await asyncio.to_thread(slack.push, message))
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T1/C1"]


async def test_another_apps_token_brings_nothing(
    slack: Slack, taking: Intake, log: Log, message: dict[str, Any]
) -> None:
    async with socket_of(slack, taking):
        await asyncio.to_thread(slack.push, message | {"api_app_id": "A2"})
        good = await asyncio.to_thread(slack.push, message | {"event_id": "Ev9"})
        await asyncio.to_thread(slack.wait_acknowledged, good)
        assert len(slack.acknowledged) == 1
    assert log.texts() == ["hello"]


async def test_where_slack_turns_connections_away_it_is_asked_ever_less_often(
    slack: Slack, taking: Intake, log: Log
) -> None:
    slack.turned_away = 3
    began = time.monotonic()
    async with socket_of(slack, taking):
        assert time.monotonic() - began > 0.2 + 0.4 + 0.8
    assert len(slack.called("apps.connections.open")) == 4


@asynccontextmanager
async def socket_of(slack: Slack, taking: Intake, **more: Any) -> AsyncIterator[None]:
    async with SlackApi(slack.url) as api:
        socket = Socket(api, APPS[0], taking, **more)
        running = asyncio.create_task(socket.run())
        ready = asyncio.create_task(socket.ready.wait())
        try:
            await asyncio.wait([ready, running], return_when=asyncio.FIRST_COMPLETED)
            assert not running.done()
            yield
        finally:
            for task in (running, ready):
                task.cancel()
            await asyncio.gather(running, ready, return_exceptions=True)


async def test_a_frame_that_is_larger_than_any_event_makes_every_room_unknown(
    slack: Slack, acme: Workspace, taking: Intake, log: Log, directory: Directory, message: dict[str, Any]
) -> None:
    listed(directory, installed(acme), "C1")
    async with socket_of(slack, taking):
        with contextlib.suppress(ConnectionError):
            await asyncio.to_thread(slack.push, message | {"padding": "x" * LARGEST})
        await log.tried.wait()
        await asyncio.to_thread(slack.wait, lambda: slack.greeted == 2 and slack.connections == 1, "another connection")
        envelope = await asyncio.to_thread(slack.push, message)
        await asyncio.to_thread(slack.wait_acknowledged, envelope)
    assert [type(r).__name__ for r in log.records] == ["RoomChanged", "MessageObserved"]
