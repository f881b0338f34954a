"""Decides how rows that are seldom looked at again are held in memory: in few bytes, but for the last ones."""

from __future__ import annotations

import zlib
from array import array
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from itertools import islice
from typing import Any, Generic, TypeVar, cast

import orjson
from pydantic import TypeAdapter

from turngate.processors.leafrows import LeafRows
from turngate.processors.refnames import RefNames
from turngate.processors.state import Key, Rows

V = TypeVar("V")
#: How far deflate looks back (2**12 bytes), its memory and its effort: of rows of a kilobyte, the fastest there is.
_WINDOW, _MEMORY, _LEVEL = 12, 5, 6
#: So many rows of a table stand ready.
_RECENT = 500
#: Of each part of a row that is held, how many bytes say how long it is.
_SIZE = 4
#: How a row begins that is not parted yet; a length never does.
_JSON = b"{"


class Squeeze(Generic[V]):
    """Writes rows of a dataclass as JSON without defaults, and that compressed; reads them back."""

    def __init__(self, kind: type[V], written: TypeAdapter[V]) -> None:
        self._json = written
        self._defaults: list[tuple[str, object]] = [(f.name, f.default) for f in fields(kind)]  # type: ignore[arg-type]
        names = (f'"{name}":' for name, _ in self._defaults)
        self._words = ("null,true,false," + ",".join(names) + '"],["message:"tool:"revision:').encode()

    def plain(self, row: V, without: Collection[str] = ()) -> bytes:
        """A row as its entry of a checkpoint holds it, or without some fields."""
        says: dict[str, object] = {}
        for name, default in self._defaults:
            value = getattr(row, name)
            if value is not default and value != default:
                says[name] = value
        for name in without:
            says.pop(name, None)
        try:
            return orjson.dumps(says, option=orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError:  # a record or a row in it, of which the defaults go too, or a number beyond 64 bits
            return self._json.dump_json(row, exclude_defaults=True, exclude=set(without))

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
    """Rows of a table, of which the last few written or read stand ready. `leaves` are the fields that name some.

    The others are held as JSON. Where there is no `ref_field` that is compressed, which would take a fifth of the time
    that a turn is decided in. Where there is one, `tidy` parts it and the leaves from the rest in a quiet moment, and
    holds each ref and leaf in a few bytes.
    """

    def __init__(
        self, squeeze: Squeeze[V], named: LeafRows, refs: RefNames, *, ref_field: str | None, leaves: tuple[str, ...]
    ) -> None:
        self._squeeze = squeeze
        self._named = named
        self._refs = refs
        self._ref_field = ref_field
        self._leaves = leaves
        self._held: dict[Key, bytes] = {}
        self._ready: dict[Key, V] = {}
        self._new = 0  # of those that stand ready, how many are not held
        self._untidy: deque[Key] = deque()

    # As a mapping

    def __getitem__(self, key: Key) -> V:
        row = self._ready.get(key)
        if row is None:
            row = self._release(key[0], self._held[key])
            self._make_ready(key, row)
        return row

    def get(self, key: Key, default: V | None = None) -> V | None:  # type: ignore[override]
        """The row of a key, or the default."""
        if key in self._ready or key in self._held:
            return self[key]
        return default

    def __setitem__(self, key: Key, row: V) -> None:
        before = self.get(key)
        leaves, left = self._leaves_of(row), [] if before is None else self._leaves_of(before)
        if leaves != left:
            self._named.use_all(key[0], leaves)
            self._leave(key, left)
        if self._give_back(key) or key not in self._ready:
            self._new += 1
        self._make_ready(key, row)

    def __delitem__(self, key: Key) -> None:
        self._leave(key, self._leaves_of(self[key]))
        del self._ready[key]
        if not self._give_back(key):
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
                    self._hold(old, gone)
                    self._new -= 1
        self._ready[key] = row

    def _leaves_of(self, row: V) -> list[str]:
        return [leaf for field in self._leaves for leaf in getattr(row, field)]

    def _leave(self, key: Key, leaves: list[str]) -> None:
        for leaf in leaves:
            self._named.leave(key[0], leaf)

    # As entries of a checkpoint

    def write(self, key: Key) -> bytes:
        """A row as its entry holds it."""
        row = self._ready.get(key)
        if row is not None and key not in self._held and self._ref_field is not None:
            self._hold(key, row)  # which it would be soon: so it is written once for both
            self._new -= 1
        held = self._held.get(key, b"")
        if held.startswith(_JSON):
            return held
        return self._squeeze.plain(self._release(key[0], held) if row is None else row)

    def read(self, key: Key, raw: bytes) -> None:
        """Take in a row, in the place of an earlier one. Raises `ValueError` for what is none."""
        row = self._squeeze.row(raw)
        if key in self:
            del self[key]
        self._named.use_all(key[0], self._leaves_of(row))
        self._held[key] = self._squeeze.press(row) if self._ref_field is None else self._part(key[0], row)

    # In few bytes

    def tidy(self, most: int) -> None:
        """Hold up to so many rows in fewer bytes. No row is another for it."""
        for _ in range(min(most, len(self._untidy))):
            key = self._untidy.popleft()
            held = self._held.get(key)
            if held is not None and held.startswith(_JSON):
                self._held[key] = self._part(key[0], self._squeeze.row(held))

    def _hold(self, key: Key, row: V) -> None:
        if self._ref_field is None:
            self._held[key] = self._squeeze.press(row)
        else:
            self._held[key] = self._squeeze.plain(row)
            self._untidy.append(key)

    def _part(self, tenant: str, row: V) -> bytes:
        assert self._ref_field is not None
        refs: tuple[str, ...] = getattr(row, self._ref_field) or ()
        numbers = [[self._named.number(tenant, leaf) for leaf in getattr(row, field)] for field in self._leaves]
        fields = zip((self._ref_field, *self._leaves), (refs, *numbers), strict=True)
        parts = [self._squeeze.plain(row, {field for field, values in fields if values}), self._refs.hold(refs)]
        parts += [array("I", some).tobytes() for some in numbers]
        return b"".join(len(part).to_bytes(_SIZE, "big") + part for part in parts)

    def _release(self, tenant: str, held: bytes) -> V:
        if self._ref_field is None:
            return self._squeeze.row(self._squeeze.release(held))
        if held.startswith(_JSON):
            return self._squeeze.row(held)
        plain, refs, *numbers = _parts(held)
        apart = {self._ref_field: tuple(self._refs.refs(refs))}
        for field, some in zip(self._leaves, numbers, strict=True):
            apart[field] = tuple(self._named.digest(tenant, number) for number in array("I", some))
        row = cast(Any, self._squeeze.row(plain))
        return cast(V, replace(row, **{field: values for field, values in apart.items() if values}))

    def _give_back(self, key: Key) -> bool:
        """What is held of a row goes, if anything is."""
        held = self._held.pop(key, None)
        if held is not None and self._ref_field is not None and not held.startswith(_JSON):
            self._refs.give_back(_parts(held)[1])
        return held is not None


def _parts(held: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(held):
        begins = at + _SIZE
        at = begins + int.from_bytes(held[at:begins], "big")
        parts.append(held[begins:at])
    return parts
