"""Decides how a partition's state lies on the state topic, and reads it back completely or not at all (R-RUN-4).

One record holds the input positions, one each state entry. An entry too large for one record lies in numbered parts;
the parts of one version are always written in one transaction, and parts that it no longer has become tombstones. Every
record names the engine's version.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from turngate.streams.kafka.clients import Entry, plain_consumer
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.log import Commit, Headers, LogError

#: Bytes of an entry's value that one record holds, so that with its key and headers it stays under a broker's 1 MB.
PART_BYTES = 500_000
#: Seconds without any progress after which reading a checkpoint has failed.
PATIENCE = 30.0

POSITIONS_KEY = b"p"
#: Before the key of an entry: of its first part, or of all of it.
_ENTRY = b"e"
#: Before the number of a further part, which stands in two bytes before the entry's key.
_PART = b"x"


class CheckpointError(LogError):
    """A checkpoint that is not whole, or one whose input is gone. It is never taken for an empty one."""


class CheckpointUnread(LogError):
    """A checkpoint that cannot be read for now; reading it again may succeed."""


@dataclass(slots=True)
class Saved:
    """A partition's checkpoint. `entries` may be drained while the state is built, so that it is not held twice."""

    positions: dict[str, int]
    version: str | None
    entries: dict[bytes, bytes]
    parts: dict[bytes, int]

    def drain(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry once, each forgotten here as it is given."""
        while self.entries:
            yield self.entries.popitem()


class Layout:
    """The records of commits; it remembers which entries lie in several parts."""

    def __init__(self, parts: dict[bytes, int] | None = None, part_bytes: int = PART_BYTES) -> None:
        self._parts = dict(parts or {})
        self._part_bytes = part_bytes

    def records(self, commit: Commit) -> list[Entry]:
        """The records that a commit adds to the state topic."""
        version = ("engine", commit.engine.encode())
        records: list[Entry] = []
        for key, value in commit.entries:
            records += self._entry(key, value, version)
        positions = json.dumps(commit.positions, sort_keys=True).encode()
        records.append((POSITIONS_KEY, positions, (version,)))
        return records

    def _entry(self, key: bytes, value: bytes | None, version: tuple[str, bytes]) -> Iterator[Entry]:
        size = self._part_bytes
        before = self._parts.pop(key, 1)
        count = 0
        if value is not None:
            pieces = [value[i : i + size] for i in range(0, len(value), size)] or [b""]
            count = len(pieces)
            headers: Headers = (version,)
            if count > 1:
                self._parts[key] = count
                headers = (version, ("parts", str(count).encode()), ("sha256", hashlib.sha256(value).digest()))
            for number, piece in enumerate(pieces):
                yield _part_key(key, number), piece, headers if number == 0 else (version,)
        for number in range(count, before):
            yield _part_key(key, number), None, (version,)


def join(records: dict[bytes, tuple[bytes, Headers]], partition: int) -> Saved:
    """The checkpoint in the newest records of a state topic's partition, by key; `records` is emptied.

    Raises `CheckpointError` where a part is missing or from another version of its entry.
    """
    positions: dict[str, int] = {}
    version: str | None = None
    entries: dict[bytes, bytes] = {}
    parts: dict[bytes, int] = {}
    if POSITIONS_KEY in records:
        value, headers = records.pop(POSITIONS_KEY)
        positions = json.loads(value)
        version = dict(headers).get("engine", b"").decode() or None
    for raw in [key for key in records if key[:1] == _ENTRY]:
        value, headers = records.pop(raw)
        key, more = raw[1:], dict(headers)
        if "parts" in more:
            parts[key] = int(more["parts"])
            rest = [records.pop(_part_key(key, n), None) for n in range(1, parts[key])]
            value = b"".join([value, *(part[0] for part in rest if part is not None)])
            if None in rest or hashlib.sha256(value).digest() != more["sha256"]:
                raise CheckpointError(f"{STATE_TOPIC}[{partition}]: an entry's parts are not all there")
        entries[key] = value
    if records or (entries and version is None):
        raise CheckpointError(
            f"{STATE_TOPIC}[{partition}]: {len(records)} records belong to no entry, or none names an engine"
        )
    return Saved(positions, version, entries, parts)


async def load(settings: KafkaSettings, place: TopicPartition, end: int, check: Callable[[], None]) -> Saved:
    """Read a partition of the state topic up to its high watermark `end`, asked once its former owner was fenced.

    `check` is called again and again, and raises where memory runs out. Raises `CheckpointUnread` where
    nothing comes for `PATIENCE` seconds, `CheckpointError` where it is not whole.
    """
    consumer = plain_consumer(settings, committed=True)
    await consumer.start()
    try:
        newest = await _newest(consumer, place, end, check)
    finally:
        await consumer.stop()
    return await asyncio.to_thread(join, newest, place.partition)


async def _newest(
    consumer: AIOKafkaConsumer, place: TopicPartition, end: int, check: Callable[[], None]
) -> dict[bytes, tuple[bytes, Headers]]:
    """By position, not by count: control records and compaction leave gaps."""
    newest: dict[bytes, tuple[bytes, Headers]] = {}
    consumer.assign([place])
    at = (await consumer.beginning_offsets([place]))[place]
    consumer.seek(place, at)
    deadline = time.monotonic() + PATIENCE
    while at < end:
        for record in (await consumer.getmany(place, timeout_ms=100)).get(place, ()):
            _keep(newest, record)
        before, at = at, await consumer.position(place)
        if at > before:
            deadline = time.monotonic() + PATIENCE
            check()
        elif time.monotonic() > deadline:
            raise CheckpointUnread(
                f"{place.topic}[{place.partition}]: nothing was read for {PATIENCE:.0f} s at {at} of {end};"
                " is the broker well?"
            )
    return newest


def _keep(newest: dict[bytes, tuple[bytes, Headers]], record: ConsumerRecord) -> None:
    if record.value is None:
        newest.pop(record.key, None)
    else:
        newest[record.key] = record.value, tuple(record.headers)


def _part_key(key: bytes, number: int) -> bytes:
    return _ENTRY + key if number == 0 else _PART + number.to_bytes(2, "big") + key
