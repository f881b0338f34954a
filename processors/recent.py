"""Decides how much is remembered of what can be worked out again: a bounded part, so that a worker's memory is too."""

from __future__ import annotations

from itertools import islice
from typing import Generic, TypeVar

G = TypeVar("G")
K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A mapping of at most so many values; when one more comes, the older half goes. None of it is state."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most and key not in self:
            for old in list(islice(self, self._most // 2)):
                self.pop(old)
        super().__setitem__(key, value)


class RecentBy(Generic[G, K, V]):
    """As `Recent`, by two keys: whoever asks of many under the same first one makes and compares that once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._groups: dict[G, dict[K, V]] = {}
        self._kept = 0

    def of(self, group: G) -> dict[K, V]:
        """What is remembered under a first key; it is written by `keep` alone."""
        found = self._groups.get(group)
        if found is None:
            self._make_room()
            found = self._groups[group] = {}
            self._kept += 1
        return found

    def keep(self, group: G, key: K, value: V) -> V:
        """Remember a value, which is given back."""
        self._make_room()
        self.of(group)[key] = value
        self._kept += 1
        return value

    def __len__(self) -> int:
        return sum(1 + len(group) for group in self._groups.values())

    def clear(self) -> None:
        """Forget everything."""
        self._groups.clear()
        self._kept = 0

    def _make_room(self) -> None:
        """Where there are too many values and first keys for one more of each, the older half of the keys goes."""
        while self._kept + 2 > self._most:
            for old in list(islice(self._groups, (len(self._groups) + 1) // 2)):
                del self._groups[old]
            self._kept = len(self)
