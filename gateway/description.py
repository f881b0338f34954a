"""Decides how the API describes itself (OpenAPI): its bodies and answers are the records, its refusals problems."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from turngate.gateway.forms import answer_form
from turngate.gateway.problems import MEDIA_TYPE
from turngate.schemas import outputs
from turngate.schemas.inputs import Record
from turngate.schemas.tooling import ServerTerms

_REFS = "#/components/schemas/"
_JSON = "application/json"
#: How every request may be refused, and those that bring a body.
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY,
            HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)  # fmt: skip
_REFUSED_BODY = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT,
                 HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)  # fmt: skip
#: What a request of an agent is answered by.
ANSWERS: tuple[type[Record], ...] = (
    outputs.ContextDecided,
    outputs.TurnDecided,
    outputs.RevisionRecorded,
    outputs.WriteRefused,
    outputs.SharingOffered,
    outputs.CommandRefused,
)


class Recorded(BaseModel):
    """The record is on the log: the ref under which it is evidence, or what it is."""

    recorded: str


class Waiting(BaseModel):
    """The answer is not final yet; ask again at `place`."""

    status: Literal["waiting", "hold", "ask"]
    place: str
    decided: dict[str, Any] | None


class Wrong(BaseModel):
    """A field that is not as it must be."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """Why a request was not carried out (RFC 9457), and what to do."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Wrong] = Field(default_factory=list)


class RefreshRequests(BaseModel):
    """The listings that are asked for, and where to go on."""

    requests: list[dict[str, Any]]
    next: str


_FORMS = {kind: answer_form(kind) for kind in ANSWERS}
_OWN: tuple[type[BaseModel], ...] = (Recorded, Waiting, ProblemDetails, RefreshRequests, ServerTerms)


def described(*forms: type[BaseModel]) -> dict[str, Any]:
    """What the API's description says of a body that is read by hand."""
    return {"requestBody": {"required": True, "content": {_JSON: {"schema": _any(form.__name__ for form in forms)}}}}


def answered(*kinds: type[Record], own: type[BaseModel] | None = None) -> dict[int | str, dict[str, Any]]:
    """What the API's description says of answers: one of these records, or a later one; or a form of its own."""
    names = [_FORMS[kind].__name__ for kind in kinds] if own is None else [own.__name__]
    found = {HTTPStatus.OK: _response("The answer.", _JSON, names)}
    if kinds:
        found[HTTPStatus.ACCEPTED] = _response("Not decided yet.", _JSON, [Waiting.__name__])
    return {int(status): response for status, response in found.items()}


def describe(app: FastAPI, bodies: Iterable[type[BaseModel]]) -> None:
    """Complete the description of an application: forms, refusals, and the token that everything needs."""
    made, forms = app.openapi, [*bodies, *_FORMS.values(), *_OWN]

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            _, found = models_json_schema([(form, "validation") for form in forms], ref_template=_REFS + "{model}")
            components = schema.setdefault("components", {})
            components.setdefault("schemas", {}).update(found["$defs"])
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}]
            for methods in schema["paths"].values():
                for operation in methods.values():
                    _refusals(operation)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]


def _refusals(operation: dict[str, Any]) -> None:
    statuses = [*_REFUSED, *(_REFUSED_BODY if "requestBody" in operation else ()), HTTPStatus.NOT_FOUND]
    for status in statuses:
        operation["responses"][str(int(status))] = _response(status.phrase, MEDIA_TYPE, [ProblemDetails.__name__])


def _response(words: str, media_type: str, names: Iterable[str]) -> dict[str, Any]:
    return {"description": words, "content": {media_type: {"schema": _any(names)}}}


def _any(names: Iterable[str]) -> dict[str, Any]:
    refs = [{"$ref": _REFS + name} for name in names]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}
