"""Decides how a record becomes bytes and back: Avro binary, framed with its writer's schema (contract section 7)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from turngate.schemas.avro_schema import versions, wire_schema
from turngate.schemas.catalog import RECORDS
from turngate.schemas.inputs import Record
from turngate.schemas.pieces import PIECES, Pieces
from turngate.schemas.shapes import NAMESPACE, Audience

#: Avro single-object encoding: two magic bytes, then the little-endian CRC-64-AVRO fingerprint of the writer's schema.
SINGLE_OBJECT = b"\xc3\x01"
#: Confluent wire format: a zero byte, then the registry's schema id, four bytes, big endian.
CONFLUENT = b"\x00"


class Undecodable(Exception):
    """Bytes that are no valid record. Carries a schema's name, never a part of the bytes (R-RUN-5)."""

    def __init__(self, schema: str | None = None) -> None:
        super().__init__(schema or "no record of the contract")
        self.schema = schema


class Unencodable(ValueError):
    """Fields that do not make the named record; the message says which, for whoever wrote them."""


class SchemaIds(Protocol):
    """What a codec asks of a schema registry, all answered from memory."""

    def id_of(self, record: str) -> int:
        """The id under which the newest schema of a record is registered."""

    def schema_of(self, schema_id: int) -> tuple[str, Any] | None:
        """The record's name and the writer's schema of an id, or None where the registry did not know it."""


@dataclass(frozen=True, slots=True)
class _Schema:
    name: str
    parsed: Any
    newest: bool


def crc64(schema: Any) -> bytes:
    """The CRC-64-AVRO fingerprint of a schema as it stands in single-object encoding."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))  # its hex is little-endian


def _known() -> tuple[dict[str, Any], dict[str, bytes], dict[bytes, _Schema]]:
    newest, prefix, by_fingerprint = {}, {}, {}
    for name in RECORDS:
        for schema in versions(name):
            parsed = fastavro.parse_schema(wire_schema(schema), named_schemas={})
            mark = crc64(schema)
            by_fingerprint[mark] = _Schema(name, parsed, newest=False)
        by_fingerprint[mark] = _Schema(name, parsed, newest=True)
        newest[name], prefix[name] = parsed, SINGLE_OBJECT + mark
    return newest, prefix, by_fingerprint


_NEWEST, _PREFIX, _BY_FINGERPRINT = _known()


def _around(own: str) -> list[Any]:
    """The schemas of the fields of a `TurnAuthorized` before one, of that one, and of those after it."""
    fields = PIECES["TurnAuthorized"]["fields"]
    at = [field["name"] for field in fields].index(own)
    parts, known = (fields[:at], fields[at : at + 1], fields[at + 1 :]), dict[str, Any]()
    return [
        fastavro.parse_schema({"type": "record", "name": f"Part{n}", "fields": part}, named_schemas=known)
        for n, part in enumerate(parts)
    ]


#: The one field that is large and the same in many records, and the schemas of what stands before and after it.
_SHARED = "destination"
_BEFORE, _OWN, _AFTER = _around(_SHARED)
#: Bytes of destinations as they were read that are kept.
_MOST_SHARED = 16_000_000


def writer_schema(name: str, schema: Any) -> Any:
    """A schema with which the record `name` was written, ready for reading.

    It is the very object of the newest one where both lay out the same bytes, so that nothing is resolved in reading.
    Raises what `fastavro.parse_schema` does for what is no Avro schema.
    """
    parsed = fastavro.parse_schema(wire_schema(schema), named_schemas={})
    return _NEWEST[name] if SINGLE_OBJECT + crc64(schema) == _PREFIX[name] else parsed


class Codec:
    """Encodes and decodes every record of the contract.

    With a registry (`SchemaIds`) it writes the Confluent wire format, without one Avro single-object encoding; it
    reads both. Not safe for use by several threads at once only as far as the registry is not.
    """

    def __init__(self, registry: SchemaIds | None = None) -> None:
        self._registry = registry
        self._pieces = Pieces()
        self._read: dict[tuple[str, str, str], tuple[Audience, bytes]] = {}
        self._read_bytes = 0

    def encode(self, record: Record) -> bytes:
        """The bytes of a record."""
        name = type(record).__name__
        if name not in PIECES:
            return self.encode_fields(name, record.model_dump(by_alias=True))
        return self._prefix(name) + self._pieces.encode(record, name)

    def _prefix(self, name: str) -> bytes:
        if self._registry is None:
            return _PREFIX[name]
        return CONFLUENT + self._registry.id_of(name).to_bytes(4, "big")

    def encode_fields(self, name: str, fields: Mapping[str, Any]) -> bytes:
        """The bytes of the record `name` with these fields, which are not validated beyond their Avro types.

        Raises `Unencodable` where a field is missing or of another type, `KeyError` for a name that is no record's.
        """
        out = io.BytesIO()
        schema = _NEWEST[name]
        out.write(self._prefix(name))
        try:
            fastavro.schemaless_writer(out, schema, fields, strict_allow_default=True, disable_tuple_notation=True)
        except MemoryError:  # says nothing of the fields (R-RUN-6)
            raise
        except Exception as error:
            raise Unencodable(f"{name}: {error}") from error
        return out.getvalue()

    def decode(self, data: bytes | None) -> Record:
        """The record in these bytes, with the fields of the newest schema.

        Raises `Undecodable` for anything else, whatever the bytes are.
        """
        if data is None:
            raise Undecodable()
        schema, start = self._writer(data)
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            fields: Any
            if schema.newest and schema.name == "TurnAuthorized":
                fields = self._authorized_fields(stream, data)
            else:
                reader = None if schema.newest else _NEWEST[schema.name]
                fields = fastavro.schemaless_reader(stream, schema.parsed, reader)
            record = RECORDS[schema.name].model_validate(fields)
        except MemoryError:
            raise
        except Exception:  # pydantic's ValidationError, and from fastavro whatever the bytes lead it to
            raise Undecodable(schema.name) from None
        if stream.tell() != len(data):
            raise Undecodable(schema.name)
        return record

    def _authorized_fields(self, stream: io.BytesIO, data: bytes) -> Any:
        """As of any record, but a destination that is, byte for byte, the one read last of this room is not read again.

        Its own encoding says where it ends, so that one that begins with it cannot be another one's.
        """
        fields: Any = fastavro.schemaless_reader(stream, _BEFORE, None)
        room, start = (fields["tenant"], fields["agent"], fields["room"]), stream.tell()
        known = self._read.get(room)
        if known is None or not data.startswith(known[1], start):
            own: Any = fastavro.schemaless_reader(stream, _OWN, None)
            audience = Audience.model_validate(own[_SHARED])
            if self._read_bytes > _MOST_SHARED:
                self._read.clear()
                self._read_bytes = 0
            known = self._read[room] = (audience, bytes(data[start : stream.tell()]))
            self._read_bytes += len(known[1])
        stream.seek(start + len(known[1]))
        fields[_SHARED] = known[0]
        after: Any = fastavro.schemaless_reader(stream, _AFTER, None)
        return fields | after

    def written_by(self, data: bytes | None) -> tuple[bytes, str, Any] | None:
        """The first bytes of a value, which name its writer's schema, the record's name, and that schema.

        None where they name none that is known. The rest of the bytes is not looked at.
        """
        try:
            schema, start = self._writer(data or b"")
        except Undecodable:
            return None
        return (data or b"")[:start], schema.name, schema.parsed

    def _writer(self, data: bytes) -> tuple[_Schema, int]:
        if data[:2] == SINGLE_OBJECT:
            found = _BY_FINGERPRINT.get(bytes(data[2:10]))
            if found is not None:
                return found, 10
        elif data[:1] == CONFLUENT and len(data) >= 5 and self._registry is not None:
            registered = self._registry.schema_of(int.from_bytes(data[1:5], "big"))
            if registered is not None and registered[0] in RECORDS:
                name, writer = registered
                return _Schema(name, writer, newest=writer is _NEWEST[name]), 5
        raise Undecodable()


def subject_of(record: str) -> str:
    """The registry's subject of a record: subjects go by record name (contract section 7)."""
    return f"{NAMESPACE}.{record}"
