"""Decides how far a consumer that works on many records at once may say that it has come."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

#: Names one partition of one topic.
P = TypeVar("P", bound=Hashable)


class Progress(Generic[P]):
    """The records under way of each partition, and the position before which all are done.

    Nothing is committed past a record that is under way, so a crash repeats records and skips none.
    """

    def __init__(self) -> None:
        self._under_way: dict[P, dict[int, bool]] = {}
        self._done: dict[P, int] = {}

    def begin(self, place: P, offset: int) -> None:
        """A record is worked on from now on; in order of offset."""
        self._under_way.setdefault(place, {})[offset] = False

    def end(self, place: P, offset: int) -> None:
        """It is done. Of a partition that was dropped meanwhile there is nothing to note."""
        here = self._under_way.get(place)
        if here is None or offset not in here:
            return
        here[offset] = True
        while here:
            first = next(iter(here))
            if not here[first]:
                break
            del here[first]
            self._done[place] = first + 1

    def drop(self, place: P) -> None:
        """The partition is somebody else's now."""
        self._under_way.pop(place, None)
        self._done.pop(place, None)

    def take(self) -> dict[P, int]:
        """Positions to commit that were not taken before."""
        done, self._done = self._done, {}
        return done
