"""Decides how an exported directory is laid out, and reads it: Avro container files, so that any Avro tool can.

`DIR/<topic>/<partition>/<from>-<to>.avro` holds a topic's records with offsets from `from` up to, not including, `to`.
A file has the name once it is whole. Its header has the schemas of the records in it, by the first bytes of their
values, so that the directory can be read without the registry that gave them their ids.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import fastavro
from fastavro.schema import to_parsing_canonical_form

from turngate.schemas.avro_schema import versions
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS, RECORDS
from turngate.schemas.codec import CONFLUENT, Codec, writer_schema
from turngate.streams.log import LogError, Message

TOPICS = (*INPUT_TOPICS, *OUTPUT_TOPICS)
#: In the directory itself: how many partitions its topics have.
ABOUT = "export.json"
#: In a file's header: the schemas by the first bytes of the values, in hex.
SCHEMAS = "turngate.schemas"
#: What reading a damaged file leads to.
_BROKEN = (ValueError, KeyError, EOFError, TypeError, IndexError, zlib.error)
_NAME = re.compile(r"(\d{20})-(\d{20})\.avro")

#: What a file holds. `record` is the name of the contract's record where the value is one, `value` its bytes as they
#: lay on the topic, with their framing.
EXPORTED = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Exported",
        "namespace": "turngate.export.v1",
        "fields": [
            {"name": "offset", "type": "long"},
            {"name": "timestamp", "type": "long"},
            {"name": "key", "type": ["null", "bytes"]},
            {
                "name": "headers",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Header",
                        "fields": [{"name": "name", "type": "string"}, {"name": "value", "type": ["null", "bytes"]}],
                    },
                },
            },
            {"name": "record", "type": ["null", "string"]},
            {"name": "value", "type": ["null", "bytes"]},
        ],
    },
    named_schemas={},
)


@dataclass(frozen=True, slots=True)
class Part:
    """A whole file: the offsets that it covers."""

    path: Path
    start: int
    end: int


def parts(folder: Path, topic: str, partition: int) -> list[Part]:
    """The whole files of a partition of a topic, in order. Raises `LogError` where one is missing between others."""
    lane = folder / topic / str(partition)
    found = []
    for path in sorted(lane.iterdir()) if lane.is_dir() else ():
        name = _NAME.fullmatch(path.name)
        if name is not None:
            found.append(Part(path, int(name[1]), int(name[2])))
    for one, other in pairwise(found):
        if one.end != other.start:
            raise LogError(f"{lane}: the file from {one.end} to {other.start} is missing; export into a new directory")
    return found


def part_name(start: int, end: int) -> str:
    """The name of a whole file."""
    return f"{start:020}-{end:020}.avro"


def schema_text(schema: Any) -> Any:
    """A parsed schema as a file's header holds it: its canonical form, whose fingerprint is the writer's own."""
    return json.loads(to_parsing_canonical_form(schema))


class Archive:
    """A directory that `turngate export` made (`streams.recorded.Records`). Raises `LogError` where it is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            self._partitions = int(about["partitions"])
        except FileNotFoundError:
            raise LogError(f"{folder}: is no export; `turngate export` makes one") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LogError(f"{folder / ABOUT}: cannot be read: {error}") from None
        self._parts = {(t, p): parts(folder, t, p) for t in TOPICS for p in range(self._partitions)}

    @property
    def partitions(self) -> int:
        """How many partitions each topic has."""
        return self._partitions

    def first(self, topic: str, partition: int) -> int:
        """The offset before which nothing was exported."""
        found = self._of(topic, partition)
        return found[0].start if found else 0

    def end(self, topic: str, partition: int) -> int:
        """The offset up to which everything was exported."""
        found = self._of(topic, partition)
        return found[-1].end if found else 0

    def scan(self, topic: str, partition: int = 0, start: int = 0, end: int | None = None) -> Iterator[Message]:
        """The records from `start` up to, not including, `end`, one block of a file at a time."""
        end = self.end(topic, partition) if end is None else end
        for part in self._of(topic, partition):
            if part.end > start and part.start < end:
                for message in _messages(part.path, topic, partition):
                    if start <= message.offset < end:
                        yield message

    def codec(self) -> Codec:
        """A codec that reads and writes as whoever wrote these records did."""
        ids = _Ids()
        for of in self._parts.values():
            for part in of:
                ids.add(_schemas(part.path))
        return Codec(ids if ids.any else None)

    def _of(self, topic: str, partition: int) -> list[Part]:
        found = self._parts.get((topic, partition))
        if found is None:
            last = self._partitions - 1
            raise LogError(
                f"{topic}[{partition}]: there is no such place; topics are the contract's, partitions 0 to {last}"
            )
        return found


class _Ids:
    """The registry's ids as the files' headers tell them (`schemas.codec.SchemaIds`)."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._writers: dict[int, tuple[str, Any]] = {}

    @property
    def any(self) -> bool:
        return bool(self._writers)

    def add(self, schemas: dict[str, dict[str, Any]]) -> None:
        """Take in what a file's header says."""
        for prefix, told in schemas.items():
            raw, name = bytes.fromhex(prefix), told["record"]
            if raw[:1] == CONFLUENT and name in RECORDS:
                number = int.from_bytes(raw[1:], "big")
                self._writers[number] = name, writer_schema(name, told["schema"])
                if self._writers[number][1] is writer_schema(name, versions(name)[-1]):
                    self._newest[name] = number

    def id_of(self, record: str) -> int:
        """The id under which the newest schema of a record was written; 0, which no registry gives, where none was."""
        return self._newest.get(record, 0)

    def schema_of(self, schema_id: int) -> tuple[str, Any] | None:
        """The record's name and the writer's schema of an id."""
        return self._writers.get(schema_id)


def _messages(path: Path, topic: str, partition: int) -> Iterator[Message]:
    with _opened(path) as file:
        try:
            told: Any
            for told in fastavro.reader(file):
                headers = tuple((h["name"], h["value"]) for h in told["headers"])
                yield Message(topic, partition, told["offset"], told["timestamp"], told["key"], told["value"], headers)
        except _BROKEN as error:
            raise LogError(f"{path}: is damaged: {error}") from error


def _schemas(path: Path) -> dict[str, dict[str, Any]]:
    with _opened(path) as file:
        try:
            told: dict[str, dict[str, Any]] = json.loads(fastavro.reader(file).metadata[SCHEMAS])
        except _BROKEN as error:
            raise LogError(f"{path}: is damaged: {error}") from error
    return told


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from None
