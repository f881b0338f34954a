"""Decides what a line of a records file says: `{"record", "at", "value", "topic"?}`, one record a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic import ValidationError

from turngate.schemas.catalog import INPUT_TOPICS, RECORDS, topic_of
from turngate.schemas.codec import Codec, Unencodable
from turngate.schemas.inputs import PolicyPublished, Tick
from turngate.schemas.policy import PolicyInvalid, parse_policy
from turngate.streams.log import LogError, Message

#: A longer line is none of ours; it is refused before it is parsed.
MAX_BYTES = 32 * 1024 * 1024

#: The last millisecond of the year 9999, as far as a record's times go.
MAX_AT = 253_402_300_799_999


class LineError(LogError):
    """A line that is no record. The message names the file and the line, and never quotes a value."""

    def __init__(self, source: str, number: int, what: str) -> None:
        super().__init__(f"{source}: line {number}: {what}")


@dataclass(frozen=True, slots=True)
class Line:
    """A record of an input topic as a line gives it. `at` is the broker's time in ms, if the line has it."""

    source: str
    number: int
    record: str
    topic: str
    at: int | None
    value: Mapping[str, Any]

    @property
    def key(self) -> bytes:
        """The Kafka key: the tenant (contract section 1)."""
        return str(self.value.get("tenant", "")).encode("utf-8", "surrogatepass")

    @property
    def partition(self) -> int | None:
        """The partition that a record of a partition itself names, None for records of tenants."""
        tenant = self.value.get("tenant")
        return int(tenant) if self.record == "Tick" and isinstance(tenant, str) and tenant.isdecimal() else None

    def encoded(self, codec: Codec) -> bytes:
        """The record's bytes; where its schema cannot say it its JSON, which the pipeline refuses (R-RUN-5)."""
        try:
            return codec.encode_fields(self.record, self.value)
        except Unencodable:
            return json.dumps(self.value, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def valid(self, codec: Codec) -> bytes:
        """The bytes of a record that the pipeline would take up. Raises `LineError` with the fields that are wrong."""
        if RECORDS[self.record] not in INPUT_TOPICS[self.topic]:
            raise LineError(self.source, self.number, f"{self.record} does not belong on {self.topic}")
        try:
            record = RECORDS[self.record].model_validate(self.value)
            if record.tenant.isdecimal() and not isinstance(record, Tick):
                raise LineError(self.source, self.number, f"{self.record}: tenant: is a partition's, not a tenant's")
            if isinstance(record, PolicyPublished):
                parse_policy(record.document)
            return codec.encode(record)
        except PolicyInvalid as error:
            raise LineError(self.source, self.number, f"{self.record}: document: {error}") from None
        except ValidationError as error:
            wrong = [
                f"{'.'.join(str(p) for p in e['loc']) or 'record'}: {e['msg']}"
                for e in error.errors(include_url=False, include_input=False)
            ]
            raise LineError(self.source, self.number, f"{self.record}: {'; '.join(wrong)}") from None
        except Unencodable:
            raise LineError(self.source, self.number, f"{self.record}: cannot be encoded") from None


def read_lines(file: BinaryIO, source: str) -> Iterator[Line]:
    """The records of a file, line by line, of which no more is read at once; empty lines are passed over.

    `source` is what messages call the file. Raises `LineError` for a line that is no JSON, names no record, or does
    not belong on an input topic.
    """
    for number, raw in enumerate(iter(lambda: file.readline(MAX_BYTES + 1), b""), 1):
        if raw.strip():
            yield _line(source, number, raw)


def _line(source: str, number: int, raw: bytes) -> Line:
    if len(raw) > MAX_BYTES:
        raise LineError(source, number, f"is longer than {MAX_BYTES} bytes")
    try:
        data = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise LineError(source, number, "is not UTF-8") from None
    except (ValueError, RecursionError):
        raise LineError(source, number, "is no JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("record"), str):
        raise LineError(source, number, 'names no record: write {"record": …, "at": …, "value": {…}}')
    record, value, at = data["record"], data.get("value"), data.get("at")
    if record not in RECORDS:
        raise LineError(source, number, "names a record that is none of the contract's")
    if not isinstance(value, dict):
        raise LineError(source, number, f"{record}: value is no map of fields")
    if at is not None and (not isinstance(at, int) or isinstance(at, bool)):
        raise LineError(source, number, f"{record}: at is no time in milliseconds")
    if at is not None and not 0 <= at <= MAX_AT:
        raise LineError(source, number, f"{record}: at is no time from 1970 to 9999 in milliseconds")
    topic = data.get("topic")
    topic = topic_of(record, value) if topic is None else topic
    if not isinstance(topic, str) or topic not in INPUT_TOPICS:
        raise LineError(source, number, f"{record}: its topic is no input topic of the contract")
    return Line(source, number, record, topic, at, value)


def written(codec: Codec, messages: Iterable[Message]) -> Iterator[str]:
    """The lines of what the pipeline wrote: `{"record", "value"}`, keys sorted."""
    for message in messages:
        record = codec.decode(message.value)
        value = record.model_dump(mode="json", by_alias=True)
        yield json.dumps({"record": type(record).__name__, "value": value}, sort_keys=True, ensure_ascii=False)
