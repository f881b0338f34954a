"""Decides what bodies and answers look like: the contract's records as JSON, without `tenant` and `agent`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from turngate.gateway.problems import Problem
from turngate.gateway.tokens import Token
from turngate.schemas import inputs, outputs
from turngate.schemas.health import without_health
from turngate.schemas.inputs import Record

#: The token says these; a body that names one is refused, even if it names the right one.
NAMED_BY_TOKEN = ("tenant", "agent")
#: Of which the writer must say when it happened: who could read a message then is decided by it (R-AUD-9).
_DATED = (
    inputs.MessageObserved,
    inputs.MessageDeleted,
    inputs.MembershipPage,
    inputs.MembershipChanged,
    inputs.RoomChanged,
)
#: What an answer leaves out besides: whom a revision is made of, and how far a partition has come, which others share.
_NOT_TOLD: Mapping[type[Record], frozenset[str]] = {
    outputs.TurnDecided: frozenset({"as_of"}),
    outputs.RevisionRecorded: frozenset({"leaves", "restrictions"}),
}


def record_of(kind: type[Record], fields: Mapping[str, Any], token: Token, now: int, **more: Any) -> Record:
    """The record that a body stands for, as it may be appended; `more` is what the URL says.

    Raises `Problem` for fields that make none, or that only the token may say.
    """
    own = {name for name in (*NAMED_BY_TOKEN, *more) if name in fields}
    if own:
        detail = f"leave out {', '.join(sorted(own))}: the token and the URL say that"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    whole = {**fields, **more, "tenant": token.tenant}
    if "agent" in kind.model_fields:
        whole["agent"] = token.agent
    if kind not in _DATED and whole.get("at") is None:
        whole["at"] = now
    try:
        return without_health(kind.model_validate(whole))
    except ValidationError as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"this is no {kind.__name__}", errors=_wrong(error)) from None


def _wrong(error: ValidationError) -> list[dict[str, str]]:
    """Where it is wrong and why, without a value."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [{"field": ".".join(str(part) for part in e["loc"]), "message": e["msg"]} for e in found[:20]]


def told(record: Record) -> dict[str, Any]:
    """A record as an answer shows it."""
    return record.model_dump(mode="json", by_alias=True, exclude=set(_left_out(type(record))))


def body_form(kind: type[Record], *more: str) -> type[BaseModel]:
    """The form of a body, for the API's description; `more` is what the URL says."""
    optional = frozenset() if kind in _DATED else frozenset({"at"})
    return _form(kind, f"{kind.__name__}Body", {*NAMED_BY_TOKEN, *more}, optional)


def answer_form(kind: type[Record]) -> type[BaseModel]:
    """The form of an answer, for the API's description."""
    return _form(kind, f"{kind.__name__}Answer", _left_out(kind), frozenset())


def _left_out(kind: type[Record]) -> frozenset[str]:
    return frozenset(NAMED_BY_TOKEN) | _NOT_TOLD.get(kind, frozenset())


def _form(
    kind: type[Record], name: str, without: set[str] | frozenset[str], optional: frozenset[str]
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for field, info in kind.model_fields.items():
        if field not in without:
            fields[field] = (info.annotation, info) if field not in optional else (int | None, None)
    return create_model(name, __config__=ConfigDict(populate_by_name=True), __doc__=kind.__doc__, **fields)
