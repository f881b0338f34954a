"""Decides which fetched records of a partition are taken, and which of them go into the next stretch (R-RUN-2).

A fetch can straddle a rebalance or a seek, so a hand-over names the positions between which it lies. It is taken only
if it begins exactly where the partition stands; anything else leads to a seek. Nothing is dropped silently and nothing
is taken twice, whatever the consumer returns.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence

from aiokafka import ConsumerRecord

from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS
from turngate.streams.log import Message

#: Records of one topic that wait before no more are fetched, and their bytes.
ROOM_RECORDS = 1000
ROOM_BYTES = 2 * 1024 * 1024
#: Records that one stretch holds at most, without its drafts, and drafts likewise: the loop is blocked for their fold.
SLICE = 500

_ORDER = {topic: i for i, topic in enumerate(INPUT_TOPICS)}


class Intake:
    """What was fetched of one partition's input topics and is not applied yet."""

    def __init__(self, positions: Mapping[str, int]) -> None:
        #: Of each topic, the position up to which records were taken.
        self.at: dict[str, int] = dict(positions)
        self._waiting: dict[str, deque[Message]] = {topic: deque() for topic in positions}
        self._bytes: dict[str, int] = dict.fromkeys(positions, 0)

    def accept(self, topic: str, before: int | None, messages: Sequence[Message], after: int) -> int | None:
        """Take the records between two positions of the consumer; None, or the position to which it must seek."""
        at = self.at[topic]
        if before != at or after < at or (messages and not at <= messages[0].offset <= messages[-1].offset < after):
            return at if messages or after != at else None
        self.at[topic] = after  # counts a broker's control records too
        self._waiting[topic].extend(messages)
        self._bytes[topic] += sum(map(_size, messages))
        return None

    def has_room(self, topic: str) -> bool:
        """Whether more of a topic may be fetched."""
        return len(self._waiting[topic]) < ROOM_RECORDS and self._bytes[topic] < ROOM_BYTES

    @property
    def full(self) -> bool:
        """Whether there is a whole slice to apply, or a topic waits for room."""
        return self.others >= SLICE or any(not self.has_room(topic) for topic in self.at)

    @property
    def others(self) -> int:
        """How many records wait that are no drafts."""
        return sum(len(waiting) for topic, waiting in self._waiting.items() if topic != DRAFTS)

    @property
    def drafts(self) -> int:
        """How many drafts wait."""
        return len(self._waiting[DRAFTS])

    def reached(self, ends: Mapping[str, int]) -> bool:
        """Whether everything before these positions has been taken."""
        return all(self.at[topic] >= end for topic, end in ends.items())

    def has_before(self, ends: Mapping[str, int]) -> bool:
        """Whether a record before these positions waits."""
        return any(self._waiting[topic] and self._waiting[topic][0].offset < end for topic, end in ends.items())

    def positions(self) -> dict[str, int]:
        """Of each topic, the position before the first record that waits, or up to which it was taken if none does."""
        return {topic: waiting[0].offset if waiting else self.at[topic] for topic, waiting in self._waiting.items()}

    def take(
        self, limit: int, upto: Mapping[str, int] | None = None, marks: Mapping[str, int] | None = None
    ) -> list[Message]:
        """Up to `limit` records that are no drafts, merged by timestamp, none from beyond `upto`.

        With `marks`, the positions up to which a worker catches up, a record comes only when it is certain that none
        with an earlier timestamp will be fetched: each topic stands at its mark or has a record waiting.
        """
        taken: list[Message] = []
        behind = {t for t, mark in (marks or {}).items() if self.at[t] < mark}
        if any(not self._waiting[topic] for topic in behind):
            return taken
        heads = [self._head(topic) for topic in self._waiting if topic != DRAFTS and self._available(topic, upto)]
        heapq.heapify(heads)
        while heads and len(taken) < limit:
            *_, topic = heapq.heappop(heads)
            taken.append(self._pop(topic))
            if self._available(topic, upto):
                heapq.heappush(heads, self._head(topic))
            elif topic in behind and not self._waiting[topic]:
                break
        return taken

    def take_drafts(self, count: int) -> list[Message]:
        """The first `count` drafts."""
        return [self._pop(DRAFTS) for _ in range(count)]

    def _available(self, topic: str, upto: Mapping[str, int] | None) -> bool:
        waiting = self._waiting[topic]
        return bool(waiting) and (upto is None or waiting[0].offset < upto[topic])

    def _head(self, topic: str) -> tuple[int, int, str]:
        return self._waiting[topic][0].timestamp, _ORDER[topic], topic

    def _pop(self, topic: str) -> Message:
        message = self._waiting[topic].popleft()
        self._bytes[topic] -= _size(message)
        return message


def message_of(topic: str, record: ConsumerRecord) -> Message:
    """A fetched record, under its topic's own name. A header without a value is one with an empty value."""
    headers = tuple((name, value if value is not None else b"") for name, value in record.headers)
    return Message(topic, record.partition, record.offset, record.timestamp, record.key, record.value, headers)


def _size(message: Message) -> int:
    return len(message.key or b"") + len(message.value or b"")
