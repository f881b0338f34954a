"""Decides what a proxy asks of the gateway. What fails, or takes too long, is not known, and nobody is told of it.

What is logged are ids and names, no text and no value.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx2
from pydantic import ValidationError

from turngate.client.http import HttpTransport
from turngate.client.transport import Unreachable
from turngate.client.verdict import is_final
from turngate.schemas.health import without_health
from turngate.schemas.inputs import DeliveryStatus, Record, SharingRequested, ToolReturned, TurnDrafted
from turngate.schemas.outputs import SharingOffered, TurnDecided
from turngate.schemas.tooling import ServerTerms

log = logging.getLogger("turngate.mcp")

#: Seconds for an answer that waits for nobody.
AT_ONCE = 10.0


class Asking:
    """The gateway, for one server's proxy. `patience`: seconds for a verdict; `at_once`: for any other answer."""

    def __init__(self, transport: HttpTransport, server: str, patience: float, at_once: float = AT_ONCE) -> None:
        self._transport = transport
        self._server = server
        self._patience = patience
        self._at_once = at_once

    def record(self, kind: type[Any], **fields: Any) -> Any:
        """A record of this agent, dated now. Raises pydantic's `ValidationError`."""
        named = {"tenant": self._transport.tenant, "agent": self._transport.agent, "at": self._transport.now()}
        return without_health(kind(**named, **fields))

    async def terms(self, room: str) -> ServerTerms | None:
        """What the policy says of the server in this room."""
        path = f"/v1/tools/{quote(self._server, safe='')}"
        said = await self._said(path, None, httpx2.QueryParams(room=room))
        try:
            return None if said is None else ServerTerms.model_validate(said)
        except ValidationError:
            log.warning("the gateway does not say what the policy says of %s: is it one of this version?", self._server)
            return None

    async def decided(self, draft: TurnDrafted) -> TurnDecided | None:
        """The last decision of a draft that came in time; it may be one that waits."""
        _, answer = await self._answered(draft, self._patience, lambda a: isinstance(a, TurnDecided) and is_final(a))
        return answer if isinstance(answer, TurnDecided) else None

    async def recorded(self, result: ToolReturned) -> bool:
        """Whether a result is surely recorded."""
        done, _ = await self._answered(result, self._at_once)
        return done

    async def offered(self, request: SharingRequested) -> bool:
        """Whether a person is asked to share a memory."""
        _, answer = await self._answered(request, self._at_once)
        return isinstance(answer, SharingOffered)

    async def claimed(self, turn: str, room: str) -> bool:
        """Whether this call, and no other one, may do what the turn was authorized for (R-DLV-2).

        Each time it is asked it claims under another name, so what was claimed before a crash is not claimed again.
        """
        claim = {"code": "not_confirmed", "detail": f"mcp-{uuid.uuid4().hex}"}
        return await self._delivered(turn, room, DeliveryStatus.UNCERTAIN, reasons=[claim])

    async def sent(self, turn: str, room: str) -> None:
        """What was claimed has been done."""
        if not await self._delivered(turn, room, DeliveryStatus.SENT):
            log.warning("%s was done, and the gateway does not know it: it stays uncertain", turn)

    async def _delivered(self, turn: str, room: str, status: DeliveryStatus, **more: Any) -> bool:
        said = await self._said("/v1/deliveries", {"turn": turn, "room": room, "status": status.value, **more})
        return said is not None

    async def _said(
        self, path: str, body: dict[str, Any] | None, params: httpx2.QueryParams | None = None
    ) -> dict[str, Any] | None:
        """What is answered with 200; None for anything else."""
        try:
            async with asyncio.timeout(self._at_once):
                status, said = await self._transport.said(path, body, params)
        except (TimeoutError, httpx2.HTTPError, ValueError) as problem:
            log.warning("the gateway does not answer (%s)", type(problem).__name__)
            return None
        if status is not HTTPStatus.OK:
            log.warning("the gateway answers %s %s for %s", status.value, status.phrase, path)
            return None
        return said

    async def _answered(
        self, record: Record, patience: float, enough: Callable[[Record], bool] = lambda _: True
    ) -> tuple[bool, Record | None]:
        """Whether all came that was waited for, and the last answer."""
        name, answer = type(record).__name__, None
        try:
            async with asyncio.timeout(patience), aclosing(self._transport.answers(record)) as answers:
                async for answer in answers:
                    if enough(answer):
                        break
            return True, answer
        except TimeoutError:
            log.warning("no answer to a %s in time", name)
        except (Unreachable, httpx2.HTTPError, ValueError) as problem:  # no record, or characters that no JSON has
            log.warning("a %s is not answered (%s)", name, type(problem).__name__)
        return False, answer
