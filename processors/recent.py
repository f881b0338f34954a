"""Decides how much is remembered of what can be worked out again: a bounded part, so that a worker's memory is too."""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

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
