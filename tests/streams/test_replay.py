"""A replay: recorded stretches applied again give the same bytes, whoever cut them, and whatever was late (R-RUN-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.chain import Chain
from tests.streams.world import CODEC, EPOCH, ROOMS, Input, a_delivered_turn, draft, inputs, message, tick
from turngate.processors.engine import Engine
from turngate.schemas.catalog import APPLIED, DRAFTS, INPUT_TOPICS
from turngate.schemas.outputs import StretchApplied
from turngate.streams.fold import Fold
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.local_runtime import Runtime
from turngate.streams.log import LogError, Outgoing, Stretch
from turngate.streams.verifying import Verifying

Restore = Callable[..., Chain | Engine]


@dataclass
class Recorded:
    """What a runtime left: its outputs in order, the stretches among them, and its state."""

    outputs: list[Outgoing]
    stretches: list[StretchApplied]
    digest: str


def holding(given: Sequence[Input], gaps: Sequence[int] = ()) -> LocalLog:
    """A log with the inputs only, with gaps before some of them as a broker's control records leave."""
    log = LocalLog()
    for n, i in enumerate(given):
        offset = log.end(i.topic, 0) + (gaps[n] if n < len(gaps) else 0)
        log.append(i.topic, i.key, i.value, timestamp=i.timestamp, headers=i.headers, offset=offset)
    return log


def carried(log: LocalLog, restore: Restore, data: st.DataObject) -> Recorded:
    """Apply a log in stretches that end at about one time on all topics, some of them late, as on a broker."""
    engine = restore([], None)
    fold = Fold(0, engine, CODEC)
    outputs: list[Outgoing] = []
    waiting = {topic: list(log.scan(topic)) for topic in INPUT_TOPICS if log.end(topic, 0)}
    until = EPOCH
    while any(waiting.values()):
        until += data.draw(st.sampled_from([20_000, 1, 1000, 7000, 10**9]))
        messages = []
        for topic, left in waiting.items():
            here = sum(m.timestamp <= until for m in left)
            here = min(len(left), here + data.draw(st.sampled_from([0, 0, 1])))
            messages += left[:here]
            waiting[topic] = left[here:]
        end = {m.topic: m.offset + 1 for m in messages}
        late = any(topic == DRAFTS for topic in end) and data.draw(st.sampled_from([False, False, False, True]))
        if end:
            outputs += fold.apply(Stretch({t: fold.positions[t] for t in end}, end, messages, late)).outputs
    stretches = [CODEC.decode(o.value) for o in outputs if o.topic == APPLIED]
    return Recorded(outputs, [s for s in stretches if isinstance(s, StretchApplied)], engine.state.digest())


@pytest.mark.parametrize("restore", [Chain.restore, Engine.restore])
def test_a_replay_of_any_stretches_gives_the_same_bytes(restore: Restore) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=40, deadline=None)
    @given(given=inputs(max_size=20), gaps=st.lists(st.sampled_from([0, 0, 0, 1, 3]), max_size=25), data=st.data())
    def holds(given: list[Input], gaps: list[int], data: st.DataObject) -> None:
        with holding(given, gaps) as original, holding(given, gaps) as copy:
            recorded = carried(original, restore, data)
            run = Runtime(copy, restore)
            replayed = list(run.replay(recorded.stretches))
            assert [Outgoing(m.topic, m.key, m.value, m.headers) for m in replayed] == recorded.outputs
            assert run.engine.state.digest() == recorded.digest
            assert Runtime(copy, restore).engine.state.digest() == recorded.digest
            for o in recorded.outputs:
                original.append(o.topic, o.key, o.value, timestamp=EPOCH, headers=o.headers)
            verifying = Verifying(original, restore, CODEC)
            assert [d for step in verifying.steps() for d in step.differences] == []
            assert verifying.decisions == len(recorded.outputs) - len(recorded.stretches)
            assert verifying.replay.engine.state.digest() == recorded.digest
            seen.update(o.topic for o in recorded.outputs)
            seen["late"] += sum(len(s.late) for s in recorded.stretches)

    holds()
    assert seen["late"] > 0
    if restore == Engine.restore:
        assert seen["outbound"] > 10  # what never delivers would hold trivially


@pytest.mark.parametrize("restore", [Chain.restore, Engine.restore])
@settings(max_examples=20, deadline=None)
@given(given=inputs(max_size=20), data=st.data())
def test_a_replay_may_be_interrupted_and_gone_on_with(
    restore: Restore, given: list[Input], data: st.DataObject
) -> None:
    with holding(given) as original, holding(given) as copy:
        recorded = carried(original, restore, data)
        cut = data.draw(st.integers(0, len(recorded.stretches)))
        replayed = list(Runtime(copy, restore).replay(recorded.stretches[:cut]))
        replayed += Runtime(copy, restore).replay(recorded.stretches[cut:])
        assert [Outgoing(m.topic, m.key, m.value, m.headers) for m in replayed] == recorded.outputs


def the_stretches(log: LocalLog) -> list[StretchApplied]:
    Runtime(log, Chain.restore).step()
    return [r for m in log.scan(APPLIED) if isinstance(r := CODEC.decode(m.value), StretchApplied)]


def test_a_replay_starts_where_the_log_stands() -> None:
    with holding(a_delivered_turn()) as log:
        stretches = the_stretches(log)
        with pytest.raises(LogError, match="the recorded stretch starts at 0, this log stands at 1"):
            list(Runtime(log, Chain.restore).replay(stretches))


def test_a_replay_is_of_its_own_partition() -> None:
    with holding([tick(1)]) as log, LocalLog(partitions=2) as other:
        stretches = the_stretches(log)
        with pytest.raises(LogError, match="a stretch of partition 0 cannot be replayed in 1"):
            list(Runtime(other, Chain.restore, partition=1).replay(stretches))


def test_drafts_that_were_dropped_must_be_those_on_the_log() -> None:
    with holding([draft(1, ROOMS[0], "t1", ()), message(2, ROOMS[0], 1)]) as log, LocalLog() as other:
        (stretch,) = the_stretches(log)
        late = stretch.model_copy(update={"late": (stretch.to[-1].model_copy(update={"offset": 5}),)})
        other.append_many(Append(m.topic, m.key, m.value, m.timestamp) for t in INPUT_TOPICS for m in log.scan(t))
        with pytest.raises(LogError, match="drops other drafts than this log holds"):
            list(Runtime(other, Chain.restore).replay([late]))
