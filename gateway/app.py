"""Decides which application answers HTTP, and how it describes itself (OpenAPI)."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from turngate.gateway import agents, connectors, executors
from turngate.gateway.description import describe
from turngate.gateway.guard import Gate
from turngate.gateway.problems import Problem, answer_problems, answered

_BODIES = (*agents.BODIES, *connectors.BODIES, *executors.BODIES)

log = logging.getLogger(__name__)


def application(gate: Gate) -> ASGIApp:
    """The gateway as an ASGI application."""
    return _Quiet(_routed(gate))


def described_by(gate: Gate) -> dict[str, Any]:
    """The API's description, as `/openapi.json` gives it."""
    return _routed(gate).openapi()


def _routed(gate: Gate) -> FastAPI:
    app = FastAPI(title="Turngate", version=version("turngate"), docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.gate = gate
    for part in (agents, connectors, executors):
        app.include_router(part.router)
    answer_problems(app)
    app.add_exception_handler(RequestValidationError, _invalid)
    describe(app, _BODIES)
    return app


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """A query or a path that is not as described, without its values."""
    assert isinstance(error, RequestValidationError)
    wrong = [{"field": ".".join(map(str, e["loc"])), "message": str(e["msg"])} for e in error.errors()]
    return answered(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "the URL is not as the API describes it", errors=wrong))


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
        except asyncio.CancelledError:  # by the server, which stops and would tell of it with a traceback
            problem = Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the gateway stops: send the same request again")
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__)
            problem = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a fault of the gateway")
        else:
            return
        if not began and scope["type"] == "http":
            await answered(problem)(scope, receive, send)
