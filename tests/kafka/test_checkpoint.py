"""How a state lies on the state topic: entries too large for a record in parts, and nothing read that is not whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.errors import StateVersionError
from turngate.streams.kafka.checkpoint import POSITIONS_KEY, CheckpointError, Gathered, Layout
from turngate.streams.log import Commit, Headers

PART = 4


class Topic:
    """A topic of which a part is compacted: there, only the newest record of each key is left."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None, Headers]] = []

    def write(self, layout: Layout, entries: list[tuple[bytes, bytes | None]], at: int = 0, engine: str = "1") -> None:
        for key, value, headers in layout.records(Commit([], entries, {"ticks": at}, engine)):
            assert key is not None
            assert value is None or key == POSITIONS_KEY or len(value) <= PART
            self.records.append((key, value, headers))

    def compact(self, upto: int) -> None:
        """Of the first so many records, only those stay that nothing in the topic takes the place of."""
        newest = {key: number for number, (key, _, _) in enumerate(self.records)}
        self.records = [r for n, r in enumerate(self.records) if n >= upto or (newest[r[0]] == n and r[1] is not None)]

    def keys(self) -> set[bytes]:
        self.compact(len(self.records))
        return {key for key, _, _ in self.records}


class Saved:
    """What is read of a topic."""

    def __init__(self, topic: Topic, partition: int = 0) -> None:
        self.engines: list[str] = []
        gathered = Gathered(partition, self.engines.append)
        changes = [gathered.take(*record) for record in topic.records]
        self.entries = dict(change for change in [*changes, *gathered.rest()] if change is not None)
        self.entries = {key: value for key, value in self.entries.items() if value is not None}
        self.positions, self.parts = gathered.positions, gathered.parts


def test_entries_and_positions_come_back() -> None:
    topic = Topic()
    topic.write(Layout(part_bytes=PART), [(b"a", b"1"), (b"b", b""), (b"c", b"123456789")], at=7)
    saved = Saved(topic)
    assert saved.positions == {"ticks": 7}
    assert saved.entries == {b"a": b"1", b"b": b"", b"c": b"123456789"}


def test_every_engine_that_wrote_is_looked_at_before_what_it_wrote_is_given_on() -> None:
    topic = Topic()
    for engine in ("1", "12", "1"):
        topic.write(Layout(), [(b"a", engine.encode())], engine=engine)
    assert Saved(topic).engines == ["1", "12"]

    def refuse(engine: str) -> None:
        if engine == "12":
            raise StateVersionError(engine)

    gathered = Gathered(0, refuse)
    assert gathered.take(*topic.records[0]) == (b"a", b"1")
    gathered.take(*topic.records[1])
    with pytest.raises(StateVersionError):
        gathered.take(*topic.records[2])


def test_an_entry_that_shrinks_leaves_no_stale_part() -> None:
    topic, layout = Topic(), Layout(part_bytes=PART)
    topic.write(layout, [(b"a", b"x" * 17)])
    assert len(topic.keys()) == 5 + 1
    topic.write(layout, [(b"a", b"y" * 5)])
    assert Saved(topic).entries == {b"a": b"y" * 5}
    topic.write(layout, [(b"a", b"z")])
    assert len(topic.keys()) == 1 + 1
    topic.write(layout, [(b"a", b"w" * 9)])
    topic.write(layout, [(b"a", None)])
    assert topic.keys() == {POSITIONS_KEY}


def test_parts_are_remembered_over_a_restart() -> None:
    topic = Topic()
    topic.write(Layout(part_bytes=PART), [(b"a", b"x" * 17)])
    topic.write(Layout(Saved(topic).parts, PART), [(b"a", b"y")])
    assert topic.keys() == {POSITIONS_KEY, b"ea"}


def test_an_empty_topic_is_an_empty_state() -> None:
    saved = Saved(Topic())
    assert (saved.positions, saved.engines, saved.entries) == ({}, [], {})


@pytest.mark.parametrize("damage", ["part missing", "part of another version", "part too many", "no positions"])
def test_what_is_not_whole_is_refused(damage: str) -> None:
    topic = Topic()
    topic.write(Layout(part_bytes=PART), [(b"a", b"x" * 9)])
    _, part, *_ = topic.records
    assert part[0].startswith(b"x")
    if damage == "part missing":
        topic.records.remove(part)
    elif damage == "part of another version":
        topic.records.append((part[0], b"zzzz", part[2]))
    elif damage == "part too many":
        topic.records.append((b"x\x00\x07a", b"zzzz", ()))
    else:
        topic.records.pop()
    with pytest.raises(CheckpointError, match=r"turngate-state\[3\]"):
        Saved(topic, 3)


@given(
    st.lists(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"xb"]), st.none() | st.binary(max_size=14)))),
    st.floats(0, 1),
)
def test_after_any_commits_restarts_and_compactions_the_state_is_the_one_written(
    commits: list[list[tuple[bytes, bytes | None]]], share: float
) -> None:
    topic, layout, state = Topic(), Layout(part_bytes=PART), dict[bytes, bytes]()
    for number, entries in enumerate(commits):
        topic.write(layout, entries, at=number)
        for key, value in entries:
            state.pop(key, None)
            if value is not None:
                state[key] = value
        saved = Saved(topic)
        assert saved.entries == state
        assert saved.positions == {"ticks": number}
        if number % 2:
            layout = Layout(saved.parts, PART)
            topic.compact(int(share * len(topic.records)))
