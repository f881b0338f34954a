"""Decides how rows that are seldom looked at again are held in memory: as JSON or compressed, but for the last ones."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import islice
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from turngate.processors.leafrows import LeafRows
from turngate.processors.state import Key, Rows

V = TypeVar("V")
#: How far deflate looks back (2**12 bytes), its memory and its effort: of rows of a kilobyte, the fastest there is.
_WINDOW, _MEMORY, _LEVEL = 12, 5, 6
#: So many rows of a table stand ready.
_RECENT = 500


class Squeeze(Generic[V]):
    """Writes rows of a dataclass as JSON without defaults, and that compressed; reads them back."""

    def __init__(self, kind: type[V], written: TypeAdapter[V]) -> None:
        self._json = written
        names = (f'"{f.name}":' for f in fields(kind))  # type: ignore[arg-type]
        self._words = ("null,true,false," + ",".join(names) + '"],["message:"tool:"revision:').encode()

    def plain(self, row: V) -> bytes:
        """A row as its entry of a checkpoint holds it."""
        return self._json.dump_json(row, exclude_defaults=True)

    def row(self, plain: bytes) -> V:
        """The row of an entry. Raises `ValueError` for what is none."""
        return self._json.validate_json(plain)

    def press(self, row: V) -> bytes:
        """A row as it is held."""
        pressed = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, self._words)
        return pressed.compress(self.plain(row)) + pressed.flush()

    def release(self, pressed: bytes) -> bytes:
        """The plain form of what is held."""
        return zlib.decompressobj(-_WINDOW, self._words).decompress(pressed)


class SqueezedRows(Rows[V]):
    """Rows of a table, of which the last few written or read stand ready. `leaves` are those that a row names.

    The others are held as JSON, and compressed where they are `pressed`: a fifth of the time it takes to decide a turn
    would go into pressing it, for half of its bytes.
    """

    def __init__(
        self,
        squeeze: Squeeze[V],
        leaves: Callable[[V], Iterable[str]],
        named: LeafRows,
        *,
        pressed: bool,
    ) -> None:
        self._squeeze = squeeze
        self._hold = squeeze.press if pressed else squeeze.plain
        self._release = squeeze.release if pressed else bytes
        self._leaves = leaves
        self._named = named
        self._held: dict[Key, bytes] = {}
        self._ready: dict[Key, V] = {}
        self._new = 0  # of those that stand ready, how many are not held

    def __getitem__(self, key: Key) -> V:
        row = self._ready.get(key)
        if row is None:
            row = self._squeeze.row(self._release(self._held[key]))
            self._make_ready(key, row)
        return row

    def get(self, key: Key, default: V | None = None) -> V | None:  # type: ignore[override]
        """The row of a key, or the default."""
        if key in self._ready or key in self._held:
            return self[key]
        return default

    def __setitem__(self, key: Key, row: V) -> None:
        before = self.get(key)
        self._use(key, row)
        if before is not None:
            self._leave(key, before)
        if self._held.pop(key, None) is not None or key not in self._ready:
            self._new += 1
        self._make_ready(key, row)

    def __delitem__(self, key: Key) -> None:
        self._leave(key, self[key])
        del self._ready[key]
        if self._held.pop(key, None) is None:
            self._new -= 1

    def __contains__(self, key: object) -> bool:
        return key in self._ready or key in self._held

    def __iter__(self) -> Iterator[Key]:
        # A list of them, since whoever reads a row on the way moves others from the ready to the held.
        yield from [*self._held, *(key for key in self._ready if key not in self._held)]

    def __len__(self) -> int:
        return len(self._held) + self._new

    def _make_ready(self, key: Key, row: V) -> None:
        if len(self._ready) >= _RECENT and key not in self._ready:
            for old in list(islice(self._ready, _RECENT // 2)):
                gone = self._ready.pop(old)
                if old not in self._held:
                    self._held[old] = self._hold(gone)
                    self._new -= 1
        self._ready[key] = row

    def _use(self, key: Key, row: V) -> None:
        for leaf in self._leaves(row):
            self._named.use(key[0], leaf)

    def _leave(self, key: Key, row: V) -> None:
        for leaf in self._leaves(row):
            self._named.leave(key[0], leaf)

    def write(self, key: Key) -> bytes:
        """A row as its entry holds it."""
        row = self._ready.get(key)
        return self._release(self._held[key]) if row is None else self._squeeze.plain(row)

    def read(self, key: Key, raw: bytes) -> None:
        """Take in a row. Raises `ValueError` for what is none."""
        row = self._squeeze.row(raw)
        self._use(key, row)
        self._held[key] = self._hold(row)

    def all_read(self) -> None:
        """There is nothing to put in order."""
