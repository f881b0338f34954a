"""The embedded runtime: what is applied when, what a restart leaves, and what comes of a failure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.chain import Chain
from tests.streams.world import (
    CODEC,
    EPOCH,
    ROOMS,
    Input,
    a_delivered_turn,
    draft,
    inputs,
    listing,
    message,
    policy,
    tick,
)
from turngate.processors.engine import Engine
from turngate.processors.errors import StateVersionError
from turngate.schemas.catalog import APPLIED, INPUT_TOPICS
from turngate.schemas.outputs import StretchApplied
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.local_runtime import Runtime
from turngate.streams.log import Commit, LogError, Message

BOTH = pytest.mark.parametrize("restore", [Chain.restore, Engine.restore])
Restore = Callable[..., Chain | Engine]


def in_any_order(restore: Restore) -> Restore:
    """A log may give a checkpoint's entries in any order, and a compacted topic does."""

    def shuffled(entries: Iterable[tuple[bytes, bytes]], version: str | None) -> Chain | Engine:
        return restore(sorted(entries, key=lambda entry: hashlib.sha256(entry[0]).digest()), version)

    return shuffled


def assert_turns_were_delivered(restore: Restore, seen: Counter[str]) -> None:
    """What never delivers would hold trivially: an eighth of all verdicts lets a turn out."""
    if restore == Engine.restore:
        assert 8 * seen["outbound"] > seen["turn-verdicts"] > 10


def runtime(log: LocalLog) -> Runtime[Chain]:
    return Runtime(log, Chain.restore)


def append(log: LocalLog, given: Sequence[Input]) -> None:
    log.append_many(Append(i.topic, i.key, i.value, i.timestamp, headers=i.headers) for i in given)


def feed(run: Runtime[Any], given: Sequence[Input]) -> list[Message]:
    out = []
    for i in given:
        out += run.feed(i.topic, i.key, i.value, i.timestamp, i.headers)
    return out


def held(log: LocalLog) -> list[Message]:
    """Every output on the log."""
    return [m for t in log.topics() if t not in INPUT_TOPICS for m in log.scan(t)]


def but_for_stretches(outputs: Sequence[Message]) -> list[tuple]:
    return [(m.topic, m.key, m.value, m.headers) for m in outputs if m.topic != APPLIED]


def stretches(outputs: Sequence[Message]) -> list[StretchApplied]:
    return [CODEC.decode(m.value) for m in outputs if m.topic == APPLIED]


def test_a_step_applies_everything_there_is_and_nothing_twice() -> None:
    with LocalLog() as log:
        run = runtime(log)
        assert run.step() == []
        append(log, a_delivered_turn())
        outputs = run.step()
        assert [m.topic for m in outputs][-2:] == ["turn-verdicts", APPLIED]
        assert held(log) == sorted(outputs, key=lambda m: (log.topics().index(m.topic), m.offset))
        assert run.step() == []
        append(log, [tick(9000)])
        assert [p.topic for p in stretches(run.step())[0].to] == ["ticks"]


def test_a_draft_is_decided_after_everything_that_was_acknowledged_before_the_step() -> None:
    """R-RUN-2: even what was written, or stamped, after the draft."""
    with LocalLog() as log:
        run = runtime(log)
        append(log, [draft(1, ROOMS[0], "t1", ()), policy(2), message(9000, ROOMS[0], 1), listing(5000, ROOMS[0], ())])
        run.step()
        assert [topic for topic, _ in run.engine.applied] == [
            "policies",
            "membership-refreshes",
            "observed-messages",
            "turn-drafts",
        ]


def test_fed_records_are_applied_in_the_order_in_which_they_came() -> None:
    given = [draft(1, ROOMS[0], "t1", ()), policy(2), draft(3, ROOMS[0], "t2", ()), message(3, ROOMS[0], 1), tick(2)]
    with LocalLog() as log:
        run = runtime(log)
        assert feed(run, given) == []
        assert log.topics() == []  # nothing is written before it is acknowledged
        outputs = run.flush()
        assert run.engine.applied == [(i.topic, n) for i, n in zip(given, [0, 0, 1, 0, 0], strict=True)]
        # Of five records, two pairs lie in the order of one stretch: policies before drafts.
        assert [[p.topic for p in s.to] for s in stretches(outputs)] == [
            ["turn-drafts"],
            ["turn-drafts", "policies"],
            ["observed-messages"],
            ["ticks"],
        ]


@BOTH
def test_feeding_is_the_same_as_waiting_for_each_record(restore: Restore) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=25, deadline=None)
    @given(given=inputs(max_size=20))
    def holds(given: list[Input]) -> None:
        with LocalLog() as one_by_one, LocalLog() as together:
            run, other = Runtime(one_by_one, restore), Runtime(together, restore)
            waited = []
            for i in given:
                append(one_by_one, [i])
                waited += run.step()
            fed = feed(other, given) + other.flush()
            assert but_for_stretches(fed) == but_for_stretches(waited)
            assert other.engine.state.digest() == run.engine.state.digest()
            assert one_by_one.positions(0) == together.positions(0)
            assert dict(together.checkpoint(0).entries) == dict(other.engine.state.entries())
            seen.update(m.topic for m in waited)

    holds()
    assert_turns_were_delivered(restore, seen)


def test_what_is_on_the_log_comes_before_what_is_fed() -> None:
    with LocalLog() as log:
        run = runtime(log)
        run.feed("ticks", b"0", tick(1).value, EPOCH)
        append(log, [message(2, ROOMS[0], 1)])
        run.flush()
        assert run.engine.applied == [("observed-messages", 0), ("ticks", 0)]


def test_only_inputs_can_be_fed() -> None:
    with LocalLog() as log, pytest.raises(LogError, match="outbound: this is no input topic"):
        runtime(log).feed("outbound", b"acme", b"", EPOCH)


def test_much_that_waits_is_applied_in_bounded_pieces_with_the_drafts_at_the_end() -> None:
    given = [message(n, ROOMS[0], n) for n in range(2500)] + [tick(n) for n in range(300)]
    given.insert(0, draft(0, ROOMS[0], "t1", ()))
    with LocalLog() as log:
        run = runtime(log)
        append(log, given)
        pieces = [stretches(outputs)[0] for outputs in run.steps()]
        assert [sum(p.offset for p in s.to) - sum(p.offset for p in s.from_) for s in pieces] == [1000, 1000, 801]
        assert [[p.topic for p in s.to] for s in pieces][2] == ["observed-messages", "turn-drafts"]
        assert run.engine.applied[-1] == ("turn-drafts", 0)


@BOTH
def test_a_restart_anywhere_leaves_the_state_as_if_it_had_not_been(restore: Restore) -> None:
    """R-RUN-4: cut at random, with a new runtime from the checkpoint after each cut, in whatever order entries come."""
    seen: Counter[str] = Counter()

    @settings(max_examples=25, deadline=None)
    @given(given=inputs(max_size=20), cuts=st.integers(0, 2**35 - 1))
    def holds(given: list[Input], cuts: int) -> None:
        with LocalLog() as log, LocalLog() as other:
            run, restarted = Runtime(log, restore), Runtime(other, restore)
            outputs, others = [], []
            for n, i in enumerate(given):
                append(log, [i])
                append(other, [i])
                outputs += run.step()
                if cuts >> n & 1:
                    restarted = Runtime(other, in_any_order(restore))
                others += restarted.step()
            assert outputs == others
            assert Runtime(other, restore).engine.state.digest() == run.engine.state.digest()
            assert dict(other.checkpoint(0).entries) == dict(run.engine.state.entries())
            seen.update(m.topic for m in outputs)

    holds()
    assert_turns_were_delivered(restore, seen)


@pytest.mark.parametrize("fail_at", [1, 2, 3, 4])
@pytest.mark.parametrize("way", ["step", "feed"])
def test_after_a_failure_the_runtime_is_where_the_log_is(fail_at: int, way: str, tmp_path: Path) -> None:
    given = a_delivered_turn()
    with LocalLog(tmp_path / "test.log") as log, LocalLog() as reference:
        run = runtime(log)
        feed(run, [tick(0)])
        run.flush()
        before = run.engine.state.digest(), held(log)
        run.engine.applied.clear()
        run.engine.fail_at = fail_at
        if way == "step":
            append(log, given)
        else:
            feed(run, given)
        with pytest.raises(MemoryError):
            run.flush()
        assert (run.engine.state.digest(), held(log)) == before
        # It goes on from there: what was on the log is still there, what was fed is not and can be fed again.
        if way == "feed":
            assert [t for t in log.topics() if t in INPUT_TOPICS] == ["ticks"]
            feed(run, given)
        outputs = run.flush()
        again = runtime(reference)
        feed(again, [tick(0)])
        again.flush()
        append(reference, given)
        assert but_for_stretches(outputs) == but_for_stretches(again.step())
        assert run.engine.state.digest() == again.engine.state.digest()


def test_a_step_that_is_taken_back_with_a_larger_transaction_is_noticed() -> None:
    with LocalLog() as log:
        run = runtime(log)
        append(log, a_delivered_turn())

        def take_back() -> None:
            with log.transaction():
                run.step()
                raise KeyError("a failure of the caller's own")

        with pytest.raises(KeyError):
            take_back()
        assert held(log) == []
        assert run.engine.applied == []
        assert len(but_for_stretches(run.step())) == 4


def test_two_runtimes_of_one_partition_apply_nothing_twice() -> None:
    with LocalLog() as log:
        one, other = runtime(log), runtime(log)
        append(log, a_delivered_turn())
        outputs = one.step()
        assert other.step() == []
        assert other.engine.state.digest() == one.engine.state.digest()
        assert len(held(log)) == len(outputs)


def test_a_step_that_is_overtaken_applies_nothing_twice() -> None:
    with LocalLog() as log:
        run = runtime(log)
        append(log, [message(n, ROOMS[0], n) for n in range(1500)])
        steps = run.steps()
        outputs = next(steps)
        outputs += runtime(log).step()
        with pytest.raises(LogError, match="its log was changed in the middle of this"):
            next(steps)
        assert run.step() == []
        assert len(held(log)) == len(outputs) == 1500 + 2


def test_state_of_a_newer_engine_is_refused_and_left_alone() -> None:
    with LocalLog() as log:
        log.commit(0, [Commit([], [(b"k", b"v")], {"ticks": 1}, "999999")], EPOCH)
        with pytest.raises(StateVersionError, match="999999"):
            LocalRuntime(log)
        assert list(log.checkpoint(0).entries) == [(b"k", b"v")]


def test_partitions_are_apart() -> None:
    with LocalLog(partitions=2) as log:
        runs = [Runtime(log, Chain.restore, partition=p) for p in (0, 1)]
        log.append("ticks", b"1", tick(5, partition=1).value, partition=1, timestamp=EPOCH)
        assert runs[0].step() == []
        outputs = runs[1].step()
        assert {m.partition for m in outputs} == {1}
        assert stretches(outputs)[0].tenant == "1"
        assert runs[0].engine.applied == []
