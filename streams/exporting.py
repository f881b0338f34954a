"""Decides how recorded topics are written into a directory, so that it can be gone on with after any interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastavro.write import Writer

from turngate.schemas.catalog import APPLIED
from turngate.schemas.codec import Codec
from turngate.streams.archive import ABOUT, EXPORTED, SCHEMAS, TOPICS, part_name, parts, schema_text
from turngate.streams.log import LogError, Message
from turngate.streams.private import write_private
from turngate.streams.recorded import Records

#: Bytes of values in a file, after which the next one begins: what an interruption costs at most.
PART_BYTES = 64 << 20
#: Bytes of a block of a file.
_BLOCK_BYTES = 1 << 20

#: Told of each record: how many of how many there are by now.
Told = Callable[[int, int], None]


def export(
    records: Records, folder: Path, codec: Codec, told: Told = lambda _, __: None, part_bytes: int = PART_BYTES
) -> int:
    """Write everything that there is now and the directory does not hold yet; how many records that were.

    The stretches' ends are asked before all others, so that what an exported stretch applied, and what came of it, is
    exported with it. Raises `LogError` where the directory is another log's, or cannot be written.
    """
    try:
        _about(folder, records.partitions)
        ends: dict[tuple[str, int], int] = {}
        for topic in (APPLIED, *TOPICS):
            for partition in range(records.partitions):
                ends.setdefault((topic, partition), records.end(topic, partition))
        starts = {place: _start(records, folder, place, end) for place, end in ends.items()}
        total, before = sum(ends[p] - starts[p] for p in ends), 0
        count = 0
        for place, end in ends.items():
            lane = _Lane(folder / place[0] / str(place[1]), codec, part_bytes)
            for message in records.scan(*place, starts[place], end):
                lane.add(message, starts[place])
                count += 1
                told(before + message.offset + 1 - starts[place], total)
            lane.close(starts[place], end)
            before += end - starts[place]
        return count
    except OSError as error:
        raise LogError(f"{folder}: cannot be written: {error.strerror}") from error


def _about(folder: Path, partitions: int) -> None:
    """What the directory says of itself; it is made where it is not there, for its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder / ABOUT
    text = json.dumps({"format": 1, "partitions": partitions}) + "\n"
    if not about.exists():
        if any(folder.iterdir()):
            raise LogError(f"{folder}: is neither empty nor an export")
        write_private("export", about, text)
    elif about.read_text("utf-8") != text:
        raise LogError(f"{folder}: is an export of a log with another number of partitions; use a new directory")


def _start(records: Records, folder: Path, place: tuple[str, int], end: int) -> int:
    """Where a partition of a topic is gone on with."""
    found = parts(folder, *place)
    first = records.first(*place)
    start = found[-1].end if found else first
    if start > end or (found and start < first):
        raise LogError(
            f"{folder}: {place[0]}[{place[1]}] was exported up to {start}, and there is {first} to {end} now; "
            "use a new directory"
        )
    return start


class _Lane:
    """The files of one partition of a topic."""

    def __init__(self, folder: Path, codec: Codec, part_bytes: int) -> None:
        self._folder = folder
        self._codec = codec
        self._part_bytes = part_bytes
        self._schemas: dict[str, dict[str, Any]] = {}
        self._writer: Writer | None = None
        self._size = self._from = 0
        for left in folder.glob("*.part") if folder.is_dir() else ():
            left.unlink()

    def add(self, message: Message, start: int) -> None:
        """Write a record. A file's header comes first, so one whose schema it does not name begins another file."""
        found = self._codec.written_by(message.value)
        new = found is not None and found[0].hex() not in self._schemas
        if self._writer is not None and (new or self._size >= self._part_bytes):
            self._finish(message.offset)
        if found is not None and new:
            self._schemas[found[0].hex()] = {"record": found[1], "schema": schema_text(found[2])}
        if self._writer is None:
            self._begin(max(start, self._from))
        assert self._writer is not None
        self._writer.write(
            {
                "offset": message.offset,
                "timestamp": message.timestamp,
                "key": message.key,
                "headers": [{"name": name, "value": value} for name, value in message.headers],
                "record": None if found is None else found[1],
                "value": message.value,
            }
        )
        self._size += len(message.value or b"")

    def close(self, start: int, end: int) -> None:
        """Nothing more comes before `end`. Offsets without a record, as a broker's own, are covered all the same."""
        if self._writer is None and end > max(start, self._from):
            self._begin(max(start, self._from))
        if self._writer is not None:
            self._finish(end)

    def _begin(self, start: int) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._from, self._size = start, 0
        descriptor = os.open(self._folder / f"{start:020}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        metadata = {SCHEMAS: json.dumps(self._schemas, sort_keys=True)}
        self._writer = Writer(self._file, EXPORTED, codec="deflate", sync_interval=_BLOCK_BYTES, metadata=metadata)

    def _finish(self, end: int) -> None:
        """The file is whole: on the disk, and then under its name."""
        assert self._writer is not None
        self._writer.flush()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        (self._folder / f"{self._from:020}.part").rename(self._folder / part_name(self._from, end))
        self._writer, self._from = None, end
