"""Decides how an answer is written."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Response

from turngate.schemas.canonical import canonical
from turngate.schemas.inputs import MessageDeleted, MessageObserved, Record, ToolReturned

NOT_KEPT = {"Cache-Control": "no-store"}


def json_response(
    body: dict[str, Any], status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] = NOT_KEPT
) -> Response:
    """An answer, for nobody but whoever asked."""
    return Response(canonical(body), status, {**NOT_KEPT, **headers}, "application/json")


def recorded(record: Record) -> Response:
    """What is answered of a record that nothing is decided of: the ref under which it is evidence, or its kind."""
    match record:
        case ToolReturned():
            name = f"tool:{record.call}"
        case MessageObserved() | MessageDeleted():
            name = f"message:{record.message}"
        case _:
            name = type(record).__name__
    return json_response({"recorded": name})
