"""Decides what a connector may bring in, and that it speaks for its own namespaces alone (R-EVI-10)."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from turngate.gateway.description import Recorded, RefreshRequests, answered, described
from turngate.gateway.forms import body_form, record_of, told
from turngate.gateway.guard import Gate, Guarded, Wait, fields_of, gate_of, scoped
from turngate.gateway.identity import Key, Kind, asked
from turngate.gateway.problems import Problem
from turngate.gateway.refreshes import Place
from turngate.gateway.replies import json_response, recorded
from turngate.gateway.tokens import Scope, Token
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import RefreshRequested
from turngate.streams.clock import now_ms

router = APIRouter(route_class=Guarded, tags=["connectors"])

Connector = Annotated[Token, Depends(scoped(Scope.CONNECTOR))]
#: Which records an endpoint takes; `record` in the body names one, else it is the first.
_Kinds = tuple[type[Record], ...]
OBSERVATIONS: _Kinds = (inputs.MessageObserved, inputs.MessageDeleted)
LISTINGS: _Kinds = (inputs.MembershipPage, inputs.MembershipChanged, inputs.RoomChanged)
PROOFS: _Kinds = (inputs.AccountProven, inputs.ProofRevoked)
APPROVALS: _Kinds = (inputs.ActionApproved, inputs.ApprovalWithdrawn)
BODIES = tuple(body_form(kind) for kind in (*OBSERVATIONS, *LISTINGS, *PROOFS, *APPROVALS))
_FORMS = dict(zip((*OBSERVATIONS, *LISTINGS, *PROOFS, *APPROVALS), BODIES, strict=True))
_PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,9})")


def _described(kinds: _Kinds) -> dict[str, Any]:
    return described(*(_FORMS[kind] for kind in kinds))


@router.post("/v1/observations", openapi_extra=_described(OBSERVATIONS), responses=answered(own=Recorded))
async def observations(request: Request, token: Connector) -> Response:
    """Tell of a message, or that one was deleted (`"record": "MessageDeleted"`)."""
    return await _take(request, token, OBSERVATIONS)


@router.post("/v1/listings", openapi_extra=_described(LISTINGS), responses=answered(own=Recorded))
async def listings(request: Request, token: Connector) -> Response:
    """Bring a page of a listing; or tell of a join or leave (`MembershipChanged`), or of a change (`RoomChanged`)."""
    return await _take(request, token, LISTINGS)


@router.post("/v1/proofs", openapi_extra=_described(PROOFS), responses=answered(own=Recorded))
async def proofs(request: Request, token: Connector) -> Response:
    """Say that an account was proven to be somebody's, or that a proof counts no more (`ProofRevoked`)."""
    return await _take(request, token, PROOFS)


@router.post("/v1/approvals", openapi_extra=_described(APPROVALS), responses=answered(own=Recorded))
async def approvals(request: Request, token: Connector) -> Response:
    """Say that a person has approved exactly these bytes, or takes that back (`ApprovalWithdrawn`)."""
    return await _take(request, token, APPROVALS)


@router.get("/v1/refresh-requests", responses=answered(own=RefreshRequests))
async def refresh_requests(
    request: Request,
    token: Connector,
    after: Annotated[str, Query(pattern=_PLACE.pattern, description="The `next` of the answer before.")] = "0-0",
    wait: Wait = None,
) -> Response:
    """The listings that are asked for, of this token's agent and namespaces; waits until there is one."""
    gate = gate_of(request)
    numbers = _PLACE.fullmatch(after)
    place = Place() if numbers is None else Place(int(numbers[1]), int(numbers[2]))

    def mine(record: RefreshRequested) -> bool:
        return record.agent == token.agent and token.has(record.room)

    loop = asyncio.get_running_loop()
    deadline = loop.time() + gate.patience(wait)
    found, place = gate.refreshes.after(token.tenant, place, mine)
    while not found and not gate.refreshes.closed and (left := deadline - loop.time()) > 0:
        await gate.refreshes.wait(left)
        found, place = gate.refreshes.after(token.tenant, place, mine)
    return json_response({"requests": [told(record) for record in found], "next": f"{place.at}-{place.told}"})


async def _take(request: Request, token: Token, kinds: _Kinds) -> Response:
    gate, fields = gate_of(request), await fields_of(request)
    record = record_of(_kind(fields, kinds), fields, token, now_ms())
    _permitted(gate, token, record)
    key = asked(record)
    if key is None:
        await gate.asking.append(record)
    else:
        await gate.asking.put(record, token, gate.limits.wait)
    return recorded(record)


def _kind(fields: dict[str, Any], kinds: _Kinds) -> type[Record]:
    name = fields.pop("record", kinds[0].__name__)
    found = next((kind for kind in kinds if kind.__name__ == name), None)
    if found is None:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"`record` is one of {names}")
    return found


def _permitted(gate: Gate, token: Token, record: Record) -> None:
    """Raises `Problem` for what lies in a namespace that is not the token's."""
    where: str | None
    match record:
        case inputs.AccountProven():
            where = record.reader
        case inputs.ActionApproved():
            where = record.by
        case inputs.ProofRevoked():
            where = _made_by(gate, Key(token.tenant, Kind.PROOF, record.proof))
        case inputs.ApprovalWithdrawn():
            where = _made_by(gate, Key(token.tenant, Kind.APPROVAL, record.approval))
        case _:
            where = getattr(record, "room")  # noqa: B009  every other record of a connector has one
    if where is not None and not token.has(where):
        raise Problem(HTTPStatus.FORBIDDEN, "this lies in a namespace that is not this token's")


def _made_by(gate: Gate, key: Key) -> str | None:
    """Whose proof or approval it was; None where that is not known, since taking back must not wait (R-POL-2)."""
    entry = gate.asking.book.get(key)
    match None if entry is None else entry.request:
        case inputs.AccountProven(reader=reader):
            return reader
        case inputs.ActionApproved(by=by):
            return by
    return None
