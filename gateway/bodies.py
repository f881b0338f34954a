"""Decides which bytes are taken for a request's JSON: not too many, not too slow, and meaning one thing only."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from starlette.requests import ClientDisconnect, Request

from turngate.gateway.problems import Problem

#: How deep lists and objects may lie in one another; the deepest record has five.
_DEPTH = 16


async def read_json(request: Request, most: int, patience: float) -> dict[str, Any]:
    """The JSON object of a request's body, of at most `most` bytes that have come within `patience` seconds.

    Raises `Problem` for anything else: a name that is there twice, a number that no record can hold, U+0000.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send a JSON object, with Content-Type: application/json")
    return parsed(await _body(request, most, patience))


async def _body(request: Request, most: int, patience: float) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:19]) > most:
        raise _too_large(most)
    body = bytearray()
    try:
        async with asyncio.timeout(patience):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise _too_large(most)
    except TimeoutError:
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT,
            f"the body did not come within {patience:g} seconds",
            headers={"Connection": "close"},
        ) from None
    except ClientDisconnect:
        raise Problem(HTTPStatus.BAD_REQUEST, "the body did not come to its end") from None
    return bytes(body)


def _too_large(most: int) -> Problem:
    detail = f"a body has at most {most} bytes"
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, headers={"Connection": "close"})


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object that these bytes are. Raises `Problem`, which quotes nothing of them."""
    try:
        found = json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "the body is no JSON in UTF-8, lies too deep, or has a name twice in one object or a number without end",
        ) from None
    if not isinstance(found, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    if not _plain(found, _DEPTH):
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"no text may hold U+0000, and nothing may lie deeper than {_DEPTH} levels"
        )
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made


def _refused(_: str) -> float:
    raise ValueError("NaN and Infinity are no JSON")


def _plain(value: Any, depth: int) -> bool:
    """Whether no text holds U+0000, which neither Postgres nor many a client can hold, and nothing lies too deep."""
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, dict | list):
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        return depth > 0 and all(_plain(one, depth - 1) for one in inner)
    return True
