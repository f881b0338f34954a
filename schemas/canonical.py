"""Decides the one way in which a value is written as JSON before it is digested: RFC 8785."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import rfc8785

_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def canonical(value: Any) -> bytes:
    """The canonical JSON (RFC 8785) of text, booleans, null, whole numbers below 2**53, lists and mappings of these.

    Raises `ValueError` for anything else. The standard library writes exactly this form, but for the order of keys
    beyond the basic plane, which RFC 8785 sorts by UTF-16 units; a text with such characters goes to the slow library.
    """
    text = _ENCODE(value)
    if not text.isascii() and _ASTRAL.search(text):
        return rfc8785.dumps(json.loads(text))
    return text.encode()


def digest(value: Any) -> str:
    """SHA-256, in hex, of a value's canonical JSON (contract section 2)."""
    return hashlib.sha256(canonical(value)).hexdigest()
