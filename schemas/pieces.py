"""Decides which parts of records are encoded once for many: what is large, or one object in record after record.

A record in Avro is its fields one after the other, so its parts, each on its own, are the whole.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fastavro

from turngate.schemas.avro_schema import versions, wire_schema
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import TracedRef
from turngate.schemas.shapes import NAMESPACE, Shape

#: By record: whom a turn was let out to, the positions applied (all but a few are those of the decision before), and
#: what was compared (a ref that the destination may hear is traced alike in every decision).
_PARTED: Mapping[str, tuple[str, ...]] = {
    "TurnAuthorized": ("destination",),
    "TurnDecided": ("as_of",),
    "DecisionTraced": ("refs", "as_of"),
}
#: Bytes of encoded values that are kept; a destination of 500 readers takes some 10 KB, one of 50,000 a megabyte.
_MOST_BYTES = 16_000_000
#: What a kept value takes beside its bytes, at least.
_BESIDE = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """Fields that lie together, encoded each time (`field` null), or one whose values are encoded once.

    `schema` is that of a value; `several`: the field is a list of them.
    """

    field: str | None
    schema: Any
    several: bool = False


def _pieces(name: str, parted: tuple[str, ...]) -> tuple[Piece, ...]:
    schema = wire_schema(versions(name)[-1])
    known: dict[str, Any] = {}
    pieces: list[Piece] = []
    together: list[Any] = []

    def end() -> None:
        if together:
            own = {**schema, "name": f"{name}{len(pieces)}", "fields": list(together)}
            pieces.append(Piece(None, fastavro.parse_schema(own, named_schemas=known)))
            together.clear()

    for field in schema["fields"]:
        if field["name"] not in parted:
            together.append(field)
            continue
        end()
        several = field["type"]["type"] == "array"
        value = field["type"]["items"] if several else field["type"]
        parsed = fastavro.parse_schema({"namespace": NAMESPACE, **value}, named_schemas=known)
        pieces.append(Piece(field["name"], parsed, several))
    end()
    return tuple(pieces)


#: The pieces of the records that have some.
PIECES: Mapping[str, tuple[Piece, ...]] = {name: _pieces(name, parted) for name, parted in _PARTED.items()}


#: Fields of these that hold shapes and are encoded each time.
_NESTED: Mapping[str, tuple[str, ...]] = {
    "TurnAuthorized": ("action",),
    "TurnDecided": ("reasons",),
    "DecisionTraced": ("reasons",),
}


class Pieces:
    """Encodes records in pieces. A value that is the same object as one before is not encoded again."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Shape, bytes]] = {}
        self._bytes = 0

    def encode(self, out: io.BytesIO, record: Record, name: str) -> None:
        """Write the fields of a record that has pieces: the same bytes as if it were encoded whole."""
        fields = dict(vars(record))
        for nested in _NESTED[name]:
            if fields[nested]:
                fields[nested] = _dumped(fields[nested])
        for piece in PIECES[name]:
            if piece.field is None:
                fastavro.schemaless_writer(out, piece.schema, fields, disable_tuple_notation=True)
            elif piece.several:
                self._list(out, getattr(record, piece.field), piece.schema)
            else:
                out.write(self._value(getattr(record, piece.field), piece.schema))

    def _list(self, out: io.BytesIO, values: tuple[Shape, ...], schema: Any) -> None:
        """An array: the count of its values and the values, if there are any, and a zero."""
        if values:
            fastavro.schemaless_writer(out, "long", len(values))
            out.write(b"".join([self._value(value, schema) for value in values]))
        out.write(b"\0")

    def _value(self, value: Shape, schema: Any) -> bytes:
        known = self._kept.get(id(value))  # which stays its own, since the value is held here too
        if known is None:
            made = io.BytesIO()
            fastavro.schemaless_writer(made, schema, value.model_dump(by_alias=True), disable_tuple_notation=True)
            if isinstance(value, TracedRef) and not value.permitted:
                return made.getvalue()  # made anew for each trace
            known = self._keep(value, made.getvalue())
        return known[1]

    def _keep(self, value: Shape, encoded: bytes) -> tuple[Shape, bytes]:
        if self._bytes > _MOST_BYTES:
            self._kept.clear()
            self._bytes = 0
        kept = self._kept[id(value)] = value, encoded
        self._bytes += len(encoded) + _BESIDE
        return kept


def _dumped(value: Shape | tuple[Shape, ...]) -> Any:
    """A shape, or several, as fields."""
    return (
        value.model_dump(by_alias=True)
        if isinstance(value, Shape)
        else [one.model_dump(by_alias=True) for one in value]
    )
