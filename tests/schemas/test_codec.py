"""Every record survives the way through bytes, and any bytes at all give a record or `Undecodable` (R-RUN-5)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas.strategies import ANY_RECORD, BY_RECORD
from turngate.schemas import pieces
from turngate.schemas.avro_schema import versions
from turngate.schemas.catalog import RECORDS
from turngate.schemas.codec import CONFLUENT, SINGLE_OBJECT, Codec, Undecodable, Unencodable, crc64, writer_schema
from turngate.schemas.inputs import ProofRevoked, Record, Tick
from turngate.schemas.outputs import DecisionTraced, TracedRef, TurnDecided
from turngate.schemas.pieces import PIECES
from turngate.schemas.shapes import Audience, Position, Scope

NAMES = sorted(RECORDS)


class InMemory:
    """A registry that gave each record's newest schema the number of its name."""

    def id_of(self, record: str) -> int:
        return NAMES.index(record)

    def schema_of(self, schema_id: int) -> tuple[str, Any] | None:
        if schema_id >= len(NAMES):
            return None
        return NAMES[schema_id], writer_schema(NAMES[schema_id], versions(NAMES[schema_id])[-1])


SINGLE = Codec()
FRAMED = Codec(InMemory())


def _decoded(codec: Codec, data: bytes | None) -> Record | None:
    """A record, or None where it was refused; anything else that is raised fails the test."""
    try:
        return codec.decode(data)
    except Undecodable as error:
        refused = error.schema
    assert refused is None or refused in RECORDS
    return None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(data=st.data())
def test_every_record_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    record = data.draw(BY_RECORD[name])
    for codec in (SINGLE, FRAMED):
        assert codec.decode(codec.encode(record)) == record


@given(ANY_RECORD)
def test_equal_records_have_equal_bytes(record: Record) -> None:
    again = type(record).model_validate(record.model_dump(by_alias=True))
    assert SINGLE.encode(again) == SINGLE.encode(record)


@given(BY_RECORD["TurnAuthorized"], st.lists(st.sampled_from(["slack:T1/C1", "slack:T1/C2"]), min_size=6))
def test_a_destination_that_was_read_before_is_the_same_as_one_that_was_not(turn: Any, rooms: list[str]) -> None:
    alike = tuple(f"slack:T1/U{n}" for n in range(3))
    reused = Codec()
    for number, room in enumerate(rooms):
        audience = Audience(readers=alike[: 1 + number % 3]) if number % 4 else Audience(scope=Scope.PUBLIC)
        encoded = SINGLE.encode(turn.model_copy(update={"destination": audience, "room": room}))
        assert reused.decode(encoded) == Codec().decode(encoded)
        for wrong in (encoded[:-1], encoded + b"\0", encoded[: len(encoded) // 2]):
            with pytest.raises(Undecodable):
                reused.decode(wrong)


@pytest.mark.parametrize("name", sorted(PIECES))
@given(data=st.data())
def test_what_is_encoded_once_is_the_same_in_every_record(name: str, data: st.DataObject) -> None:
    records = data.draw(st.lists(BY_RECORD[name], min_size=1, max_size=3))
    codec = Codec()
    for record in (*records, *records):
        assert codec.encode(record) == codec.encode_fields(name, record.model_dump(by_alias=True))


@pytest.mark.parametrize("name", sorted(PIECES))
@given(data=st.data())
def test_nothing_is_written_for_a_value_that_is_not_there(name: str, data: st.DataObject) -> None:
    record = data.draw(BY_RECORD[name])
    written = 0
    for field in vars(record):
        without = record.model_copy(update={field: None})
        try:
            expected = SINGLE.encode_fields(name, without.model_dump(by_alias=True, warnings=False))
        except Unencodable:
            with pytest.raises((AttributeError, KeyError, TypeError)):
                Codec().encode(without)
        else:
            assert Codec().encode(without) == expected
            written += 1
    assert 0 < written < len(vars(record))  # some may be null


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 8_191, 8_192, 20_000])
def test_lists_of_any_length_are_the_same_in_pieces(count: int) -> None:
    place = Position(topic="ticks", partition=0, offset=7)
    record = decided((place,) * count)
    assert SINGLE.encode(record) == SINGLE.encode_fields("TurnDecided", record.model_dump(by_alias=True))


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=2, max_size=8))
def test_positions_that_stay_where_they_were_are_the_same_bytes(chosen: list[list[int]]) -> None:
    places = [Position(topic=f"topic-{n % 3}", partition=0, offset=n * 1_000) for n in range(6)]
    codec = Codec()
    for numbers in chosen:
        record = decided(tuple(places[n] for n in numbers))
        assert codec.encode(record) == codec.encode_fields("TurnDecided", record.model_dump(by_alias=True))


def test_what_is_encoded_once_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MOST_BYTES", 1_000)
    kept = Codec()._pieces
    for number in range(20):
        refs = tuple(TracedRef(ref=f"message:{number}/{n}", permitted=n % 2 == 0) for n in range(3))
        traced = DecisionTraced(tenant="acme", at=0, decision="d", policy="1", destination="e", refs=refs)
        kept.encode(traced, "DecisionTraced")
        assert len(kept._kept) <= 6
        assert not any(isinstance(value, TracedRef) and not value.permitted for value, _ in kept._kept.values())


def decided(as_of: tuple[Position, ...]) -> TurnDecided:
    fields = {
        "turn": "t",
        "agent": "mesh",
        "room": "slack:T1/C1",
        "verdict": "drop",
        "leaves_digest": "",
        "policy": "1",
    }
    return TurnDecided.model_validate(fields | {"tenant": "acme", "at": 0, "decision": "d", "as_of": as_of})


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    for codec in (SINGLE, FRAMED):
        _decoded(codec, data)


@settings(max_examples=300)
@given(st.sampled_from(NAMES), st.binary(max_size=200))
def test_any_bytes_behind_a_known_schemas_mark_are_a_record_or_refused(name: str, data: bytes) -> None:
    _decoded(SINGLE, SINGLE_OBJECT + crc64(versions(name)[-1]) + data)
    _decoded(FRAMED, CONFLUENT + NAMES.index(name).to_bytes(4, "big") + data)


@settings(max_examples=300)
@given(ANY_RECORD, st.data())
def test_a_damaged_record_is_a_record_or_refused(record: Record, data: st.DataObject) -> None:
    for codec in (SINGLE, FRAMED):
        whole = codec.encode(record)
        at = data.draw(st.integers(0, len(whole) - 1))
        flipped = bytearray(whole)
        flipped[at] ^= data.draw(st.integers(1, 255))
        _decoded(codec, bytes(flipped))
        _decoded(codec, whole[:at] + data.draw(st.binary(max_size=12)) + whole[at:])
        _decoded(codec, whole[:at] + whole[at + 1 :])


@settings(max_examples=50)
@given(ANY_RECORD)
def test_a_shortened_or_lengthened_record_is_refused(record: Record) -> None:
    for codec in (SINGLE, FRAMED):
        whole = codec.encode(record)
        for end in range(len(whole)):
            with pytest.raises(Undecodable):
                codec.decode(whole[:end])
        with pytest.raises(Undecodable):
            codec.decode(whole + b"\x00")


@pytest.mark.parametrize("data", [None, b"", b"\x00", b"\xc3", b"\xc3\x01", b"\x00\x00\x00\x00", b"{}", b"\xff" * 40])
def test_what_is_no_frame_names_no_schema(data: bytes | None) -> None:
    for codec in (SINGLE, FRAMED):
        with pytest.raises(Undecodable) as refused:
            codec.decode(data)
        assert refused.value.schema is None


@pytest.mark.parametrize("size", [2**31, 2**62, -1, -(2**62)])
def test_a_length_that_is_a_lie_costs_no_memory(size: int) -> None:
    zigzag, prefix = (size << 1) ^ (size >> 63), bytearray()
    while zigzag > 0x7F:
        prefix.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    prefix.append(zigzag)
    for name in ("Tick", "TurnDrafted"):
        with pytest.raises(Undecodable):
            SINGLE.decode(SINGLE_OBJECT + crc64(versions(name)[-1]) + bytes(prefix) + b"x" * 10)


def test_a_record_that_its_model_refuses_is_undecodable_by_name() -> None:
    fields = {"tenant": "Not A Tenant", "at": 1}
    with pytest.raises(Undecodable) as refused:
        SINGLE.decode(SINGLE.encode_fields("Tick", fields))
    assert refused.value.schema == "Tick"
    assert "Not A Tenant" not in str(refused.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"tenant": "acme", "at": 1},
        {"tenant": "acme", "at": "soon", "proof": "p"},
        {"tenant": "acme", "at": 2**63, "proof": "p"},
        {"tenant": "acme", "at": 1, "proof": None},
        {"tenant": "acme", "at": 1, "proof": "\ud800"},
    ],
    ids=["a field is missing", "of another type", "too large", "null", "no Unicode text"],
)
def test_fields_that_make_no_record_are_unencodable(fields: dict[str, object]) -> None:
    with pytest.raises(Unencodable, match="ProofRevoked"):
        SINGLE.encode_fields("ProofRevoked", fields)


def test_a_name_that_is_no_records_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        SINGLE.encode_fields("Nothing", {})


def test_the_single_object_encoding_is_avros() -> None:
    """Avro 1.12, "Single object encoding": C3 01, the little-endian CRC-64-AVRO of the writer's schema, the datum."""
    whole = SINGLE.encode(Tick(tenant="7", at=1))
    assert whole[:2] == b"\xc3\x01"
    assert int.from_bytes(whole[2:10], "little") == _rabin(_canonical("Tick"))
    assert whole[10:] == b"\x027\x02"


def test_two_records_with_equal_fields_do_not_pass_for_one_another() -> None:
    proof = SINGLE.encode(ProofRevoked(tenant="acme", at=1, proof="p"))
    assert SINGLE.decode(proof) == ProofRevoked(tenant="acme", at=1, proof="p")
    approval = SINGLE_OBJECT + crc64(versions("ApprovalWithdrawn")[-1]) + proof[10:]
    assert type(SINGLE.decode(approval)).__name__ == "ApprovalWithdrawn"


def _canonical(name: str) -> bytes:
    """The parsing canonical form of a record of plain fields, written by hand from the specification."""
    fields = '{"name":"tenant","type":"string"},{"name":"at","type":"long"}'
    return f'{{"name":"turngate.v1.{name}","type":"record","fields":[{fields}]}}'.encode()


def _rabin(data: bytes) -> int:
    """CRC-64-AVRO as the specification defines it."""
    empty, mask = 0xC15D213AA4D7A795, 2**64 - 1
    fingerprint = empty
    for byte in data:
        fingerprint ^= byte
        for _ in range(8):
            fingerprint = (fingerprint >> 1) ^ (empty & -(fingerprint & 1) & mask)
    return fingerprint


def test_running_out_of_memory_is_no_fault_of_the_fields() -> None:  # R-RUN-6
    class Endless(dict[str, object]):
        def get(self, *_: object) -> object:
            raise MemoryError

    with pytest.raises(MemoryError):
        Codec().encode_fields("Tick", Endless(tenant="0", at=0))
