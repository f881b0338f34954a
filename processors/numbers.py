"""Decides which small number stands for which value, so that a row can name it in a few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")


class Numbers(Generic[V]):
    """Values by small numbers, which mean something in this process only.

    Each use of a value is counted; when there is none any more, its number is free for another.
    """

    def __init__(self) -> None:
        self._number: dict[V, int] = {}
        self._values: list[V | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def use(self, value: V) -> int:
        """The number of a value that is used once more."""
        number = self._number.get(value)
        if number is None:
            number = self._free.pop() if self._free else len(self._values)
            if number == len(self._values):
                self._values.append(None)
                self._uses.append(0)
            self._values[number] = value
            self._number[value] = number
        self._uses[number] += 1
        return number

    def value(self, number: int) -> V:
        """The value of a number. Raises `LookupError` for one that stands for nothing."""
        value = self._values[number]
        if value is None:
            raise LookupError("a number that stands for nothing")
        return value

    def leave(self, number: int) -> V | None:
        """The value is used once less; the value, where that was the last time."""
        self._uses[number] -= 1
        if self._uses[number]:
            return None
        value = self.value(number)
        del self._number[value]
        self._values[number] = None
        self._free.append(number)
        return value

    def __contains__(self, value: V) -> bool:
        return value in self._number

    def __iter__(self) -> Iterator[V]:
        return iter(self._number)
