"""How a state lies on the state topic: entries too large for a record in parts, and nothing read that is not whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.streams.kafka.checkpoint import POSITIONS_KEY, CheckpointError, Layout, join
from turngate.streams.log import Commit, Headers

PART = 4


class Topic:
    """A compacted topic: the newest record of each key."""

    def __init__(self) -> None:
        self.newest: dict[bytes, tuple[bytes, Headers]] = {}

    def write(self, layout: Layout, entries: list[tuple[bytes, bytes | None]], at: int = 0, engine: str = "1") -> None:
        for key, value, headers in layout.records(Commit([], entries, {"ticks": at}, engine)):
            assert key is not None
            assert value is None or key == POSITIONS_KEY or len(value) <= PART
            self.newest.pop(key, None)
            if value is not None:
                self.newest[key] = value, headers


def test_entries_and_positions_come_back_with_the_engine_that_wrote_them() -> None:
    topic = Topic()
    topic.write(Layout(part_bytes=PART), [(b"a", b"1"), (b"b", b""), (b"c", b"123456789")], at=7, engine="12")
    saved = join(dict(topic.newest), 0)
    assert (saved.positions, saved.version) == ({"ticks": 7}, "12")
    assert dict(saved.drain()) == {b"a": b"1", b"b": b"", b"c": b"123456789"}
    assert saved.entries == {}


def test_an_entry_that_shrinks_leaves_no_stale_part() -> None:
    topic, layout = Topic(), Layout(part_bytes=PART)
    topic.write(layout, [(b"a", b"x" * 17)])
    assert len(topic.newest) == 5 + 1
    topic.write(layout, [(b"a", b"y" * 5)])
    assert join(dict(topic.newest), 0).entries == {b"a": b"y" * 5}
    topic.write(layout, [(b"a", b"z")])
    assert len(topic.newest) == 1 + 1
    topic.write(layout, [(b"a", b"w" * 9)])
    topic.write(layout, [(b"a", None)])
    assert set(topic.newest) == {POSITIONS_KEY}


def test_parts_are_remembered_over_a_restart() -> None:
    topic = Topic()
    topic.write(Layout(part_bytes=PART), [(b"a", b"x" * 17)])
    topic.write(Layout(join(dict(topic.newest), 0).parts, PART), [(b"a", b"y")])
    assert set(topic.newest) == {POSITIONS_KEY, b"ea"}


def test_an_empty_topic_is_an_empty_state() -> None:
    saved = join({}, 0)
    assert (saved.positions, saved.version, saved.entries) == ({}, None, {})


@pytest.mark.parametrize("damage", ["part missing", "part of another version", "part too many", "no engine named"])
def test_what_is_not_whole_is_refused(damage: str) -> None:
    topic = Topic()
    topic.write(Layout(part_bytes=PART), [(b"a", b"x" * 9)])
    further = [key for key in topic.newest if key.startswith(b"x")]
    if damage == "part missing":
        del topic.newest[further[0]]
    elif damage == "part of another version":
        topic.newest[further[0]] = b"zzzz", topic.newest[further[0]][1]
    elif damage == "part too many":
        topic.newest[b"x\x00\x07a"] = b"zzzz", ()
    else:
        del topic.newest[POSITIONS_KEY]
    with pytest.raises(CheckpointError, match=r"turngate-state\[3\]"):
        join(dict(topic.newest), 3)


@given(st.lists(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"xb"]), st.none() | st.binary(max_size=14)))))
def test_after_any_commits_and_restarts_the_state_is_the_one_written(
    commits: list[list[tuple[bytes, bytes | None]]],
) -> None:
    topic, layout, state = Topic(), Layout(part_bytes=PART), dict[bytes, bytes]()
    for number, entries in enumerate(commits):
        topic.write(layout, entries, at=number)
        for key, value in entries:
            state.pop(key, None)
            if value is not None:
                state[key] = value
        saved = join(dict(topic.newest), 0)
        assert saved.entries == state
        if number % 2:
            layout = Layout(saved.parts, PART)
