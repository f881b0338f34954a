"""Which fetched records are taken (a fetch can straddle a rebalance), and in which order they are applied (R-RUN-2)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS
from turngate.streams.kafka.intake import ROOM_RECORDS, SLICE, Intake
from turngate.streams.log import Message

ROOMS, TALK = "membership-refreshes", "observed-messages"


def records(topic: str, offsets: Iterable[int], every: int = 1) -> list[Message]:
    return [Message(topic, 0, offset, offset * every, b"acme", b"x") for offset in offsets]


def intake(at: int = 0) -> Intake:
    return Intake(dict.fromkeys(INPUT_TOPICS, at))


def offsets(messages: Iterable[Message]) -> list[tuple[str, int]]:
    return [(m.topic, m.offset) for m in messages]


def test_what_begins_where_the_partition_stands_is_taken() -> None:
    it = intake()
    assert it.accept(TALK, 0, records(TALK, range(3)), 3) is None
    assert it.accept(TALK, 3, records(TALK, [3, 5]), 7) is None  # 4 and 6 were aborted, or are control records
    assert it.at[TALK] == 7
    assert offsets(it.take(10)) == [(TALK, n) for n in (0, 1, 2, 3, 5)]


def test_a_fetch_of_the_new_assignment_from_the_consumers_own_start_is_not_taken_twice() -> None:
    """The rebalance fell between seek and fetch: the consumer starts at its own beginning again."""
    it = intake(40)
    assert it.accept(TALK, 0, records(TALK, range(10)), 10) == 40
    assert it.accept(TALK, 40, records(TALK, range(10)), 10) == 40  # the note of before is the one of after the seek
    assert it.accept(TALK, 40, records(TALK, range(35, 45)), 45) == 40
    assert it.others == 0
    assert it.at[TALK] == 40


def test_a_fetch_from_before_a_seek_back_leaves_no_gap() -> None:
    it = intake(40)
    assert it.accept(TALK, 55, records(TALK, range(55, 60)), 60) == 40
    assert it.accept(TALK, None, records(TALK, range(55, 60)), 60) == 40
    assert it.accept(TALK, 40, records(TALK, range(40, 60)), 60) is None
    assert offsets(it.take(100)) == [(TALK, n) for n in range(40, 60)]


def test_a_hand_over_without_records_that_ends_where_the_partition_stands_needs_no_seek() -> None:
    it = intake(40)
    assert it.accept(TALK, 12, [], 40) is None
    assert it.accept(TALK, 12, [], 12) == 40
    assert it.accept(TALK, 40, [], 44) is None  # control records
    assert it.at[TALK] == 44


@given(st.lists(st.tuples(st.none() | st.integers(0, 30), st.integers(0, 30)), max_size=20))
def test_whatever_the_consumer_hands_over_each_record_is_taken_once_and_in_order(
    fetches: list[tuple[int | None, int]],
) -> None:
    """A consumer that jumps about, as rebalances and reloads make it: told where to seek, it comes to the end."""
    it, log, at = intake(), records(TALK, range(30)), 0
    for jump, count in [*fetches, (None, 30), (None, 30)]:
        at = at if jump is None else jump
        end = min(30, at + count)
        back = it.accept(TALK, at, log[at:end], end)
        at = end if back is None else back
    assert offsets(it.take(100)) == offsets(log)


def test_a_stretch_is_merged_by_time_then_by_the_contracts_order_of_topics() -> None:
    it = intake()
    it.accept(TALK, 0, records(TALK, range(3), every=10), 3)
    it.accept(ROOMS, 0, records(ROOMS, range(4), every=7), 4)
    assert offsets(it.take(100)) == [(ROOMS, 0), (TALK, 0), (ROOMS, 1), (TALK, 1), (ROOMS, 2), (TALK, 2), (ROOMS, 3)]


def test_nothing_from_beyond_the_barrier_is_in_a_stretch() -> None:
    it = intake()
    it.accept(TALK, 0, records(TALK, range(10)), 10)
    ends = dict.fromkeys(INPUT_TOPICS, 0) | {TALK: 6}
    assert it.reached(ends)
    assert offsets(it.take(100, upto=ends)) == [(TALK, n) for n in range(6)]
    assert it.positions()[TALK] == 6
    assert not it.has_before(ends)


def test_catching_up_a_record_waits_until_no_earlier_one_can_come() -> None:
    it = intake()
    marks = {topic: 0 for topic in INPUT_TOPICS if topic != DRAFTS} | {TALK: 5, ROOMS: 100}
    it.accept(TALK, 0, records(TALK, range(5)), 5)
    assert it.take(100, marks=marks) == []  # the other topic may hold earlier ones
    it.accept(ROOMS, 0, records(ROOMS, range(3)), 3)
    assert len(it.take(100, marks=marks)) == 5  # up to the other's last: after it an earlier one could come
    assert [(t, n) for t, n in it.positions().items() if n] == [(ROOMS, 3), (TALK, 2)]
    it.accept(ROOMS, 3, [], 100)  # nothing but control records up to the mark
    assert len(it.take(100, marks=marks)) == 3


def test_drafts_are_taken_apart_and_in_order() -> None:
    it = intake()
    it.accept(DRAFTS, 0, records(DRAFTS, range(4)), 4)
    assert it.others == 0
    assert it.take(100) == []
    assert offsets(it.take_drafts(3)) == [(DRAFTS, 0), (DRAFTS, 1), (DRAFTS, 2)]
    assert it.positions()[DRAFTS] == 3


@pytest.mark.parametrize(("count", "size"), [(ROOM_RECORDS, 1), (9, 1_000_000)])
def test_a_topic_has_room_for_so_many_records_and_bytes(count: int, size: int) -> None:
    it = intake()
    it.accept(TALK, 0, [Message(TALK, 0, n, n, b"acme", b"x" * size) for n in range(count)], count)
    assert not it.has_room(TALK)
    assert it.has_room(ROOMS)
    assert it.full
    it.take(SLICE)
    it.take(SLICE)
    assert it.has_room(TALK)
    assert not it.full
