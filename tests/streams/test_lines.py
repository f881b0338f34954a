"""A line of a records file is a record for an input topic, or is named with what is wrong; never anything else."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.schemas.catalog import INPUT_TOPICS, RECORDS
from turngate.schemas.codec import Codec, Undecodable
from turngate.streams.lines import Line, LineError, read_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.sampled_from(["tenant", "at", "room", "message", "agent", "text", "turn", "kind"]), JSON)
LINES = st.fixed_dictionaries(
    {"record": st.sampled_from(sorted(RECORDS)) | JSON, "value": FIELDS | JSON},
    optional={"at": st.integers(0, 2**40) | JSON, "topic": st.sampled_from(sorted(INPUT_TOPICS)) | JSON},
)


def one(raw: bytes) -> Line:
    (line,) = read_lines(BytesIO(raw), "file")
    return line


def test_a_record_without_a_topic_is_on_its_own() -> None:
    line = one(b'{"record": "MemoryWrite", "at": 1, "value": {"tenant": "acme", "by": "operator"}}')
    assert (line.topic, line.key, line.at, line.partition) == ("operator-commands", b"acme", 1, None)


def test_a_tick_names_its_partition() -> None:
    assert one(b'{"record": "Tick", "at": 1, "value": {"tenant": "3", "at": 1}}').partition == 3


def test_lines_are_counted_with_the_empty_ones() -> None:
    lines = read_lines(BytesIO(b"\n  \r\nnonsense"), "file")
    with pytest.raises(LineError, match=r"^file: line 3: is no JSON$"):
        list(lines)


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert one(b'\xef\xbb\xbf{"record": "Tick", "value": {}}').record == "Tick"


@given(st.binary(max_size=60))
def test_any_bytes_are_a_line_or_a_named_error(raw: bytes) -> None:
    said = None
    try:
        list(read_lines(BytesIO(raw), "file"))
    except LineError as error:
        said = str(error)
    assert said is None or said.startswith("file: line ")


@given(LINES)
def test_whatever_the_values_are_there_is_a_record_to_send(data: dict[str, object]) -> None:
    codec = Codec()
    try:
        line = one(json.dumps(data).encode())
    except LineError:
        return
    assert line.topic in INPUT_TOPICS
    assert isinstance(line.key, bytes)
    encoded = line.encoded(codec)
    try:
        valid = line.valid(codec)
    except LineError:
        return
    # what is valid says the same either way
    assert codec.decode(valid) == codec.decode(encoded)


@given(st.text(), st.sampled_from(["author_kind", "room", "tenant", "message"]))
def test_no_message_quotes_a_value(text: str, field: str) -> None:
    marked = f"Geheim!{text}"
    value = {"tenant": "acme", "at": 1, "agent": "mesh", "room": "a:b/c", "message": "a:b/c/d", "author_kind": "person"}
    line = one(json.dumps({"record": "MessageObserved", "value": {**value, field: marked}}).encode())
    with pytest.raises(LineError) as refused:
        line.valid(Codec())
    assert "Geheim" not in str(refused.value)


def test_what_no_schema_can_say_is_json_that_nobody_takes_for_a_record() -> None:
    encoded = one(b'{"record": "Tick", "value": {"tenant": 1}}').encoded(Codec())
    assert json.loads(encoded) == {"tenant": 1}
    with pytest.raises(Undecodable):
        Codec().decode(encoded)
