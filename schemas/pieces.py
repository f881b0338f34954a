"""Decides how the records of a decision become Avro, which are most of what is written: field by field.

A record in Avro is its fields one after the other, so what is large, or one object in record after record, is encoded
once. Numbers, and with them lengths, are fastavro's; so is every other record.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import fastavro

from turngate.schemas.avro_schema import versions, wire_schema
from turngate.schemas.inputs import Record
from turngate.schemas.shapes import NAMESPACE, Position, Shape

#: Gives the bytes of a value.
Part = Callable[[Any], bytes]

_NAMES = ("ContextDecided", "TurnAuthorized", "TurnDecided", "DecisionTraced")
#: The newest schemas of the records that are encoded here.
PIECES: Mapping[str, Any] = {name: wire_schema(versions(name)[-1]) for name in _NAMES}
#: Shapes that are one object in record after record, and which of them are: whom a turn was let out to, and a ref that
#: the destination may hear, which is traced alike in every decision; any other is made anew for each.
_KEPT: Mapping[str, Callable[[Any], bool]] = {"Audience": lambda _: True, "TracedRef": lambda ref: ref.permitted}
#: Bytes of encoded values that are kept; a destination of 500 readers takes some 10 KB, one of 50,000 a megabyte.
_MOST_BYTES = 16_000_000
#: What a kept value takes beside its bytes, at least.
_BESIDE = 200

#: Numbers whose bytes are kept.
_MOST_LONGS = 4_000

#: Null, false, and what ends an array or a map.
_ZERO = b"\0"
#: What is no value of any record, and its bytes.
_NOTHING: tuple[object, bytes] = object(), b""
#: What stands before a value that may be null.
_PRESENT = b"\2"


class Pieces:
    """Encodes records in pieces. A value that is the same object as one before is not encoded again."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Shape, bytes]] = {}
        self._bytes = 0
        #: The positions encoded last, each with its bytes: all but a few are those of the decision before.
        self._positions: list[tuple[object, bytes]] = []
        self._as_of: tuple[object, bytes] = _NOTHING
        self._records = {name: self._part(schema, {}) for name, schema in PIECES.items()}

    def encode(self, record: Record, name: str) -> bytes:
        """The fields of a record that has pieces: the same bytes as if fastavro encoded it."""
        return self._records[name](record)

    def _part(self, schema: Any, known: dict[str, Part]) -> Part:
        """How the values of a schema are encoded; `known` are the named ones that were met before."""
        if isinstance(schema, str):
            return known[schema] if schema in known else _PLAIN[schema]
        if isinstance(schema, list):
            _, present = schema
            return _optional(self._part(present, known))
        kind = schema["type"]
        if kind == "array":
            item = self._part(schema["items"], known)
            return self._places(item) if item is known.get(f"{NAMESPACE}.Position") else _array(item)
        if kind == "map":
            return _map(self._part(schema["values"], known))
        if kind == "enum":
            made = _enum(schema["symbols"])
        elif kind == "record":
            made = _record([(sys.intern(f["name"]), self._part(f["type"], known)) for f in schema["fields"]])
            if schema["name"] in _KEPT:
                made = self._once(made, _KEPT[schema["name"]])
        else:
            return self._part(kind, known)
        known[f"{NAMESPACE}.{schema['name']}"] = made
        return made

    def _once(self, part: Part, lasts: Callable[[Any], bool]) -> Part:
        def encoded(value: Shape) -> bytes:
            known = self._kept.get(id(value))  # which stays its own, since the value is held here too
            if known is not None:
                return known[1]
            made = part(value)
            if lasts(value):
                self._keep(value, made)
            return made

        return encoded

    def _keep(self, value: Shape, encoded: bytes) -> None:
        if self._bytes > _MOST_BYTES:
            self._kept.clear()
            self._bytes = 0
        self._kept[id(value)] = value, encoded
        self._bytes += len(encoded) + _BESIDE

    def _places(self, part: Part) -> Part:
        whole = _array(itemgetter(1))

        def encoded(values: tuple[Position, ...]) -> bytes:
            as_of = self._as_of  # held here, since another thread may encode meanwhile
            if as_of[0] is not values:
                known = zip(values, chain(self._positions, repeat(_NOTHING)), strict=False)
                positions = [last if last[0] is value else (value, part(value)) for value, last in known]
                as_of = self._as_of = values, whole(positions)
                self._positions = positions
            return as_of[1]

        return encoded


def _record(parts: list[tuple[str, Part]]) -> Part:
    def encoded(value: Shape) -> bytes:
        fields = vars(value)
        return b"".join([part(fields[name]) for name, part in parts])

    return encoded


def _array(part: Part) -> Part:
    """An array: the count of its values and the values, if there are any, and a zero."""
    return lambda values: b"".join([_LONGS[len(values)], *map(part, values), _ZERO]) if len(values) else _ZERO


def _map(part: Part) -> Part:
    pairs = _array(lambda pair: _text(pair[0]) + part(pair[1]))
    return lambda values: pairs(values.items())


def _optional(part: Part) -> Part:
    """A union of null and one other."""
    return lambda value: _ZERO if value is None else _PRESENT + part(value)


def _enum(symbols: list[str]) -> Part:
    return {symbol: _LONGS[number] for number, symbol in enumerate(symbols)}.__getitem__


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _LONGS[len(encoded)] + encoded


def _boolean(value: object) -> bytes:  # fastavro takes null for false; as C, a `bool` that is null is an error
    return b"\1" if value else _ZERO


class _Longs(dict[int, bytes]):
    """Whole numbers as fastavro encodes them, those that were asked for lately. Looking one up is no call."""

    def __missing__(self, number: int) -> bytes:
        if len(self) > _MOST_LONGS:
            self.clear()
        out = io.BytesIO()
        fastavro.schemaless_writer(out, "long", number)
        made = self[number] = out.getvalue()
        return made


_LONGS = _Longs()
_PLAIN: Mapping[str, Part] = {"string": _text, "long": _LONGS.__getitem__, "boolean": _boolean}
