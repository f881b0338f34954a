"""Decides how a method of Slack's Web API is called: with the workspace's own token, once, and never for long.

Nothing is tried again here: the SDK's own retries can post twice, and resume a listing after an error as if it had
ended. (aiohttp asks a reading question once more where a connection was closed on it, and never a writing one.)
Whoever calls sees what failed, and whether it may have been done all the same.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from turngate.connectors.slack.installations import App, Installation

BASE_URL = "https://slack.com/api/"
#: Seconds for one call.
PATIENCE = 10.0
#: Seconds that are waited after a 429 that does not say how long.
DEFAULT_WAIT = 30.0
_CODE = re.compile(r"[a-z0-9_]{1,64}")
#: Answers that say `ok: false` of something that may have been done (Slack says so of the first).
_MAYBE_DONE = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable"})
#: Methods that change something; their arguments go as JSON. Reading methods know no JSON.
_WRITING = frozenset({"chat.postMessage", "chat.postEphemeral", "chat.update", "conversations.open"})
_FORMS = frozenset({"oauth.v2.access", "apps.connections.open"})

#: The SDK writes whole questions and answers into its log; nothing of ours says more than a method and a code.
_sdk_log = logging.getLogger(f"{__name__}.sdk")
_sdk_log.setLevel(logging.CRITICAL)


class CallFailed(Exception):
    """A call that has no answer, or another one than `ok`. The message is the method and a code, and quotes nothing.

    `done`: whether it may have had its effect; `wait`: seconds before which Slack wants no further call of the method.
    """

    def __init__(self, method: str, code: str, *, done: bool, wait: float | None = None) -> None:
        super().__init__(f"{method}: {code}")
        self.code = code
        self.done = done
        self.wait = wait


class SlackApi:
    """The Web API, for `async with`. Limits are kept for each method and workspace, as Slack counts them."""

    def __init__(self, base_url: str = BASE_URL, patience: float = PATIENCE) -> None:
        self._base_url = base_url
        self._patience = patience
        self._clients: dict[str, AsyncWebClient] = {}
        self._blocked: dict[tuple[str, str, str], float] = {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._patience))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._session.close()

    async def call(self, installation: Installation, method: str, **args: object) -> dict[str, Any]:
        """The answer to a call. Raises `CallFailed`, without having called where Slack wants no call yet."""
        place = (method, installation.team, installation.app)
        wait = self._blocked.get(place, 0.0) - time.monotonic()
        if wait > 0:
            raise CallFailed(method, "ratelimited", done=False, wait=wait)
        try:
            return await self._asked(installation.token, method, args)
        except CallFailed as failed:
            if failed.wait is not None:
                self._blocked[place] = time.monotonic() + failed.wait
            raise

    async def identity(self, installation: Installation) -> tuple[dict[str, Any], frozenset[str]]:
        """Whose a token is, and its scopes, as Slack says them. Raises `CallFailed`."""
        answer, headers = await self._answered(installation.token, "auth.test", {})
        scopes = str(headers.get("X-OAuth-Scopes", ""))
        return answer, frozenset(scope.strip() for scope in scopes.split(",") if scope.strip())

    async def authorize(self, app: App, **args: object) -> dict[str, Any]:
        """The answer to `oauth.v2.access`, for a code or a refresh token. Raises `CallFailed`; each is good once."""
        if app.client_id is None or app.client_secret is None:
            raise CallFailed("oauth.v2.access", "no_client_secret", done=False)
        given = {"client_id": app.client_id, "client_secret": app.client_secret, **args}
        return await self._asked("", "oauth.v2.access", given)

    async def open_socket(self, app_token: str) -> str:
        """The address of a Socket Mode connection. Raises `CallFailed`."""
        answer = await self._asked(app_token, "apps.connections.open", {})
        if not isinstance(answer.get("url"), str):
            raise CallFailed("apps.connections.open", "no_url", done=False)
        return str(answer["url"])

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections that it uses."""
        return self._session

    async def _asked(self, token: str, method: str, args: Mapping[str, object]) -> dict[str, Any]:
        return (await self._answered(token, method, args))[0]

    async def _answered(
        self, token: str, method: str, args: Mapping[str, object]
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        client = self._client(token)
        write = method in _WRITING | _FORMS
        given = {name: value for name, value in args.items() if value is not None}
        try:
            async with asyncio.timeout(self._patience):
                if method in _FORMS:
                    answer = await client.api_call(method, data=_form(given))
                elif write:
                    answer = await client.api_call(method, json=given)
                else:
                    answer = await client.api_call(method, http_verb="GET", params=_form(given))
        except SlackApiError as error:
            raise _refused(method, error, write) from None
        except aiohttp.ClientConnectorError:  # there was no connection, so nothing was asked
            raise CallFailed(method, "unreachable", done=False) from None
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            code = "timeout" if isinstance(error, TimeoutError) else "connection_failed"
            raise CallFailed(method, code, done=write) from None
        if not isinstance(answer.data, dict) or answer.data.get("ok") is not True:
            raise CallFailed(method, "no_answer", done=write)
        return answer.data, answer.headers

    def _client(self, token: str) -> AsyncWebClient:
        client = self._clients.get(token)
        if client is None:
            client = AsyncWebClient(token, self._base_url, session=self._session, retry_handlers=[], logger=_sdk_log)
            if not self._base_url.startswith("https://"):
                client.proxy = None  # a proxy of the environment, which has no exception for loopback
            self._clients[token] = client
        return client


def _refused(method: str, error: SlackApiError, write: bool) -> CallFailed:
    response = error.response
    status, data = getattr(response, "status_code", None), getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    code = code if isinstance(code, str) and _CODE.fullmatch(code) else None
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return CallFailed(method, "ratelimited", done=False, wait=_wait(getattr(response, "headers", {})))
    if code is None or status != 200:
        return CallFailed(method, f"http_{status}" if status not in (None, 200) else "no_answer", done=write)
    return CallFailed(method, code, done=write and code in _MAYBE_DONE)


def _wait(headers: Mapping[str, Any]) -> float:
    value = headers.get("Retry-After", headers.get("retry-after"))
    value = value[0] if isinstance(value, list) and value else value
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return DEFAULT_WAIT
    return seconds if 0 <= seconds < 86_400 else DEFAULT_WAIT


def _form(args: Mapping[str, object]) -> dict[str, str]:
    return {n: ("true" if v else "false") if isinstance(v, bool) else str(v) for n, v in args.items()}
