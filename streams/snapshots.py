"""Decides how a partition's state lies in a directory, with the positions it is the state of and the engine's version.

A snapshot is two files: `<partition>-<drafts>.avro` with the state entries, and a JSON file of the same name with all
else, written last: without it there is no snapshot. `<drafts>` is the position of `turn-drafts`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
from fastavro.write import Writer

from turngate.schemas.catalog import DRAFTS, OUTPUT_TOPICS
from turngate.streams.local_log import LocalLog
from turngate.streams.log import LogError
from turngate.streams.private import for_owner

_NAME = re.compile(r"(\d+)-(\d{20})\.json")
_BLOCK_BYTES = 1 << 20
ENTRY = fastavro.parse_schema(
    {
        "type": "record",
        "name": "StateEntry",
        "namespace": "turngate.export.v1",
        "fields": [{"name": "key", "type": "bytes"}, {"name": "value", "type": ["null", "bytes"]}],
    },
    named_schemas={},
)

Change = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A partition's state. Of several `entries` of one key the last stands; without a value there is none.

    `positions`: of every input topic, the position after the last record applied. `outputs`: of `applied` and every
    other output topic, an offset before which nothing came of a later record. `engine`: the version that wrote it.
    """

    partition: int
    positions: dict[str, int]
    outputs: dict[str, int]
    engine: str
    entries: Iterable[Change]
    notes: dict[str, Any] = field(default_factory=dict)


#: What is known of a snapshot once its entries were read: positions, and the version that wrote them.
About = tuple[dict[str, int], str]


def write_snapshot(
    folder: Path,
    partition: int,
    outputs: dict[str, int],
    entries: Iterable[Change],
    about: Callable[[], About],
    notes: dict[str, Any] | None = None,
) -> Path:
    """Write a snapshot, all of it or nothing, for its owner alone; `about` is asked when the entries have been read.

    Raises `LogError` where it cannot be written.
    """
    beside = folder / f"{partition}.part"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(beside, "wb", opener=for_owner) as file:
            writer = Writer(file, ENTRY, codec="deflate", sync_interval=_BLOCK_BYTES)
            for key, value in entries:
                writer.write({"key": key, "value": value})
            writer.flush()
            file.flush()
            os.fsync(file.fileno())
        positions, engine = about()
        path = folder / f"{partition}-{positions[DRAFTS]:020}.json"
        path.unlink(missing_ok=True)
        beside.rename(path.with_suffix(".avro"))
        told = {"partition": partition, "engine": engine, "positions": positions, "outputs": outputs}
        beside.touch(0o600)
        beside.write_text(json.dumps(told | {"notes": notes or {}}, indent=1) + "\n", "utf-8")
        beside.rename(path)
    except OSError as error:
        raise LogError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    return path


def snapshot_of(log: LocalLog, partition: int, folder: Path) -> Path:
    """Write down the state that the last commit on an embedded log left, which may be written meanwhile.

    Raises `LogError` where nothing was applied yet, or it cannot be written.
    """
    # Asked before the state, so that nothing before them came of what is applied later.
    outputs = {topic: log.end(topic, partition) for topic in OUTPUT_TOPICS}
    checkpoint = log.checkpoint(partition)
    about = whole(partition, checkpoint.positions, checkpoint.engine)
    return write_snapshot(folder, partition, outputs, checkpoint.entries, lambda: about)


def whole(partition: int, positions: dict[str, int], engine: str | None) -> About:
    """What is known of a snapshot. Raises `LogError` where there is nothing that it could be of."""
    if engine is None or not positions:
        raise LogError(f"partition {partition}: nothing was applied yet, so there is no state")
    return positions, engine


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot of a JSON file, its entries read as they are iterated over. Raises `LogError` for any other file."""
    try:
        told = json.loads(path.read_text("utf-8"))
        outputs = dict.fromkeys(OUTPUT_TOPICS, 0) | told["outputs"]
        entries = _entries(path.with_suffix(".avro"))
        return Snapshot(told["partition"], told["positions"], outputs, told["engine"], entries, told["notes"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LogError(f"{path}: is no snapshot: {error}") from None


def newest(folder: Path, partition: int, draft: int | None = None) -> Path | None:
    """The newest snapshot of a partition, in which this draft was not decided yet; None where there is none.

    Raises `LogError` where there is no such directory.
    """
    if not folder.is_dir():
        raise LogError(f"{folder}: is no directory; `turngate snapshot` makes one")
    named = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    found = [(int(name[2]), path) for name, path in named if name is not None and int(name[1]) == partition]
    return max(((at, path) for at, path in found if draft is None or at <= draft), default=(0, None))[1]


def _entries(path: Path) -> Iterator[Change]:
    try:
        with path.open("rb") as file:
            told: Any
            for told in fastavro.reader(file):
                yield told["key"], told["value"]
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from None
