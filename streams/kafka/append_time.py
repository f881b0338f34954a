"""Decides whether a record's timestamp may move stream time (R-TIME-1; docs/runtime.md).

One broker's wrong clock would otherwise make every listing stale and empty every room. So a partition halts before a
record that is stamped too far ahead, until an operator has looked.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from aiokafka import ConsumerRecord

#: Milliseconds by which a record's stamp may be ahead of this worker's own clock.
AHEAD_MS = 30_000
#: Of aiokafka: the timestamp is the broker's, not the writer's.
_LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True)
class AppendTime:
    """What is demanded of records' timestamps: nothing with `test_time`.

    Of `admitted` partitions an operator has said that what is stamped ahead is to be applied as it is.
    """

    test_time: bool = False
    admitted: Set[int] = frozenset()

    def complaint(self, record: ConsumerRecord, now_ms: float) -> str | None:
        """Why a record must not be applied at this time of the worker's own clock, or None."""
        if self.test_time:
            return None
        where = f"{record.topic}[{record.partition}] at {record.offset}"
        if record.timestamp_type != _LOG_APPEND_TIME:
            return f"{where}: its time is the writer's; make the topic anew, with message.timestamp.type=LogAppendTime"
        ahead = record.timestamp - now_ms
        if ahead > AHEAD_MS and record.partition not in self.admitted:
            return (
                f"{where}: stamped {ahead / 1000:.0f} s ahead of this worker's clock. If that clock is wrong, set it"
                " and restart the worker. If the broker's was, correct it, and restart the worker with --admit-ahead"
                f" {record.partition} to apply what it stamped"
            )
        return None
