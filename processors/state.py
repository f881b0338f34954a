"""Decides how a partition's state is held, so that a record is applied wholly or not at all (R-RUN-6).

State is a set of tables of immutable values. Every write goes through a journal that remembers what stood there before;
undoing the journal brings back the state as it was at a mark. Keys are tuples of strings, the tenant first.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from functools import cache
from typing import Any, Generic, TypeVar

import orjson
from pydantic import TypeAdapter

V = TypeVar("V")
Key = tuple[str, ...]


@cache
def adapter(value_type: Any) -> TypeAdapter[Any]:
    """How rows of a type are written and read; making one takes milliseconds, and every partition needs them all."""
    return TypeAdapter(value_type)


class Rows(MutableMapping[Key, V]):
    """Rows that are held in a form of their own, and write and read their entries of a checkpoint."""

    @abstractmethod
    def write(self, key: Key) -> bytes:
        """A row as an entry holds it."""

    @abstractmethod
    def read(self, key: Key, raw: bytes) -> None:
        """Take in a row from its entry, in the place of an earlier one. Raises `ValueError` for what is none."""


class Table(Generic[V]):
    """Rows of one type by key. Values are never changed in place."""

    def __init__(self, state: State, name: str, adapter: TypeAdapter[V], rows: Rows[V] | None = None) -> None:
        self.name = name
        self.rows: MutableMapping[Key, V] = {} if rows is None else rows
        #: Keys of what was written and kept since the last checkpoint.
        self.changed: dict[Key, None] = {}
        self._adapter = adapter
        self._packed = rows
        self._state = state
        #: The row of a key, or None where there is none.
        self.get: Callable[[Key], V | None] = self.rows.get

    def put(self, key: Key, value: V) -> None:
        """Write a row."""
        self._state.remember(self, key)
        self.rows[key] = value

    def drop(self, key: Key) -> None:
        """Remove a row; nothing happens where there is none."""
        if key in self.rows:
            self._state.remember(self, key)
            del self.rows[key]

    def __contains__(self, key: Key) -> bool:
        return key in self.rows

    def write(self, key: Key) -> bytes | None:
        """A row as its entry of a checkpoint holds it; None where there is none."""
        if key not in self.rows:
            return None
        return self._adapter.dump_json(self.rows[key]) if self._packed is None else self._packed.write(key)

    def read(self, key: Key, raw: bytes | None) -> None:
        """Take in a row from its entry, in the place of an earlier one. Raises `ValueError` for what is none."""
        if raw is None:
            self.rows.pop(key, None)
        elif self._packed is None:
            self.rows[key] = self._adapter.validate_json(raw)
        else:
            self._packed.read(key, raw)


class State:
    """All tables of one partition, and their journal."""

    def __init__(self) -> None:
        self.tables: dict[str, Table[Any]] = {}
        self._journal: list[tuple[Table[Any], Key, Any]] = []

    def table(self, name: str, value_type: Any, rows: Rows[Any] | None = None) -> Table[Any]:
        """Make a table; `value_type`, or what holds its `rows`, says how they are written into a checkpoint."""
        made = self.tables[name] = Table(self, name, adapter(value_type), rows)
        return made

    def remember(self, table: Table[Any], key: Key) -> None:
        """Note in the journal what stands at a key, before it is written."""
        self._journal.append((table, key, table.get(key)))

    def mark(self) -> int:
        """A place in the journal to which it can be undone."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Bring every row back to what it was at the mark."""
        while len(self._journal) > mark:
            table, key, value = self._journal.pop()
            if value is None:
                table.rows.pop(key, None)
            else:
                table.rows[key] = value

    def written(self, tables: Collection[str]) -> list[tuple[str, Key, Any]]:
        """Table, key and former value (None: it was not there) of each write to these since the journal began."""
        return [(table.name, key, before) for table, key, before in self._journal if table.name in tables]

    def keep(self) -> None:
        """Everything in the journal stands; it becomes part of the next checkpoint."""
        for table, key, _ in self._journal:
            table.changed[key] = None
        self._journal.clear()

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """The entries that changed since this was last asked: key and value as bytes, None for a removed row."""
        entries = [
            (entry_key(name, key), table.write(key)) for name, table in self.tables.items() for key in table.changed
        ]
        for table in self.tables.values():
            table.changed.clear()
        return entries

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, as a checkpoint of the whole state holds it."""
        for name, table in self.tables.items():
            for key in table.rows:
                value = table.write(key)
                if value is not None:
                    yield entry_key(name, key), value

    def load(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Fill empty tables from entries. Of several of one key the last stands; without a value there is none.

        Raises `ValueError` for an entry that is none of this engine's.
        """
        for raw_key, raw_value in entries:
            name, *key = json.loads(raw_key)
            if name not in self.tables:
                raise ValueError(f"state entry of a table that this engine does not have: {name}")
            self.tables[name].read(tuple(key), raw_value)

    def digest(self) -> str:
        """SHA-256 over every entry in order of key: equal exactly where two states are."""
        sha = hashlib.sha256()
        for key, value in sorted(self.entries()):
            sha.update(len(key).to_bytes(4, "big") + key + len(value).to_bytes(4, "big") + value)
        return sha.hexdigest()


def entry_key(table: str, key: Key) -> bytes:
    """A row's key in a checkpoint."""
    return orjson.dumps([table, *key])
