"""Decides how the rows of one room are held: those that came in order, behind each other in one stretch of memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator

#: A row begins with when it was first observed, in so many bytes; a plain one has so many in all.
SEEN, WIDTH = 6, 28
#: A row's name: the microseconds that a message's name in its room says, such a name that says none, or a whole ref.
Name = int | str | bytes


class Stack:
    """Rows by name, and which of them is the oldest.

    A plain row that is named by a later time than all before it, and was not observed before them, takes its own bytes
    and eight more. All others are strays, which take some 150.
    """

    __slots__ = ("_order", "_rows", "_strays", "_times")

    def __init__(self) -> None:
        self._times = array("Q")
        self._rows = bytearray()
        self._strays: dict[Name, bytes] = {}
        #: The strays, the oldest first; None where nobody has asked for them yet.
        self._order: list[Name] | None = None

    def get(self, name: Name) -> bytes | None:
        """A row."""
        at = self._find(name)
        return self._strays.get(name) if at is None else self._row(at)

    def put(self, name: Name, row: bytes) -> None:
        """Put a row there, in the place of an earlier one."""
        at = self._find(name)
        if at is not None and len(row) == WIDTH and row[:SEEN] == self._row(at)[:SEEN]:
            self._rows[at * WIDTH : (at + 1) * WIDTH] = row
            return
        self.pop(name)
        if isinstance(name, int) and len(row) == WIDTH and self._goes_on(name, row):
            self._times.append(name)
            self._rows += row
            return
        self._strays[name] = row
        if self._order is not None:
            insort(self._order, name, key=self._age)

    def pop(self, name: Name) -> bytes | None:
        """Take a row away."""
        at = self._find(name)
        if at is None:
            if name in self._strays and self._order is not None:
                self._order.remove(name)
            return self._strays.pop(name, None)
        row = self._row(at)
        del self._times[at]
        del self._rows[at * WIDTH : (at + 1) * WIDTH]
        return row

    def oldest(self) -> tuple[Name, bytes]:
        """The name and row that were observed first; of several at once, always the same."""
        if self._order is None:
            self._order = sorted(self._strays, key=self._age)
        names: list[Name] = [*self._times[:1], *self._order[:1]]
        name = min(names, key=self._age)
        row = self.get(name)
        assert row is not None
        return name, row

    def names(self) -> list[Name]:
        """All names, those of the oldest rows first."""
        return sorted([*self._times, *self._strays], key=self._age)

    def __iter__(self) -> Iterator[Name]:
        yield from self._times
        yield from self._strays

    def __contains__(self, name: Name) -> bool:
        return self._find(name) is not None or name in self._strays

    def __len__(self) -> int:
        return len(self._times) + len(self._strays)

    def _find(self, name: Name) -> int | None:
        """Where in the stretch a row is."""
        if not isinstance(name, int):
            return None
        at = bisect_left(self._times, name)
        return at if at < len(self._times) and self._times[at] == name else None

    def _row(self, at: int) -> bytes:
        return bytes(self._rows[at * WIDTH : (at + 1) * WIDTH])

    def _goes_on(self, name: int, row: bytes) -> bool:
        return not self._times or (self._times[-1] < name and self._row(len(self._times) - 1)[:SEEN] <= row[:SEEN])

    def _age(self, name: Name) -> tuple[bytes, int, int, str]:
        row = self.get(name)
        assert row is not None
        if isinstance(name, int):
            return (row[:SEEN], 0, name, "")
        return (row[:SEEN], 1, 0, name) if isinstance(name, str) else (row[:SEEN], 2, 0, name.decode())
