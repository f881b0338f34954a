"""Decides when a record matches the pattern of an expectation: maps by subset, lists exactly (contract section 8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngate.streams.scenarios.errors import Wrong
from turngate.streams.scenarios.shapes import action_fingerprint, kind_of, known, resolve, schema_of, spelled_out
from turngate.streams.scenarios.times import instant

_NAME = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Contains:
    """A list in which each of these patterns matches something."""

    patterns: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Codes:
    """Reasons by their codes: exactly this set, or at least these."""

    codes: frozenset[str]
    exactly: bool


def compiled(record: str, pattern: Mapping[str, Any]) -> Any:
    """A pattern with its shorthands spelled out: audiences, times, codes of reasons, `contains`.

    Raises `Wrong` for a field that the record does not have: such a pattern would never match, and under `not` always
    hold.
    """
    schema, named = schema_of(record)
    if isinstance(pattern.get("fingerprint"), Mapping):
        pattern = {**pattern, "fingerprint": action_fingerprint(pattern["fingerprint"])}
    return _compiled(schema, named, pattern, record)


def _compiled(schema: Any, named: Mapping[str, Any], pattern: Any, where: str) -> Any:
    schema, _ = resolve(schema, named)
    kind = kind_of(schema)
    if pattern is None or (isinstance(pattern, str) and pattern.startswith("$")):
        return pattern
    if kind == "record":
        pattern = spelled_out(schema["name"], pattern)
        if not isinstance(pattern, Mapping):
            raise Wrong(f"expect: {where}: a map of fields")
        known(schema, pattern, where)
        types = {f["name"]: f["type"] for f in schema["fields"]}
        return {k: _compiled(types[k], named, v, f"{where}.{k}") for k, v in pattern.items()}
    if kind == "array":
        return _compiled_list(schema["items"], named, pattern, where)
    if kind == "time":
        return instant(pattern)
    return pattern


def _compiled_list(items: Any, named: Mapping[str, Any], pattern: Any, where: str) -> Any:
    partly = isinstance(pattern, Mapping) and set(pattern) == {"contains"}
    listed = pattern["contains"] if partly else pattern
    if not isinstance(listed, list):
        raise Wrong(f"expect: {where}: a list, or {{contains: a list}}")
    item, _ = resolve(items, named)
    if isinstance(item, dict) and item.get("name") == "Reason" and all(isinstance(x, str) for x in listed):
        return Codes(frozenset(listed), exactly=not partly)
    patterns = [_compiled(items, named, x, f"{where}[{i}]") for i, x in enumerate(listed)]
    return Contains(tuple(patterns)) if partly else patterns


def matches(pattern: Any, value: Any) -> bool:
    """Whether a value matches a compiled pattern; a field that is not there is null."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(matches(p, value.get(k)) for k, p in pattern.items())
    if isinstance(pattern, Codes):
        codes = {r["code"] for r in (() if value is None else value)}
        return codes == pattern.codes if pattern.exactly else codes >= pattern.codes
    if isinstance(pattern, Contains):
        return isinstance(value, list) and all(any(matches(p, v) for v in value) for p in pattern.patterns)
    if isinstance(pattern, list):
        if not isinstance(value, list) or len(value) != len(pattern):
            return False
        return all(matches(p, v) for p, v in zip(pattern, value, strict=True))
    return bool(pattern == value and isinstance(pattern, bool) is isinstance(value, bool))


def substituted(value: Any, captured: Mapping[str, Any]) -> Any:
    """`$name` replaced by what was captured under it, inside text too; a name that was not captured stays as it is."""
    if isinstance(value, Mapping):
        return {k: substituted(v, captured) for k, v in value.items()}
    if isinstance(value, list):
        return [substituted(v, captured) for v in value]
    if not isinstance(value, str):
        return value
    whole = _NAME.fullmatch(value)
    if whole is not None and whole[1] in captured:
        return captured[whole[1]]
    return _NAME.sub(lambda m: str(captured[m[1]]) if m[1] in captured else m[0], value)
