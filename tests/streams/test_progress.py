"""Nothing is committed past a record that is under way, in whatever order records end."""

from __future__ import annotations

from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from turngate.streams.progress import Progress

HERE, THERE = TopicPartition("memory-writes", 0), TopicPartition("memory-writes", 1)


@given(st.integers(0, 12), st.data())
def test_what_is_committed_is_done(count: int, data: st.DataObject) -> None:
    offsets = list(range(0, 3 * count, 3))  # gaps, as a broker's control records leave
    progress: Progress[TopicPartition] = Progress()
    for offset in offsets:
        progress.begin(HERE, offset)
    under_way = set(offsets)
    for offset in data.draw(st.permutations(offsets)):
        progress.end(HERE, offset)
        under_way.discard(offset)
        position = progress.take().get(HERE, 0)
        assert all(left >= position for left in under_way)
        if not under_way:
            assert position == offsets[-1] + 1
        assert progress.take() == {}


def test_partitions_do_not_wait_for_one_another() -> None:
    progress: Progress[TopicPartition] = Progress()
    progress.begin(HERE, 0)
    progress.begin(THERE, 5)
    progress.end(THERE, 5)
    assert progress.take() == {THERE: 6}


def test_of_a_partition_that_is_lost_nothing_is_committed() -> None:
    progress: Progress[TopicPartition] = Progress()
    progress.begin(HERE, 0)
    progress.begin(HERE, 1)
    progress.end(HERE, 0)
    progress.drop(HERE)
    progress.end(HERE, 1)
    assert progress.take() == {}
    progress.begin(HERE, 0)  # it came back
    progress.end(HERE, 0)
    assert progress.take() == {HERE: 1}
