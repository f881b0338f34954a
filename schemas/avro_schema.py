"""Decides the Avro schema of a record, from its pydantic model, so that the two cannot say different things.

`python -m turngate.schemas.avro_schema` writes `avro/<Record>/<version>.avsc` where a model has changed since the
newest version there. Versions are kept for ever: readers of today read what was written by any of them.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from turngate.schemas import inputs, outputs, shapes
from turngate.schemas.catalog import RECORDS

FOLDER = Path(__file__).parent / "avro"

#: What a reader takes a symbol for that it does not know: the restrictive one (contract section 7).
RESTRICTIVE: Mapping[type[StrEnum], StrEnum] = {
    shapes.Scope: shapes.Scope.UNKNOWN,
    shapes.RoomKind: shapes.RoomKind.CHANNEL,
    shapes.Visibility: shapes.Visibility.OPEN,
    shapes.MemberKind: shapes.MemberKind.EXTERNAL,
    shapes.AuthorKind: shapes.AuthorKind.EXTERNAL,
    shapes.Origin: shapes.Origin.LLM,
    shapes.FieldClass: shapes.FieldClass.SECRET,
    inputs.Change: inputs.Change.JOINED,
    inputs.WriteOp: inputs.WriteOp.REJECT,
    inputs.WriteBy: inputs.WriteBy.REFUSAL,
    inputs.MemoryKind: inputs.MemoryKind.TRANSCRIPT,
    inputs.Label: inputs.Label.UNCERTAIN,
    inputs.GrantOp: inputs.GrantOp.REVOKE,
    inputs.DeliveryStatus: inputs.DeliveryStatus.UNCERTAIN,
    outputs.Because: outputs.Because.DRAFT,
    outputs.EvidenceStatus: outputs.EvidenceStatus.UNKNOWN,
    outputs.RevisionState: outputs.RevisionState.RETIRED,
    outputs.GrantState: outputs.GrantState.REVOKED,
    outputs.Attribution: outputs.Attribution.HIDDEN,
    outputs.Verdict: outputs.Verdict.DROP,
    outputs.ShadowVerdict: outputs.ShadowVerdict.DROP,
    outputs.Outcome: outputs.Outcome.REFUSED,
    outputs.Forgotten: outputs.Forgotten.INACTIVE,
}

#: Names in the contract that are no names in Python.
_AVRO_NAMES: Mapping[type[shapes.Shape], str] = {shapes.ValueField: "Field"}


def schema_of(model: type[shapes.Shape], seen: set[str] | None = None) -> dict[str, Any] | str:
    """The Avro schema of a model; a named type is spelled out where it is met first, as Avro wants it."""
    seen = set() if seen is None else seen
    name = _AVRO_NAMES.get(model, model.__name__)
    if name in seen:
        return f"{shapes.NAMESPACE}.{name}"
    seen.add(name)
    hints = get_type_hints(model, include_extras=True)
    doc = " ".join((model.__doc__ or "").split())
    return {
        "type": "record",
        "name": name,
        "namespace": shapes.NAMESPACE,
        "doc": doc,
        "fields": [_field(info.alias or key, hints[key], info, seen) for key, info in model.model_fields.items()],
    }


def _field(name: str, hint: Any, info: FieldInfo, seen: set[str]) -> dict[str, Any]:
    field = {"name": name, "type": _type(hint, seen)}
    if not info.is_required():
        default = info.get_default()
        field["default"] = list(default) if isinstance(default, tuple) else default
    return field


def _type(hint: Any, seen: set[str]) -> Any:
    if get_origin(hint) is Annotated:
        base, *metadata = get_args(hint)
        if any(isinstance(m, FieldInfo) and m.json_schema_extra == {"avro": "timestamp-millis"} for m in metadata):
            return {"type": "long", "logicalType": "timestamp-millis"}
        return _type(base, seen)
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (a for a in get_args(hint) if a is not type(None))
        return ["null", _type(inner, seen)]
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _type(get_args(hint)[0], seen)}
    if get_origin(hint) is dict:
        return {"type": "map", "values": _type(get_args(hint)[1], seen)}
    if issubclass(hint, StrEnum):
        return _enum(hint, seen)
    if issubclass(hint, shapes.Shape):
        return schema_of(hint, seen)
    return {str: "string", bool: "boolean", int: "long"}[hint]


def _enum(kind: type[StrEnum], seen: set[str]) -> dict[str, Any] | str:
    if kind.__name__ in seen:
        return f"{shapes.NAMESPACE}.{kind.__name__}"
    seen.add(kind.__name__)
    symbols = [member.value for member in kind]
    return {
        "type": "enum",
        "name": kind.__name__,
        "namespace": shapes.NAMESPACE,
        "symbols": symbols,
        "default": RESTRICTIVE[kind].value,
    }


def versions(record: str) -> list[dict[str, Any]]:
    """Every version of a record's schema that was ever written, oldest first."""
    files = sorted((FOLDER / record).glob("*.avsc"), key=lambda f: int(f.stem))
    return [json.loads(f.read_text("utf-8")) for f in files]


def wire_schema(schema: Any) -> Any:
    """A schema as it is used here: without `timestamp-millis`, so that times stay the integers they are on the wire."""
    if isinstance(schema, dict):
        return {k: wire_schema(v) for k, v in schema.items() if k not in ("logicalType", "doc")}
    if isinstance(schema, list):
        return [wire_schema(x) for x in schema]
    return schema


def undocumented(schema: Any) -> Any:
    """A schema without the words that say what its records mean."""
    if isinstance(schema, dict):
        return {key: undocumented(value) for key, value in schema.items() if key != "doc"}
    return [undocumented(part) for part in schema] if isinstance(schema, list) else schema


def write_changed() -> list[Path]:
    """Write a new version for each record whose model differs from its newest version; returns the files written.

    Where only the words of the documentation differ, the newest version is written over.
    """
    written = []
    for name, model in RECORDS.items():
        known = versions(name)
        schema = schema_of(model)
        if not known or known[-1] != schema:
            same = bool(known) and undocumented(known[-1]) == undocumented(schema)
            path = FOLDER / name / f"{len(known) + (0 if same else 1)}.avsc"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", "utf-8")
            written.append(path)
    return written


if __name__ == "__main__":
    sys.stdout.writelines(f"{path}\n" for path in write_changed())
