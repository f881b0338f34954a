"""Which timestamps may move stream time (R-TIME-1; docs/runtime.md)."""

from __future__ import annotations

import pytest
from aiokafka import ConsumerRecord

from turngate.streams.kafka.append_time import AHEAD_MS, AppendTime

NOW = 1_767_225_600_000


def record(timestamp: int = NOW, timestamp_type: int = 1, partition: int = 3) -> ConsumerRecord:
    return ConsumerRecord("ticks", partition, 7, timestamp, timestamp_type, b"secret", b"words", 0, 6, 5, ())


@pytest.mark.parametrize("timestamp", [0, NOW - 10**9, NOW, NOW + AHEAD_MS])
def test_the_brokers_time_is_taken_as_it_is(timestamp: int) -> None:
    assert AppendTime().complaint(record(timestamp), NOW) is None


def test_a_stamp_far_ahead_of_our_clock_is_not_applied_until_an_operator_says_so() -> None:
    ahead = record(NOW + AHEAD_MS + 1)
    complaint = AppendTime().complaint(ahead, NOW)
    assert complaint is not None
    assert "ticks[3] at 7" in complaint
    assert "--admit-ahead 3" in complaint
    assert AppendTime(admitted=frozenset({2})).complaint(ahead, NOW) is not None
    assert AppendTime(admitted=frozenset({3})).complaint(ahead, NOW) is None
    assert AppendTime().complaint(ahead, NOW + 1) is None  # our clock was wrong, and has been set


def test_a_time_that_the_writer_chose_is_not_applied_whatever_an_operator_says() -> None:
    complaint = AppendTime(admitted=frozenset({3})).complaint(record(timestamp_type=0), NOW)
    assert complaint is not None
    assert "LogAppendTime" in complaint


def test_in_test_time_any_time_will_do() -> None:
    assert AppendTime(test_time=True).complaint(record(NOW + 10**12, timestamp_type=0), NOW) is None


def test_nothing_of_a_record_is_in_a_complaint() -> None:
    for complaint in (
        AppendTime().complaint(record(NOW * 2), NOW),
        AppendTime().complaint(record(timestamp_type=0), 0),
    ):
        assert complaint is not None
        assert "secret" not in complaint
        assert "words" not in complaint
