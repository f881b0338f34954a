"""Decides the one way in which a value is written as JSON before it is digested: RFC 8785."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, Final

import orjson
import rfc8785

_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_FORM: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_dumps: Final = orjson.dumps
_sha256: Final = hashlib.sha256


def canonical(value: Any, made_of: Callable[[Any], Any] | None = None) -> bytes:
    """The canonical JSON (RFC 8785) of text, booleans, null, whole numbers below 2**53, lists and mappings of these.

    Raises `ValueError` for anything else but floats, which no record has; `made_of` says what something else is made of
    instead, raising `TypeError` where it does not know. orjson writes exactly this form, but for the
    order of keys beyond the basic plane, which RFC 8785 sorts by UTF-16 units; a text with such characters goes to the
    slow library.
    """
    try:
        written = _dumps(value, made_of, _FORM)
    except orjson.JSONEncodeError as error:
        raise ValueError(str(error)) from error
    if not written.isascii() and _ASTRAL.search(written.decode()):
        return rfc8785.dumps(orjson.loads(written))
    return written


def digest(value: Any, made_of: Callable[[Any], Any] | None = None) -> str:
    """SHA-256, in hex, of a value's canonical JSON (contract section 2)."""
    return _sha256(canonical(value, made_of)).hexdigest()
