"""Decides how an agent asks a gateway over HTTP: one request for each record, the same again until it is answered."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from turngate.client.gate import Gate, Mode
from turngate.client.transport import Unreachable
from turngate.schemas import inputs, outputs
from turngate.schemas.inputs import Record

#: Seconds that the gateway is asked to wait for an answer before it says that there is none yet.
_WAIT = 10.0
#: Seconds for a connection, and for an answer beyond `_WAIT`, after which the same is asked again.
_CONNECT, _GRACE = 5.0, 5.0
#: Seconds until what failed is tried again: the first time, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
#: After which, and after any of a server's own faults, the same request may be answered; after others it never is.
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
#: The media type in which a gateway says why it refuses (RFC 9457).
_PROBLEM = "application/problem+json"
#: What the token says, so that no body does; and what stands for it in records here.
_UNSAID = "unsaid"


@asynccontextmanager
async def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    mode: Mode | str = Mode.ENFORCE,
    patience: float | None = None,
    ssl_context: ssl.SSLContext | None = None,
    plain_http: bool = False,
) -> AsyncIterator[Gate]:
    """A gate over HTTP. `url` and `token`: None: what `TURNGATE_URL` and `TURNGATE_TOKEN` say.

    The token names tenant and agent (`turngate token create --scope agent`). `ssl_context`: how the gateway is trusted.
    `plain_http`: also to another machine without TLS, where everybody on the way can read the token and the texts.
    Proxies of the environment are not used. Raises `ValueError` for a URL or token that cannot be used.
    """
    async with transport(url, token=token, ssl_context=ssl_context, plain_http=plain_http) as made:
        yield Gate(made, mode=mode, patience=patience)


@asynccontextmanager
async def transport(
    url: str | None = None,
    *,
    token: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    plain_http: bool = False,
) -> AsyncIterator[HttpTransport]:
    """What carries records to a gateway; see `connect`. Raises `ValueError` for a URL or token that cannot be used."""
    url = os.environ.get("TURNGATE_URL", "") if url is None else url
    token = os.environ.get("TURNGATE_TOKEN", "") if token is None else token
    _check(url, token, plain_http=plain_http)
    async with httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"},
        verify=True if ssl_context is None else ssl_context,
        timeout=httpx2.Timeout(_WAIT + _GRACE, connect=_CONNECT, pool=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        follow_redirects=False,
        trust_env=False,
    ) as http:
        yield HttpTransport(http)


def _check(url: str, token: str, *, plain_http: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the gateway's URL must begin with http:// or https://: give `url`, or set TURNGATE_URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the gateway's URL must not carry a password: give `token`, or set TURNGATE_TOKEN")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            "a token is missing, or is none: give `token`, or set TURNGATE_TOKEN (`turngate token create`)"
        )
    if parts.scheme == "http" and not plain_http and not _loopback(parts.hostname):
        raise ValueError("the token would be sent unencrypted: use an https:// URL, or say plain_http=True")


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class HttpTransport:
    """A gateway (`turngate.client.transport.Transport`)."""

    tenant = _UNSAID
    agent = _UNSAID

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    def now(self) -> int:
        """This machine's clock."""
        return time.time_ns() // 1_000_000

    async def answers(self, record: Record, *, fresh: bool = True) -> AsyncGenerator[Record]:
        """Send the record, and ask until it is answered; whatever fails on the way is asked again.

        The gateway itself tells records of one id apart.
        """
        path, body = _request(record)
        place, last, pause = "", None, _FIRST_PAUSE
        while True:
            if place:
                status, said = await self.said(place, None, _waiting(place))
            else:
                status, said = await self.said(path, body, httpx2.QueryParams(wait=_WAIT))
            if status is HTTPStatus.NOT_FOUND and place:  # the gateway does not remember: it is told again
                place = ""
                await asyncio.sleep(pause)  # several gateways that do not read the same log never will
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
                raise Unreachable(f"the gateway answers {status.value} {status.phrase}{_detail(said)}")
            if isinstance(record, inputs.ToolReturned):
                return
            decided = said if status is HTTPStatus.OK else said.get("decided")
            if decided is not None and decided != last:
                last = decided
                yield _answer(record, decided)
            if status is HTTPStatus.OK:
                return
            place = str(said.get("place", ""))
            if not place.startswith("/v1/"):
                raise Unreachable("the gateway names no place to ask again: is it one?")

    def forget(self, record: Record) -> None:
        """Nothing is kept here."""

    async def said(
        self, path: str, body: Mapping[str, Any] | None, params: httpx2.QueryParams | None = None
    ) -> tuple[HTTPStatus, dict[str, Any]]:
        """What the gateway says, however often it must be asked; whoever calls this sets an end to it.

        `body`: of a POST; None: it is a GET. What is asked again must be answered the same.
        """
        pause = _FIRST_PAUSE
        while True:
            after = None
            try:
                if body is None:
                    response = await self._http.get(path, params=params)
                else:
                    response = await self._http.post(path, json=body, params=params)
                if response.status_code not in _AGAIN and response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    return HTTPStatus(response.status_code), _json(response)
                after = response.headers.get("Retry-After")
            except httpx2.TransportError:
                pass
            await asyncio.sleep(max(pause, _seconds(after)))
            pause = min(2 * pause, _LONGEST_PAUSE)


def _waiting(place: str) -> httpx2.QueryParams:
    """The place's own parameters, and how long to wait there."""
    return httpx2.QueryParams(urlsplit(place).query).set("wait", _WAIT)


def _seconds(after: str | None) -> float:
    """What `Retry-After` asks for, as far as that is waited for."""
    asked = after is not None and after.isascii() and after.isdecimal()
    return min(float(after), _LONGEST_PAUSE) if after is not None and asked else 0.0


def _json(response: httpx2.Response) -> dict[str, Any]:
    """What an answer holds; of a refusal nothing, where it is no gateway's: it may quote the request."""
    if response.is_error and response.headers.get("Content-Type") != _PROBLEM:
        return {}
    try:
        said = response.json()
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _detail(said: Mapping[str, Any]) -> str:
    """What a problem's answer says of it, which quotes nothing of the request (RFC 9457)."""
    if not said.get("detail"):
        return ""
    fields = [str(error.get("field", "")) for error in said.get("errors", []) if isinstance(error, dict)]
    detail = ", ".join([str(said["detail"]), *fields])[:500]
    return f": {detail if detail.isprintable() else ascii(detail)}"


def _request(record: Record) -> tuple[str, dict[str, Any]]:
    """Where a record goes, and as what: without what the token and the path say."""
    left_out = {"tenant", "agent"}
    match record:
        case inputs.ContextRequested():
            path = "/v1/context"
        case inputs.TurnDrafted():
            path = "/v1/drafts"
        case inputs.ToolReturned():
            path = "/v1/tool-results"
        case inputs.MemoryWrite():
            path = "/v1/memory"
        case inputs.SharingRequested(revision=revision):
            path = f"/v1/memory/{quote(revision, safe='')}/sharing"
            left_out.add("revision")
        case _:
            raise Unreachable(f"an agent hands in no {type(record).__name__}")
    return path, record.model_dump(mode="json", by_alias=True, exclude=left_out)


def _answer(record: Record, fields: Mapping[str, Any]) -> Record:
    """The record that an answer stands for. Raises pydantic's `ValidationError` for what is none."""
    kind: type[Record]
    match record:
        case inputs.ContextRequested():
            kind = outputs.ContextDecided
        case inputs.TurnDrafted():
            kind = outputs.TurnDecided
        case inputs.MemoryWrite():
            kind = outputs.RevisionRecorded if "revision" in fields else outputs.WriteRefused
        case _:
            kind = outputs.SharingOffered if "code" in fields else outputs.CommandRefused
    return kind.model_validate({**fields, "tenant": _UNSAID, "agent": _UNSAID})
