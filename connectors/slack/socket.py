"""Decides how events come over Socket Mode: one after the other, acknowledged once they are on the log.

The SDK's own client starts a task for each frame, so their order is lost, and it may stand still after it has connected
again without saying so (python-slack-sdk#1701). Here a connection on which nothing is heard is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.http import LARGEST, Answer
from turngate.connectors.slack.installations import App
from turngate.connectors.slack.intake import Intake, NotTaken

#: Seconds between two questions whether Slack is still there, and without a connection before events count as missed.
HEARTBEAT, GAP = 10.0, 15.0
#: Seconds before the first and the slowest further attempt to connect.
_FIRST, _SLOWEST = 0.2, 20.0
_ANSWERED = ("interactive", "slash_commands")

log = logging.getLogger(__name__)


class Socket:
    """An app's connection. `answer`: for buttons and slash commands."""

    def __init__(
        self,
        api: SlackApi,
        app: App,
        intake: Intake,
        answer: Answer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._app = app
        self._intake = intake
        self._answer = answer
        self._clock = clock
        self._heard = False
        self._lost = clock()
        #: Set when Slack has greeted for the first time.
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Take events in until cancelled; a connection that ends is followed by another one."""
        wait = _FIRST
        while True:
            try:
                await self._connected()
            except CallFailed as failed:
                log.warning("no connection: %s", failed)
                wait = max(wait, failed.wait or 0)
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                log.warning("the connection failed: %s", type(error).__name__)
            wait = _FIRST if self._heard else wait
            await asyncio.sleep(wait)
            wait = min(2 * wait, _SLOWEST)

    async def _connected(self) -> None:
        self._heard = False
        url = await self._api.open_socket(self._app.app_token or "")
        async with self._api.session.ws_connect(url, heartbeat=HEARTBEAT, max_msg_size=LARGEST) as socket:
            try:
                await self._frames(socket)
                if socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                    await self._too_large()
            finally:
                if self._heard:  # one that Slack never greeted on has brought nothing
                    self._lost = self._clock()

    async def _too_large(self) -> None:
        """A frame was larger than any event: Slack sends it again, and to no avail."""
        with contextlib.suppress(NotTaken):
            await self._intake.unreadable(self._app.id)

    async def _frames(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            frame = json.loads(message.data) if message.type is aiohttp.WSMsgType.TEXT else None
            if not isinstance(frame, dict):
                continue
            if frame.get("type") == "disconnect":
                log.info("Slack wants another connection")
                return
            if frame.get("type") == "hello":
                await self._greeted()
            elif isinstance(frame.get("envelope_id"), str):
                await self._one(socket, frame)

    async def _greeted(self) -> None:
        if self._clock() - self._lost > GAP:
            await self._intake.missed()
        self._heard = True
        if not self.ready.is_set():
            log.info("connected")
        self.ready.set()

    async def _one(self, socket: aiohttp.ClientWebSocketResponse, frame: dict[str, Any]) -> None:
        payload = frame.get("payload")
        answer: Mapping[str, Any] | None = None
        if isinstance(payload, dict) and payload.get("api_app_id") != self._app.id:
            log.error("the app_token of app %s is another app's", self._app.id)
            return
        try:
            if isinstance(payload, dict) and frame.get("type") == "events_api":
                await self._intake.take(self._app.id, payload)
            elif isinstance(payload, dict) and frame.get("type") in _ANSWERED and self._answer is not None:
                answer = await self._answer(self._app.id, payload)
        except NotTaken:
            return  # not acknowledged, so Slack sends it again
        told = {} if answer is None else {"payload": dict(answer)}
        await socket.send_json({"envelope_id": frame["envelope_id"], **told})
