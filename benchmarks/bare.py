"""Decides what it costs to ask nothing but `D ⊆ S`: the same records, no engine, sets or roaring bitmaps.

It keeps who may read each room and who could read each message, and says of a draft whether every reader of its
destination could read its trigger and all its sources. There are no verdicts, no reasons, no leaves, no agents, no
policies, no freshness, no turn that was decided before, no state that could be written down, and no going back after an
error: what remains is the question itself, which no engine can ask for less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from pyroaring import BitMap

from turngate.schemas.inputs import Change, MembershipChanged, MembershipPage, MessageObserved, Record, TurnDrafted

S = TypeVar("S", set[str], BitMap)


class Bare(ABC, Generic[S]):
    """Audiences as sets of one kind: a room's possible readers in `_upper`, the certain ones in `_lower`."""

    def __init__(self) -> None:
        self._pages: list[str] = []
        self._upper: dict[str, S] = {}
        self._lower: dict[str, S] = {}
        self._said: dict[str | None, S] = {}

    @abstractmethod
    def make(self, readers: Iterable[str]) -> S:
        """A set of these readers."""

    @abstractmethod
    def inside(self, d: S, s: S) -> bool:
        """Whether `D ⊆ S`."""

    @abstractmethod
    def add(self, s: S, reader: str) -> None:
        """Put a reader into a set."""

    @abstractmethod
    def discard(self, s: S, reader: str) -> None:
        """Take a reader out of a set."""

    def apply(self, record: Record) -> bool | None:
        """Take one record in; of a draft, whether its destination may hear all of it."""
        match record:
            case TurnDrafted():
                return self._heard(record)
            case MessageObserved():
                self._said[f"message:{record.message}"] = self._lower[record.room]
            case MembershipChanged(change=Change.JOINED):
                self.add(self._upper[record.room], record.reader)
            case MembershipChanged():
                self._lower[record.room] = left = self._lower[record.room].copy()
                self.discard(left, record.reader)
            case MembershipPage():
                self._pages += (member.reader for member in record.members)
                if record.last:
                    self._lower[record.room] = self.make(self._pages)
                    self._upper[record.room] = self._lower[record.room].copy()
                    self._pages = []
        return None

    def _heard(self, draft: TurnDrafted) -> bool:
        """Every source is asked, as by the engine: a refusal names all that speaks against it (R-TURN-2)."""
        d, refs = self._upper[draft.room], (draft.trigger, *draft.exposed)
        answers = [self.inside(d, self._said[ref]) for ref in refs]
        return all(answers)


class Sets(Bare[set[str]]):
    """Plain Python sets of reader ids."""

    def make(self, readers: Iterable[str]) -> set[str]:
        """A set of these readers."""
        return set(readers)

    def inside(self, d: set[str], s: set[str]) -> bool:
        """Whether `D ⊆ S`."""
        return d <= s

    def add(self, s: set[str], reader: str) -> None:
        """Put a reader into a set."""
        s.add(reader)

    def discard(self, s: set[str], reader: str) -> None:
        """Take a reader out of a set."""
        s.discard(reader)


class Bitmaps(Bare[BitMap]):
    """Roaring bitmaps of numbers that stand for reader ids."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def make(self, readers: Iterable[str]) -> BitMap:
        """A set of these readers."""
        return BitMap(map(self._number, readers))

    def inside(self, d: BitMap, s: BitMap) -> bool:
        """Whether `D ⊆ S`; by cardinalities, which is many times faster than `issubset` where sets are large."""
        return bool(d.intersection_cardinality(s) == len(d))

    def add(self, s: BitMap, reader: str) -> None:
        """Put a reader into a set."""
        s.add(self._number(reader))

    def discard(self, s: BitMap, reader: str) -> None:
        """Take a reader out of a set."""
        s.discard(self._number(reader))

    def _number(self, reader: str) -> int:
        return self._numbers.setdefault(reader, len(self._numbers))
