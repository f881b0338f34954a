"""Decides who may say what became of a turn: whoever sends or executes for its agent (R-DLV-2)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from turngate.gateway.description import Recorded, answered, described
from turngate.gateway.forms import body_form, record_of
from turngate.gateway.guard import Guarded, fields_of, gate_of, scoped
from turngate.gateway.identity import Key, Kind
from turngate.gateway.problems import Problem
from turngate.gateway.replies import recorded
from turngate.gateway.tokens import Scope, Token
from turngate.schemas.inputs import DeliveryStatus, TurnDelivered
from turngate.streams.clock import now_ms

router = APIRouter(route_class=Guarded, tags=["executors"])

Executor = Annotated[Token, Depends(scoped(Scope.EXECUTOR))]
BODIES = (body_form(TurnDelivered),)


@router.post("/v1/deliveries", openapi_extra=described(*BODIES), responses=answered(own=Recorded))
async def deliveries(request: Request, token: Executor) -> Response:
    """Say what became of an authorized turn; `uncertain`, before anything is done, claims it.

    Of two claims that differ the second is a conflict: name yourself in a reason's `detail`.
    """
    gate = gate_of(request)
    record = record_of(TurnDelivered, await fields_of(request), token, now_ms())
    assert isinstance(record, TurnDelivered)
    let_out = gate.asking.book.let_out(token.tenant, record.turn)
    if let_out is None or (let_out.agent, let_out.room) != (token.agent, record.room):
        raise Problem(HTTPStatus.NOT_FOUND, "no such turn of this token's agent was authorized for this room of late")
    if record.message is not None and not record.message.startswith(f"{record.room}/"):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "`message` must lie under its room")
    ended = gate.asking.book.get(Key(token.tenant, Kind.DELIVERY, record.turn))
    if record.status is DeliveryStatus.UNCERTAIN:
        if ended is not None:
            raise Problem(HTTPStatus.CONFLICT, "it is known already what became of this turn")
        if gate.stops.ended(token.tenant, let_out, now_ms()):
            raise Problem(HTTPStatus.CONFLICT, "it may not be done any more: what permitted it has ended")
    await gate.asking.put(record, token, gate.limits.wait)
    return recorded(record)
