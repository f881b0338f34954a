"""Decides which fields a record of a scenario has: what the file says, its shorthands, and the fill-ins of section 8.

The Avro schemas say which fields there are and of which type; a name that no schema has is a mistake in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import rfc8785

from turngate.schemas.avro_schema import versions
from turngate.schemas.shapes import NAMESPACE
from turngate.streams.scenarios.errors import Wrong
from turngate.streams.scenarios.times import instant

#: Fill-ins by record (None: any) and field. Lists are filled with nothing and booleans with false by their type.
_FILL: Mapping[tuple[str | None, str], Any] = {
    (None, "tenant"): "acme",
    (None, "agent"): "mesh",
    ("MembershipPage", "page"): 0,
    ("MembershipPage", "last"): True,
    ("MembershipChanged", "kind"): "member",
    ("Member", "kind"): "member",
    ("MessageObserved", "author_kind"): "person",
    ("MemoryWrite", "kind"): "note",
    ("MemoryWrite", "op"): "create",
    ("MemoryWrite", "by"): "turn",
    ("Audience", "scope"): "listed",
    ("Param", "origin"): "llm",
}


@cache
def schema_of(record: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The newest Avro schema of a record, and every named type in it by its full name."""
    schema = versions(record)[-1]
    named: dict[str, Any] = {}
    _collect(schema, named)
    return schema, named


def _collect(schema: Any, named: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, dict):
        if schema["type"] in ("record", "enum"):
            named[f"{NAMESPACE}.{schema['name']}"] = schema
        for field in schema.get("fields", ()):
            _collect(field["type"], named)
        for key in ("items", "values"):
            _collect(schema.get(key), named)


def resolve(schema: Any, named: Mapping[str, Any]) -> tuple[Any, bool]:
    """A type without its name and without null, and whether it may be null."""
    nullable = isinstance(schema, list)
    if nullable:
        schema = next(s for s in schema if s != "null")
    return (named.get(schema, schema) if isinstance(schema, str) else schema), nullable


def kind_of(schema: Any) -> str:
    """`record`, `enum`, `array`, `map`, `time` or the name of a plain type."""
    if isinstance(schema, dict):
        return "time" if schema.get("logicalType") == "timestamp-millis" else str(schema["type"])
    return str(schema)


def filled(record: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of a record: those given, with times in milliseconds and shorthands spelled out, and the fill-ins.

    A value of another type than its field's is left as it is: it cannot be encoded, which may be what the file wants.
    Raises `Wrong` for a field that the record does not have and for a time that is none.
    """
    schema, named = schema_of(record)
    out: dict[str, Any] = _filled(schema, named, _record_shorthands(record, fields), record)
    return out


def _filled(schema: Any, named: Mapping[str, Any], value: Any, where: str) -> Any:
    schema, _nullable = resolve(schema, named)
    kind = kind_of(schema)
    if value is None:
        return None
    if kind == "record":
        return _filled_record(schema, named, spelled_out(schema["name"], value), where)
    if kind == "array" and isinstance(value, list):
        return [_filled(schema["items"], named, x, f"{where}[{i}]") for i, x in enumerate(value)]
    if kind == "map" and isinstance(value, Mapping):
        return {str(k): _filled(schema["values"], named, x, f"{where}.{k}") for k, x in value.items()}
    if kind == "time":
        try:
            return instant(value)
        except Wrong as error:
            raise Wrong(f"{where}: {error}") from None
    return value


def _filled_record(schema: dict[str, Any], named: Mapping[str, Any], value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        return value
    known(schema, value, where)
    out = {}
    for field in schema["fields"]:
        name = field["name"]
        if name in value:
            out[name] = _filled(field["type"], named, value[name], f"{where}.{name}")
            continue
        inner, nullable = resolve(field["type"], named)
        if nullable:
            continue
        if (given := _fill_in(schema["name"], name, kind_of(inner))) is not None:
            out[name] = given
    return out


def _fill_in(record: str, field: str, kind: str) -> Any:
    given = _FILL.get((record, field), _FILL.get((None, field)))
    if given is None:
        given = {"array": [], "map": {}, "boolean": False}.get(kind)
    return given


def known(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> None:
    """Raises `Wrong` for a key that is no field of the record."""
    names = {field["name"] for field in schema["fields"]}
    for key in value:
        if key not in names:
            raise Wrong(f"{where} has no field {key!r}; it has {', '.join(sorted(names))}")


def spelled_out(name: str, value: Any) -> Any:
    """A shape's shorthand as the map that it stands for (contract sections 2 and 8)."""
    if name == "Member" and isinstance(value, str):
        return {"reader": value}
    if name == "Audience":
        if isinstance(value, str):
            return {"scope": value}
        if isinstance(value, Mapping) and "workspace" in value:
            return {**{k: v for k, v in value.items() if k != "workspace"}, "workspaces": [value["workspace"]]}
    return value


def _record_shorthands(record: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(fields)
    if record == "TurnDrafted" and "text" in out:
        if "renderings" in out:
            raise Wrong("TurnDrafted: text is the shorthand of one rendering; write text or renderings, not both")
        out["renderings"] = [{"text": out.pop("text")}]
    if isinstance(out.get("fingerprint"), Mapping):
        out["fingerprint"] = action_fingerprint(out["fingerprint"])
    return out


def action_fingerprint(action: Mapping[str, Any]) -> str:
    """The fingerprint of `{operation, skill, params: {name: value}}` (contract section 2). Raises `Wrong`."""
    extra = set(action) - {"operation", "skill", "params"}
    if extra or "operation" not in action:
        raise Wrong("fingerprint: write {operation, skill, params: {name: value}}")
    params = action.get("params") or {}
    if not isinstance(params, Mapping) or not all(isinstance(v, str) for v in params.values()):
        raise Wrong("fingerprint: params is a map from names to values, and a value is text: put it in quotes")
    whole = {"operation": action["operation"], "skill": action.get("skill"), "params": dict(params)}
    return hashlib.sha256(rfc8785.dumps(whole)).hexdigest()
