"""How it is reached: the Web API over HTTP, Socket Mode over a websocket, and events POSTed with a signature."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import hmac
import http.client
import json
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from aiohttp import BasicAuth, WSMsgType, web

from tests.slack.faults import DONE, Call, Fault, Faults, Limit
from tests.slack.methods import READING, Json, Methods, Post, Refused
from tests.slack.people import Workspace
from tests.slack.world import World

#: The app-level token that opens a Socket Mode connection, and the secret that events are signed with.
APP_TOKEN, SIGNING_SECRET = "xapp-1-A1", "8f742231b10e8888abcd99yyyzzz85a5"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an events server answered, and after how many seconds."""

    status: int
    body: str
    seconds: float


class Slack(World):
    """A Slack on loopback, on a thread of its own, until the end of the block (see the package's docstring)."""

    def __init__(self) -> None:
        super().__init__()
        self._methods = Methods(self)
        self._faults = Faults()
        self.calls: list[Call] = []
        self.before: dict[str, Callable[[Call], object]] = {}
        #: Socket Mode connections that are yet to be ended without a greeting.
        self.turned_away = 0
        #: Socket Mode connections that were greeted.
        self.greeted = 0
        #: Envelope ids that were acknowledged over Socket Mode, and the frames of those that were not.
        self.acknowledged: list[str] = []
        #: What was answered with an acknowledgement, by envelope id.
        self.answers: dict[str, Json] = {}
        self._sent: dict[str, Json] = {}
        self._sockets: list[web.WebSocketResponse] = []
        self._envelopes = 0
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # What a test asks and sets.

    @property
    def posts(self) -> list[Post]:
        """What `chat.postMessage` said, in order."""
        return self._methods.posts

    @property
    def ephemerals(self) -> list[Post]:
        """What `chat.postEphemeral` said, in order."""
        return self._methods.ephemerals

    @property
    def page(self) -> int:
        """The most that a page holds, whatever was asked for."""
        return self._methods.page

    @page.setter
    def page(self, most: int) -> None:
        self._methods.page = most

    def count_pages(self) -> None:
        """From now on a cursor counts the items before it, so that what leaves there shifts the others."""
        self._methods.counting = True

    def fail(self, method: str, fault: Fault | str, *, times: int = 1, after: int = 0) -> None:
        """Spoil the next `times` calls of a method, `after` so many that go well. A text is an error code."""
        self._faults.plan(method, fault, times, after)

    @property
    def faults(self) -> Callable[[Call], Fault | str | None]:
        """What decides for each call that no `fail` is about."""
        return self._faults.by_chance

    @faults.setter
    def faults(self, by_chance: Callable[[Call], Fault | str | None]) -> None:
        self._faults.by_chance = by_chance

    def limit(self, method: str, calls: int, seconds: float) -> None:
        """Let a workspace's app call a method so often; beyond that it gets 429."""
        self._faults.limits[method] = Limit(calls, seconds)

    @property
    def retry_after(self) -> float:
        """The Retry-After of a `Fault.RATE_LIMITED`, in seconds."""
        return self._faults.retry_after

    @retry_after.setter
    def retry_after(self, seconds: float) -> None:
        self._faults.retry_after = seconds

    def called(self, method: str) -> list[Call]:
        """The calls of a method that reached Slack, in order."""
        return [call for call in self.calls if call.method == method]

    def oauth_code(self, home: Workspace, *, rotating: bool = False) -> str:
        """A code that `oauth.v2.access` takes once; `rotating`: for tokens that expire."""
        self._methods.rotating = rotating
        code = f"code-{len(self.calls)}-{home.id}"
        self._methods.codes[code] = home
        return code

    def refreshes(self, home: Workspace, token: str) -> None:
        """From now on tokens expire, and this refresh token of the workspace's is good, once."""
        self._methods.rotating = True
        self._methods.refreshing[token] = home

    # How events are delivered.

    def post(self, envelope: Json | bytes, url: str, *, kind: str = "application/json", **more: str) -> Answer:
        """POST an envelope, signed now, as the Events API does; a form (buttons, commands) as its bytes.

        `more`: headers, with `_` for `-`, in place of those that Slack sends.
        """
        body = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
        headers = {"Content-Type": kind, **signed(body), **{k.replace("_", "-"): v for k, v in more.items()}}
        to = urlsplit(url)
        connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=30)
        try:
            began = time.monotonic()
            connection.request("POST", to.path or "/", body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode(), time.monotonic() - began)
        finally:
            connection.close()

    @property
    def connections(self) -> int:
        """How many Socket Mode connections there are."""
        return len(self._sockets)

    def push(self, payload: Json, kind: str = "events_api", *, retry: int = 0) -> str:
        """Send an envelope over some connection of Socket Mode, once there is one; returns the frame's id."""
        self.wait(lambda: bool(self._sockets), "a Socket Mode connection")
        self._envelopes += 1
        frame = {"envelope_id": f"e{self._envelopes}", "type": kind, "payload": copy.deepcopy(payload)}
        frame |= {"accepts_response_payload": kind != "events_api", "retry_attempt": retry, "retry_reason": ""}
        self._sent[frame["envelope_id"]] = frame
        self._run(self._sockets[self._envelopes % len(self._sockets)].send_json(frame))
        return str(frame["envelope_id"])

    def push_again(self) -> int:
        """Send everything again that was not acknowledged; returns how much that was."""
        waiting = [frame for frame in self._sent.values() if frame["envelope_id"] not in self.acknowledged]
        for frame in waiting:
            again = frame | {"retry_attempt": frame["retry_attempt"] + 1, "retry_reason": "timeout"}
            self._sent[frame["envelope_id"]] = again
            self.wait(lambda: bool(self._sockets), "a Socket Mode connection")
            self._run(self._sockets[-1].send_json(again))
        return len(waiting)

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """End every Socket Mode connection, as Slack does now and then."""
        for socket in list(self._sockets):
            self._run(socket.send_json({"type": "disconnect", "reason": reason}))
            self._run(socket.close())

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
        """Wait for something that the server sees; fails with the words of `what`."""
        with self._changed:
            assert self._changed.wait_for(condition, seconds), f"no {what} within {seconds} s"

    def wait_acknowledged(self, envelope: str) -> None:
        """Wait until a frame was acknowledged."""
        self.wait(lambda: envelope in self.acknowledged, f"acknowledgement of {envelope}")

    # The server.

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link/", self._socket)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        #: What `base_url` of a client is to be.
        self.url = f"http://127.0.0.1:{self.port}/api/"

    async def _stop(self) -> None:
        self._stopping.set()
        for socket in list(self._sockets):
            await socket.close()
        await self._runner.cleanup()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method, (token, args) = request.match_info["method"], await _asked(request)
        if method in READING and request.content_type == "application/json" and request.method == "POST":
            args = {}
        call = self._known(method, token, args)
        self._noted(call)
        wait = self._faults.wait(call)
        if wait is not None:
            return _limited(wait)
        fault = self._faults.of(call)
        if fault is not None and fault not in DONE:
            return await self._undone(request, fault)
        hook = self.before.get(method)
        if hook is not None:
            hook(call)
        if method == "apps.connections.open":
            body: Json = {"ok": token == APP_TOKEN, "url": f"ws://127.0.0.1:{self.port}/link/?ticket={len(self.calls)}"}
            body |= {} if body["ok"] else {"error": "invalid_auth"}
        else:
            body = self._methods.answer(method, token, args)
        if fault is not None:
            return await self._done(request, Fault(fault), body)
        scopes = self.workspaces[call.team].scopes if call.team else ""
        return web.json_response(body, headers={"X-OAuth-Scopes": scopes})

    def _known(self, method: str, token: str | None, args: Json) -> Call:
        try:
            home = self._methods.home(token, args)
            return Call(method, home.id, home.app, args)
        except Refused:
            return Call(method, "", "", args)

    def _noted(self, call: Call) -> None:
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()

    async def _undone(self, request: web.Request, fault: Fault | str) -> web.StreamResponse:
        match fault:
            case Fault.RATE_LIMITED:
                return _limited(self._faults.retry_after)
            case Fault.UNAVAILABLE:
                return web.Response(status=503, text="<html>upstream connect error</html>", content_type="text/html")
            case Fault.REFUSED:
                return _reset(request)
            case Fault.LOST:
                return await self._silent(request)
        return web.json_response({"ok": False, "error": str(fault)})

    async def _done(self, request: web.Request, fault: Fault, body: Json) -> web.StreamResponse:
        match fault:
            case Fault.FATAL:
                return web.json_response({"ok": False, "error": "fatal_error"})
            case Fault.BROKEN:
                return web.Response(status=500, text="<html>oops</html>", content_type="text/html")
            case Fault.SILENT:
                return await self._silent(request)
            case Fault.HALF:
                whole = json.dumps(body).encode()
                half = web.StreamResponse(headers={"Content-Type": "application/json"})
                half.content_length = len(whole)
                await half.prepare(request)
                await half.write(whole[: len(whole) // 2])
                return _reset(request)
        return _reset(request)

    async def _silent(self, request: web.Request) -> web.Response:
        await self._stopping.wait()
        return _reset(request)

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if self.turned_away > 0:
            self.turned_away -= 1
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await socket.close()
            return socket
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        with self._changed:
            self._sockets.append(socket)
            self.greeted += 1
            self._changed.notify_all()
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT and "envelope_id" in message.data:
                    frame = json.loads(message.data)
                    with self._changed:
                        self.answers[frame["envelope_id"]] = frame.get("payload", {})
                        self.acknowledged.append(frame["envelope_id"])
                        self._changed.notify_all()
        finally:
            with self._changed:
                self._sockets.remove(socket)
                self._changed.notify_all()
        return socket


def signed(body: bytes, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers that say that a body is Slack's; `at`: seconds since the epoch, None for now."""
    when = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), b"v0:" + when.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": when, "X-Slack-Signature": f"v0={digest}"}


async def _asked(request: web.Request) -> tuple[str | None, Json]:
    """The token and the arguments, wherever they stand."""
    args: Json = dict(request.query)
    if request.content_type == "application/json":
        args |= json.loads(await request.text() or "{}")
    elif request.method == "POST":
        args |= {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    token = given if kind == "Bearer" else args.pop("token", None)
    if kind == "Basic":
        basic = BasicAuth.decode(request.headers["Authorization"])
        args = {"client_id": basic.login, "client_secret": basic.password} | args
    args.pop("token", None)
    return token, args


def _limited(seconds: float) -> web.Response:
    body = {"ok": False, "error": "ratelimited"}
    return web.json_response(body, status=429, headers={"Retry-After": f"{seconds:g}"})


def _reset(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
