"""Decides what a refused request is answered: problem details (RFC 9457), which quote nothing of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

MEDIA_TYPE = "application/problem+json"


class Problem(HTTPException):
    """A request that is not carried out. `detail` says what was wrong and what to do, `errors` at which fields."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.errors = [dict(error) for error in errors]


def answered(problem: HTTPException) -> JSONResponse:
    """The answer to a request that is not carried out."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status_code).phrase,
        "status": problem.status_code,
        "detail": problem.detail,
    }
    errors = getattr(problem, "errors", [])
    if errors:
        body["errors"] = errors
    return JSONResponse(body, problem.status_code, problem.headers, MEDIA_TYPE)


def answer_problems(app: FastAPI) -> None:
    """Have every refusal of this application answered so, those of the framework too."""

    async def problem(_: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HTTPException):
            raise error
        return answered(error)

    app.add_exception_handler(HTTPException, problem)
