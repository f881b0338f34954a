"""Decides how a partition's state lies on the state topic, and reads it back completely or not at all (R-RUN-4).

One record holds the input positions, one each state entry. An entry too large for one record lies in numbered parts;
the parts of one version are always written in one transaction, and parts that it no longer has become tombstones. Every
record names the engine's version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

from turngate.streams.kafka.clients import Entry
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.log import Commit, Headers, LogError

#: Bytes of an entry's value that one record holds, so that with its key and headers it stays under a broker's 1 MB.
PART_BYTES = 500_000

POSITIONS_KEY = b"p"
#: Before the key of an entry: of its first part, or of all of it.
_ENTRY = b"e"
#: Before the number of a further part, which stands in two bytes before the entry's key.
_PART = b"x"


class CheckpointError(LogError):
    """A checkpoint that is not whole, or one whose input is gone. It is never taken for an empty one."""


class CheckpointUnread(LogError):
    """A checkpoint that cannot be read for now; reading it again may succeed."""


#: A state entry's key and value, None where there is none any more.
Change = tuple[bytes, bytes | None]


class Layout:
    """The records of commits; it remembers which entries lie in several parts."""

    def __init__(self, parts: dict[bytes, int] | None = None, part_bytes: int = PART_BYTES) -> None:
        self._parts = dict(parts or {})
        self._part_bytes = part_bytes

    def records(self, commit: Commit) -> list[Entry]:
        """The records that a commit adds to the state topic."""
        version = ("engine", commit.engine.encode())
        alone = (version,)
        records: list[Entry] = []
        for key, value in commit.entries:
            if key in self._parts or (value is not None and len(value) > self._part_bytes):
                records += self._in_parts(key, value, version)
            else:
                records.append((_ENTRY + key, value, alone))
        positions = json.dumps(commit.positions, sort_keys=True).encode()
        records.append((POSITIONS_KEY, positions, alone))
        return records

    def _in_parts(self, key: bytes, value: bytes | None, version: tuple[str, bytes]) -> Iterator[Entry]:
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


class Gathered:
    """What the records of a partition of the state topic come to, taken in the topic's order.

    An entry is given on as it comes, and again where it changes. Only entries in parts are kept, until the end tells
    which of them are whole. `admit` is called for each version of the engine that wrote here, and raises where this one
    cannot read it.
    """

    def __init__(self, partition: int, admit: Callable[[str], object]) -> None:
        #: Where each input goes on.
        self.positions: dict[str, int] = {}
        #: Of each entry that lies in several parts, in how many.
        self.parts: dict[bytes, int] = {}
        #: How many records were taken.
        self.count = 0
        self._partition = partition
        self._admit = admit
        self._admitted: set[bytes] = set()
        self._positions: bytes | None = None
        self._parted: dict[bytes, tuple[bytes, Headers]] = {}

    def take(self, key: bytes, value: bytes | None, headers: Headers) -> Change | None:
        """Take the next record; the entry that it changes, if it does."""
        more = dict(headers)
        self.count += 1
        engine = more.get("engine", b"")
        if engine and engine not in self._admitted:
            self._admit(engine.decode())
            self._admitted.add(engine)
        if key == POSITIONS_KEY:
            self._positions = value
            return None
        whole = key[:1] == _ENTRY and "parts" not in more
        if value is None or whole:
            self._parted.pop(key, None)
        else:
            self._parted[key] = value, headers
        return (key[1:], value if whole else None) if key[:1] == _ENTRY else None

    def rest(self) -> Iterator[Change]:
        """All was taken: the entries that lie in parts. Raises `CheckpointError` where the checkpoint is not whole."""
        place = f"{STATE_TOPIC}[{self._partition}]"
        if self._positions is not None:
            self.positions = json.loads(self._positions)
        for raw in [key for key in self._parted if key[:1] == _ENTRY]:
            value, headers = self._parted.pop(raw)
            key, more = raw[1:], dict(headers)
            count = self.parts[key] = int(more["parts"])
            further = [self._parted.pop(_part_key(key, n), None) for n in range(1, count)]
            value = b"".join([value, *(part[0] for part in further if part is not None)])
            if None in further or hashlib.sha256(value).digest() != more["sha256"]:
                raise CheckpointError(f"{place}: an entry's parts are not all there")
            yield key, value
        if self._parted:
            raise CheckpointError(f"{place}: {len(self._parted)} records belong to no entry")
        if self._admitted and self._positions is None:
            raise CheckpointError(f"{place}: there are entries, and nothing says up to which positions they go")


def _part_key(key: bytes, number: int) -> bytes:
    return _ENTRY + key if number == 0 else _PART + number.to_bytes(2, "big") + key
