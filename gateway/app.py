"""Decides which application answers HTTP, and how it describes itself (OpenAPI)."""

from __future__ import annotations

import logging
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from turngate.gateway import agents, connectors, executors
from turngate.gateway.guard import Gate
from turngate.gateway.problems import Problem, answer_problems, answered

_BODIES = (*agents.BODIES, *connectors.BODIES, *executors.BODIES)

log = logging.getLogger(__name__)


def application(gate: Gate) -> ASGIApp:
    """The gateway as an ASGI application."""
    app = FastAPI(title="Turngate", version=version("turngate"), docs_url=None, redoc_url=None)
    app.state.gate = gate
    for part in (agents, connectors, executors):
        app.include_router(part.router)
    answer_problems(app)
    app.add_exception_handler(RequestValidationError, _invalid)
    _describe(app)
    return _Quiet(app)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """A query or a path that is not as described, without its values."""
    assert isinstance(error, RequestValidationError)
    wrong = [{"field": ".".join(map(str, e["loc"])), "message": str(e["msg"])} for e in error.errors()]
    return answered(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "the URL is not as the API describes it", errors=wrong))


def _describe(app: FastAPI) -> None:
    """Add the bodies, which are read by hand, to the description."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            _, forms = models_json_schema(
                [(form, "validation") for form in _BODIES], ref_template="#/components/schemas/{model}"
            )
            schema.setdefault("components", {}).setdefault("schemas", {}).update(forms["$defs"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


class _Quiet:
    """A fault of ours is a 500 and one line in the log, without a traceback: that could quote what was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def sending(message: Any) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__)
            if not began and scope["type"] == "http":
                fault = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a fault of the gateway")
                await answered(fault)(scope, receive, send)
