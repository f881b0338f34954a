"""Decides what an agent may ask for: context, drafts, memory, sharing; and what it says of its tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from turngate.gateway.asking import Asked, unavailable
from turngate.gateway.description import ANSWERS, Recorded, answered, described
from turngate.gateway.forms import body_form, record_of, told
from turngate.gateway.guard import Gate, Guarded, Wait, fields_of, gate_of, scoped
from turngate.gateway.identity import Key, Kind
from turngate.gateway.problems import Problem
from turngate.gateway.replies import NOT_KEPT, json_response, recorded
from turngate.gateway.tokens import Scope, Token
from turngate.schemas import inputs, outputs
from turngate.schemas.canonical import canonical
from turngate.schemas.inputs import Record
from turngate.schemas.shapes import RoomId
from turngate.schemas.tooling import ServerTerms
from turngate.streams.clock import now_ms

router = APIRouter(route_class=Guarded, tags=["agents"])

Agent = Annotated[Token, Depends(scoped(Scope.AGENT))]
ContextBody, DraftBody = body_form(inputs.ContextRequested), body_form(inputs.TurnDrafted)
ResultBody, WriteBody = body_form(inputs.ToolReturned), body_form(inputs.MemoryWrite)
SharingBody = body_form(inputs.SharingRequested, "revision")
BODIES = (ContextBody, DraftBody, ResultBody, WriteBody, SharingBody)


@router.post("/v1/context", openapi_extra=described(ContextBody), responses=answered(outputs.ContextDecided))
async def context(request: Request, token: Agent, wait: Wait = None) -> Response:
    """Ask before inference which candidates the room may hear; answered by `ContextDecided`."""
    gate = gate_of(request)
    fields = await fields_of(request)
    candidates = fields.get("candidates")
    if isinstance(candidates, list) and len(candidates) > gate.limits.candidates:
        detail = f"a context request has at most {gate.limits.candidates} candidates"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    return await _ask(gate, record_of(inputs.ContextRequested, fields, token, now_ms()), token, wait)


@router.post("/v1/drafts", openapi_extra=described(DraftBody), responses=answered(outputs.TurnDecided))
async def drafts(request: Request, token: Agent, wait: Wait = None) -> Response:
    """Ask before sending whether a turn may be said; answered by `TurnDecided`."""
    record = record_of(inputs.TurnDrafted, await fields_of(request), token, now_ms())
    return await _ask(gate_of(request), record, token, wait)


@router.post("/v1/tool-results", openapi_extra=described(ResultBody), responses=answered(own=Recorded))
async def tool_results(request: Request, token: Agent) -> Response:
    """Report what a tool returned. Values of `health` fields are left out before anything is written."""
    record = record_of(inputs.ToolReturned, await fields_of(request), token, now_ms())
    gate = gate_of(request)
    await gate.asking.put(record, token, gate.limits.wait)
    return recorded(record)


@router.post(
    "/v1/memory", openapi_extra=described(WriteBody), responses=answered(outputs.RevisionRecorded, outputs.WriteRefused)
)
async def memory(request: Request, token: Agent, wait: Wait = None) -> Response:
    """Write a memory; answered by `RevisionRecorded` or `WriteRefused`. The text of a `health` write is left out."""
    record = record_of(inputs.MemoryWrite, await fields_of(request), token, now_ms())
    return await _ask(gate_of(request), record, token, wait)


@router.post(
    "/v1/memory/{revision:path}/sharing",
    openapi_extra=described(SharingBody),
    responses=answered(outputs.SharingOffered, outputs.CommandRefused),
)
async def sharing(request: Request, token: Agent, revision: str, wait: Wait = None) -> Response:
    """Ask a memory's author to share it; answered by `SharingOffered` or `CommandRefused`."""
    record = record_of(inputs.SharingRequested, await fields_of(request), token, now_ms(), revision=revision)
    return await _ask(gate_of(request), record, token, wait)


@router.get("/v1/tools/{server:path}", responses=answered(own=ServerTerms))
async def tools(request: Request, token: Agent, server: str, room: RoomId) -> Response:
    """What the policy says of a tool server in a room: classes, masks, operations. For whoever calls its tools."""
    terms = gate_of(request).policies.terms(token.tenant, room, server)
    if terms is None:
        raise unavailable("the policy of this room is not read yet: send the same request again")
    return json_response(terms.model_dump(mode="json"))


@router.get("/v1/answers/{receipt}/{kind}/{name:path}", responses=answered(*ANSWERS))
async def answers(request: Request, token: Agent, receipt: str, kind: Kind, name: str, wait: Wait = None) -> Response:
    """Ask again for an answer, where a 202 said so; as server-sent events with `Accept: text/event-stream`."""
    gate = gate_of(request)
    asked = await gate.asking.again(Key(token.tenant, kind, name), receipt, token, gate.limits.behind)
    if "text/event-stream" in request.headers.get("accept", ""):
        headers = {"X-Accel-Buffering": "no", **NOT_KEPT}
        return StreamingResponse(_events(gate, asked, request), media_type="text/event-stream", headers=headers)
    return _answered(asked, await gate.asking.answer(asked, gate.patience(wait)))


async def _ask(gate: Gate, record: Record, token: Token, wait: float | None) -> Response:
    asked = await gate.asking.put(record, token, gate.limits.wait)
    return _answered(asked, await gate.asking.answer(asked, gate.patience(wait), first=True))


def _answered(asked: Asked, record: Record | None) -> Response:
    """200 with the final answer; else 202 with what is known so far and the place to ask again."""
    if record is not None and asked.entry.final is not None:
        return json_response(told(record))
    place = f"/v1/answers/{asked.receipt}/{asked.key.kind}/{quote(asked.key.id, safe='')}"
    verdict = record.verdict if isinstance(record, outputs.TurnDecided) else "waiting"
    body = {"status": verdict, "decided": None if record is None else told(record), "place": place}
    return json_response(body, HTTPStatus.ACCEPTED, {"Location": place})


async def _events(gate: Gate, asked: Asked, request: Request) -> AsyncIterator[bytes]:
    def live() -> bool:
        try:
            gate.token_of(request)
        except Problem:
            return False
        return True

    async for record in gate.asking.follow(asked, gate.limits.pulse, live):
        if record is None:
            yield KEEPALIVE_COMMENT
        else:
            yield format_sse_event(data_str=canonical(told(record)).decode(), event=type(record).__name__)
