"""What any version of a schema wrote, every other version reads: FULL_TRANSITIVE (contract section 7)."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import fastavro
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas.strategies import BY_RECORD
from turngate.schemas import avro_schema
from turngate.schemas.avro_schema import RESTRICTIVE, schema_of, undocumented, versions, wire_schema, write_changed
from turngate.schemas.catalog import RECORDS
from turngate.schemas.codec import SINGLE_OBJECT, Codec, crc64
from turngate.schemas.inputs import Record, TurnDelivered, TurnDrafted

NAMES = sorted(RECORDS)


def compatible(reader: Any, writer: Any) -> bool:
    """Whether the `avro` package says that `reader` reads all that `writer` writes."""
    checker = ReaderWriterCompatibilityChecker()
    result = checker.get_compatibility(parse(json.dumps(reader)), parse(json.dumps(writer)))
    return result.compatibility is SchemaCompatibilityType.compatible


def full_transitive(schemas: list[Any]) -> bool:
    """Whether each of these versions reads each other one."""
    return all(compatible(reader, writer) for reader, writer in itertools.permutations(schemas, 2))


@pytest.mark.parametrize("name", NAMES)
def test_all_versions_of_a_record_read_each_other(name: str) -> None:
    known = versions(name)
    assert known
    assert compatible(known[-1], known[-1])
    assert full_transitive(known)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(data=st.data())
def test_every_version_reads_what_the_others_wrote(name: str, data: st.DataObject) -> None:
    record = data.draw(BY_RECORD[name])
    newest = fastavro.parse_schema(wire_schema(versions(name)[-1]), named_schemas={})
    for version in versions(name):
        earlier = fastavro.parse_schema(wire_schema(version), named_schemas={})
        fields = record.model_dump(by_alias=True)
        written = _written(earlier, fields)
        read = Codec().decode(SINGLE_OBJECT + crc64(version) + written)
        assert _written(earlier, read.model_dump(by_alias=True)) == written
        back = fastavro.schemaless_reader(io.BytesIO(_written(newest, fields)), newest, earlier)
        assert _written(earlier, back) == written


def _changed(schema: dict[str, Any], **of_turn: Any) -> dict[str, Any]:
    """The schema with something different about its field `turn`; None takes a key away."""
    fields = [
        {k: v for k, v in (field | of_turn).items() if v is not None} if field["name"] == "turn" else field
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _with(schema: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": [*schema["fields"], field]}


def _without(schema: dict[str, Any], name: str) -> dict[str, Any]:
    return {**schema, "fields": [field for field in schema["fields"] if field["name"] != name]}


DRAFTED = versions("TurnDrafted")[-1]
DELIVERED = versions("TurnDelivered")[-1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (DRAFTED, _with(DRAFTED, {"name": "mood", "type": ["null", "string"], "default": None})),
        (_with(DRAFTED, {"name": "mood", "type": "string", "default": ""}), DRAFTED),
        (DRAFTED, undocumented(DRAFTED)),
    ],
    ids=["an optional field more", "a field with a default less", "other words"],
)
def test_the_checker_passes_what_breaks_nobody(before: Any, after: Any) -> None:
    assert full_transitive([before, after])


@pytest.mark.parametrize(
    "after",
    [
        _changed(DRAFTED, name="turn_id"),
        _changed(DRAFTED, type="long"),
        _changed(DRAFTED, type=["null", "string"]),
        _with(DRAFTED, {"name": "mood", "type": "string"}),
        _without(DRAFTED, "turn"),
    ],
    ids=["renamed", "of another type", "nullable from now on", "a required field more", "a required field less"],
)
def test_the_checker_refuses_what_breaks_a_reader(after: Any) -> None:
    """Or the test of all versions above could not fail."""
    assert not full_transitive([DRAFTED, after])


def test_a_symbol_less_is_refused_without_a_default_and_read_as_the_restrictive_one_with_it() -> None:
    (status,) = (field["type"] for field in DELIVERED["fields"] if field["name"] == "status")
    assert status["default"] == "uncertain"
    newer = json.loads(json.dumps(DELIVERED).replace('"sent", "withheld"', '"sent", "queued", "withheld"'))
    assert newer != DELIVERED
    assert full_transitive([DELIVERED, newer])
    bare = json.loads(json.dumps(DELIVERED).replace(', "default": "uncertain"', ""))
    assert bare != DELIVERED
    assert not full_transitive([bare, newer])

    fields = {"tenant": "acme", "at": 1, "turn": "t", "room": "slack:T1/C1", "status": "queued", "message": None}
    reader = fastavro.parse_schema(wire_schema(DELIVERED), named_schemas={})
    writer = fastavro.parse_schema(wire_schema(newer), named_schemas={})
    read = fastavro.schemaless_reader(io.BytesIO(_written(writer, fields | {"reasons": []})), writer, reader)
    assert TurnDelivered.model_validate(read).status is RESTRICTIVE[type(TurnDelivered.model_validate(read).status)]


def test_a_changed_model_gets_a_new_version_and_other_words_do_not(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_schema, "FOLDER", tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in write_changed()} == {f"{n}/1.avsc" for n in NAMES}
    assert write_changed() == []

    class TurnDraftedToo(TurnDrafted):
        """Other words."""

    TurnDraftedToo.__name__ = "TurnDrafted"
    monkeypatch.setattr(avro_schema, "RECORDS", {"TurnDrafted": TurnDraftedToo})
    assert [path.name for path in write_changed()] == ["1.avsc"]

    class More(TurnDrafted):
        """A turn with a mood."""

        mood: str | None = None

    More.__name__ = "TurnDrafted"
    models: dict[str, type[Record]] = {"TurnDrafted": More}
    monkeypatch.setattr(avro_schema, "RECORDS", models)
    assert [path.name for path in write_changed()] == ["2.avsc"]
    assert full_transitive(versions("TurnDrafted"))
    assert versions("TurnDrafted")[-1] == schema_of(More)


def _written(schema: Any, fields: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, fields, disable_tuple_notation=True)
    return out.getvalue()
