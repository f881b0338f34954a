"""Decides what is answered to what comes over HTTP in Slack's name: 401, or 200 once it is on the log."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from turngate.connectors.slack.installations import App, Installations
from turngate.connectors.slack.installing import Installer, NotInstalled
from turngate.connectors.slack.intake import Intake, NotTaken
from turngate.connectors.slack.signature import signed

EVENTS, INTERACTIONS, COMMANDS = "/slack/events", "/slack/interactions", "/slack/commands"
OAUTH = "/slack/oauth"
#: Bytes of a request, or of a frame.
LARGEST = 8 << 20

#: Takes what somebody pressed or commanded, in a payload to an app, and answers it; raises `NotTaken`.
Answer = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]

log = logging.getLogger(__name__)


class EventsServer:
    """The routes. Without `answer` there are none for buttons and commands, and without `installer` none for OAuth."""

    def __init__(
        self,
        installations: Installations,
        intake: Intake,
        answer: Answer | None = None,
        installer: Installer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._installations = installations
        self._intake = intake
        self._answer = answer
        self._installer = installer
        self._clock = clock

    def application(self) -> web.Application:
        """An application of aiohttp's."""
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post(EVENTS, self._event)
        app.router.add_get("/health", _healthy)
        if self._answer is not None:
            app.router.add_post(INTERACTIONS, self._form)
            app.router.add_post(COMMANDS, self._form)
        if self._installer is not None:
            app.router.add_get(OAUTH, self._installed)
        return app

    async def _event(self, request: web.Request) -> web.Response:
        body = await request.read()
        app = self._signer(request.headers, body)
        if app is None:
            return web.Response(status=401)
        try:
            envelope = json.loads(body)
        except (ValueError, RecursionError):
            envelope = None
        if not isinstance(envelope, dict):  # Slack signed it, and would say the same again
            return await _taken(self._intake.unreadable(app.id))
        if envelope.get("type") == "url_verification":
            return web.Response(text=str(envelope.get("challenge")))
        if envelope.get("api_app_id") != app.id:
            return web.Response(status=401)
        return await _taken(self._intake.take(app.id, envelope))

    async def _form(self, request: web.Request) -> web.Response:
        body = await request.read()
        app = self._signer(request.headers, body)
        if app is None or self._answer is None:
            return web.Response(status=401)
        payload = form(body)
        if payload is None:
            return web.Response(status=400)
        if payload.get("api_app_id") != app.id:
            return web.Response(status=401)
        return await _taken(self._answer(app.id, payload))

    async def _installed(self, request: web.Request) -> web.Response:
        code, state = request.query.get("code", ""), request.query.get("state", "")
        if self._installer is None or not code:
            return web.Response(status=400, text="Nothing was installed.")
        try:
            return web.Response(text=await self._installer.finish(code, state))
        except NotInstalled as reason:
            return web.Response(status=400, text=f"Nothing was installed: {reason}.")

    def _signer(self, headers: Mapping[str, str], body: bytes) -> App | None:
        """The app whose secret signed this, whichever it names."""
        now = self._clock()
        for app in self._installations.apps.values():
            if app.signing_secret is not None and signed(app.signing_secret, headers, body, now):
                return app
        return None


def form(body: bytes) -> dict[str, Any] | None:
    """A button's payload, or the fields of a command; None where it is neither."""
    try:
        fields = {name: said[-1] for name, said in parse_qs(body.decode(), strict_parsing=True).items()}
        payload = json.loads(fields["payload"]) if "payload" in fields else fields
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


async def _taken(work: Awaitable[Mapping[str, Any] | None]) -> web.Response:
    try:
        answer = await work
    except NotTaken:
        return web.Response(status=503)  # and Slack sends an event again
    return web.Response() if answer is None else web.json_response(dict(answer))


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok")
