"""Decides how a text is given to somebody's own assessor over HTTP, and what of its answer counts.

It gets `{"write", "memory", "text", "kind"}` by POST and nothing else, and answers with status 200 and
`{"label": "ordinary" | "sensitive" | "uncertain", "note"?: text, "ask_author"?: true | false}`. Whatever else happens,
an error, a redirect, another answer, or none in time, the text is `uncertain` (R-SEN-2).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass, field
from types import TracebackType
from typing import Annotated, Self
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, StrictBool, StringConstraints, ValidationError

from turngate.connectors.assessor.assessment import UNCERTAIN, Assessment
from turngate.schemas.inputs import Label, MemoryWrite
from turngate.streams.kafka.environment import SettingsError, TlsFiles
from turngate.streams.kafka.settings import loopback

#: Bytes of an answer; a longer one is none.
MAX_ANSWER = 64 * 1024

log = logging.getLogger(__name__)


class _Answer(BaseModel):
    """What an endpoint may answer; what it says beyond that is ignored."""

    model_config = ConfigDict(extra="ignore")

    label: Label
    note: Annotated[str, StringConstraints(max_length=1000, strict=True)] | None = None
    ask_author: StrictBool | None = None


class _NoAnswer(Exception):
    """An answer that does not count. The message says why, and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where texts are sent, how that server is trusted, and the token by which it trusts us."""

    url: str
    tls: TlsFiles = field(default_factory=TlsFiles)
    token: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Raises `SettingsError` where texts or the token cannot be sent as asked."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("--endpoint: must be an http:// or https:// URL")
        if parts.username is not None or parts.password is not None:
            raise SettingsError("--endpoint: must not carry a password; set TURNGATE_ASSESSOR_TOKEN")
        if parts.scheme == "http" and self.tls.given:
            raise SettingsError("--endpoint: a CA file is named, but the URL is http://")
        if parts.scheme == "http" and self.token is not None and not loopback(parts.hostname):
            raise SettingsError("TURNGATE_ASSESSOR_TOKEN would be sent unencrypted: use an https:// URL")
        self.tls.check("TURNGATE_ASSESSOR")

    @property
    def exposed(self) -> bool:
        """Whether texts leave this machine unencrypted."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and not loopback(parts.hostname or "")

    def ssl_context(self) -> ssl.SSLContext:
        """How the server is verified. Raises `SettingsError` for an unusable file."""
        return self.tls.context("TURNGATE_ASSESSOR")


class Endpoint:
    """An assessor's HTTP endpoint, for `async with`. Proxies of the environment are not used: texts go to it alone."""

    def __init__(self, settings: EndpointSettings) -> None:
        settings.check()
        headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token}"}
        self._url = settings.url
        self._client = httpx2.AsyncClient(
            headers=headers, verify=settings.ssl_context(), timeout=None, follow_redirects=False, trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def assess(self, write: MemoryWrite, seconds: float) -> Assessment:
        """What the endpoint says of a write within so many seconds, else `UNCERTAIN`; the log says why."""
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(write)
        except TimeoutError:
            log.warning("the endpoint gave no answer within %.1f s", seconds)
        except _NoAnswer as error:
            log.warning("the endpoint's answer does not count: %s", error)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            log.warning("the endpoint cannot be asked: %s", type(error).__name__)  # its message may quote
        return UNCERTAIN

    async def _asked(self, write: MemoryWrite) -> Assessment:
        body = {"write": write.write, "memory": write.memory, "text": write.text, "kind": write.kind.value}
        async with self._client.stream("POST", self._url, json=body) as response:
            if response.status_code != httpx2.codes.OK:
                raise _NoAnswer(f"status {response.status_code}")
            data = b""
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > MAX_ANSWER:
                    raise _NoAnswer(f"more than {MAX_ANSWER} bytes")
        try:
            answer = _Answer.model_validate_json(data)
        except ValidationError:
            raise _NoAnswer("no JSON with a label that there is") from None
        return Assessment(answer.label, answer.note, answer.ask_author)
