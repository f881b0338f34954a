"""When a partition applies what: the barrier and its deadline, one commit at a time, catching up (R-RUN-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka.errors import KafkaConnectionError, ProducerFenced

from tests.kafka.chained import Chained
from tests.kafka.cluster import until
from tests.streams.world import CODEC, ROOMS, Input, draft, listing, message, policy, tick
from turngate.schemas.catalog import APPLIED, DRAFTS, INPUT_TOPICS
from turngate.schemas.outputs import StretchApplied
from turngate.streams.fold import Fold
from turngate.streams.kafka.intake import SLICE
from turngate.streams.kafka.partition import Held, Hooks, Partition
from turngate.streams.log import Commit, Message

LISTINGS, TALK = "membership-refreshes", "observed-messages"
DRAFT = draft(1, ROOMS[0], "t1", ())
LISTING = listing(2, ROOMS[0], ("slack:T1/UALEX",))


class Written:
    """A broker's side of commits: they wait for `gate`, and fail with `error` if that is set."""

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.begun = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def write(self, commit: Commit) -> None:
        self.begun += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.commits.append(commit)

    async def still_owns(self) -> bool:
        return True

    async def stop(self) -> None:
        return None

    @property
    def stretches(self) -> list[StretchApplied]:
        records = [CODEC.decode(o.value) for c in self.commits for o in c.outputs if o.topic == APPLIED]
        return [r for r in records if isinstance(r, StretchApplied)]


class Watermarks:
    """What a broker would say when it is asked, or an error; it says nothing before `answer` is set."""

    def __init__(self) -> None:
        self.ends = {topic: 0 for topic in INPUT_TOPICS if topic != DRAFTS}
        self.asked = 0
        self.error: Exception | None = None
        self.answer = asyncio.Event()
        self.answer.set()

    async def ask(self, partition: int) -> dict[str, int]:
        self.asked += 1
        await self.answer.wait()
        if self.error is not None:
            raise self.error
        return dict(self.ends)


class Case:
    """A partition that runs, and what it is given."""

    def __init__(self, hold: int, marks: dict[str, int] | None) -> None:
        self.written, self.watermarks, self.engine = Written(), Watermarks(), Chained()
        self.engine.hold = hold
        held = Held(Fold(0, self.engine, CODEC), self.engine, self.written)
        hooks = Hooks(self.watermarks.ask, lambda: None, lambda: None)
        self.partition = Partition(0, held, marks or dict(self.watermarks.ends), hooks)
        self.run = asyncio.create_task(self.partition.run())

    def hand(self, *given: Input) -> None:
        for one in given:
            at = self.partition.intake.at[one.topic]
            record = Message(one.topic, 0, at, one.timestamp, one.key, one.value)
            assert self.partition.hand(one.topic, at, [record], at + 1) is None

    async def applied(self, topic: str, position: int) -> None:
        async def there() -> bool:
            if self.run.done():
                self.run.result()
            return self.partition.committed[topic] >= position

        await until(there, 10)


@asynccontextmanager
async def case(hold: int = 5_000, marks: dict[str, int] | None = None) -> AsyncIterator[Case]:
    made = Case(hold, marks)
    yield made
    made.partition.close()
    await made.run


async def test_a_draft_waits_for_what_was_acknowledged_before_it_was_read() -> None:
    async with case() as it:
        it.watermarks.ends[LISTINGS] = 2
        it.hand(DRAFT, LISTING)
        await until(lambda: _true(it.watermarks.asked), 5)
        it.hand(tick(3), tick(4))
        await it.applied("ticks", 0)
        assert it.partition.committed[DRAFTS] == 0
        it.hand(LISTING)
        await it.applied(DRAFTS, 1)
        assert it.engine.applied.index((LISTINGS, 1)) < it.engine.applied.index((DRAFTS, 0))
        assert not any(s.late for s in it.written.stretches)


async def test_control_records_count_towards_the_barrier() -> None:
    async with case() as it:
        it.watermarks.ends[LISTINGS] = 3
        it.hand(DRAFT)
        assert it.partition.hand(LISTINGS, 0, [], 3) is None
        await it.applied(DRAFTS, 1)


async def test_a_draft_read_after_the_question_gets_the_next_barrier() -> None:
    async with case() as it:
        it.watermarks.ends[LISTINGS] = 1
        it.hand(DRAFT)
        await until(lambda: _true(it.watermarks.asked), 5)
        it.watermarks.ends[LISTINGS] = 2
        it.hand(DRAFT, LISTING)
        await it.applied(DRAFTS, 1)
        assert it.partition.committed[DRAFTS] == 1
        it.hand(LISTING)
        await it.applied(DRAFTS, 2)
        assert it.watermarks.asked == 2


async def test_a_barrier_that_is_not_reached_within_the_hold_drops_the_drafts_and_the_stretch_says_so() -> None:
    async with case(hold=100) as it:
        it.watermarks.ends[LISTINGS] = 2
        it.hand(DRAFT, DRAFT, LISTING)
        await it.applied(DRAFTS, 2)
        (late,) = [s for s in it.written.stretches if s.late]
        assert [p.offset for p in late.late] == [0, 1]
        assert it.partition.late == 1
        it.watermarks.ends[LISTINGS] = 1
        it.hand(DRAFT)  # its twin, whose barrier is reached
        await it.applied(DRAFTS, 3)
        assert len([s for s in it.written.stretches if s.late]) == 1


@pytest.mark.parametrize("fault", ["silent", "error"])
async def test_a_broker_that_does_not_say_drops_the_drafts_too(fault: str) -> None:
    async with case(hold=100) as it:
        if fault == "silent":
            it.watermarks.answer.clear()
        it.watermarks.error = KafkaConnectionError() if fault == "error" else None
        it.hand(DRAFT)
        await it.applied(DRAFTS, 1)
        assert len(it.written.stretches[-1].late) == 1


async def test_an_answer_that_comes_after_the_deadline_makes_no_draft_timely_again() -> None:
    async with case(hold=100) as it:
        it.written.gate.clear()
        it.hand(policy(0))
        await until(lambda: _true(it.written.begun), 5)
        it.watermarks.answer.clear()
        it.watermarks.ends[LISTINGS] = 1  # the draft is behind a record that has not come
        it.hand(DRAFT)
        began = asyncio.get_running_loop().time()
        await until(lambda: _true(asyncio.get_running_loop().time() > began + 0.2), 5)
        it.watermarks.answer.set()
        it.written.gate.set()
        await it.applied(DRAFTS, 1)
        assert len(it.written.stretches[-1].late) == 1


async def test_one_commit_at_a_time_and_a_full_slice_is_folded_meanwhile() -> None:
    async with case() as it:
        it.written.gate.clear()
        it.hand(policy(0))
        await until(lambda: _true(it.written.begun), 5)
        it.hand(*(message(n, ROOMS[0], n) for n in range(SLICE)))
        await until(lambda: _true(len(it.engine.applied) == 1 + SLICE), 5)
        it.hand(*(message(n, ROOMS[0], n) for n in range(SLICE)))
        assert it.written.begun == 1
        it.written.gate.set()
        await it.applied(TALK, 2 * SLICE)
        assert len(it.written.commits) == it.written.begun == 3


async def test_records_that_come_while_a_commit_is_written_share_the_next_stretch() -> None:
    async with case() as it:
        it.written.gate.clear()
        it.hand(policy(0))
        await until(lambda: _true(it.written.begun), 5)
        for n in range(20):
            it.hand(message(n, ROOMS[0], n))
            await asyncio.sleep(0)
        it.written.gate.set()
        await it.applied(TALK, 20)
        assert len(it.written.commits) == 2


async def test_catching_up_merges_by_time_and_the_drafts_come_last_without_a_deadline() -> None:
    marks = dict.fromkeys((t for t in INPUT_TOPICS if t != DRAFTS), 0) | {TALK: 600, "ticks": 600}
    async with case(hold=300, marks=marks) as it:
        it.watermarks.ends |= marks
        it.hand(DRAFT)
        for start in range(0, 600, 100):
            it.hand(*(message(10 * n, ROOMS[0], n) for n in range(start, start + 100)))
            await asyncio.sleep(0.01)
            it.hand(*(tick(10 * n + 5) for n in range(start, start + 100)))
        await it.applied(DRAFTS, 1)
        others = [(topic, offset) for topic, offset in it.engine.applied if topic != DRAFTS]
        assert others == [(topic, n) for n in range(600) for topic in (TALK, "ticks")]
        assert it.engine.applied[-1] == (DRAFTS, 0)
        assert it.partition.late == 0


async def test_catching_up_does_not_wait_for_ever_for_a_topic_that_is_held_up() -> None:
    marks = dict.fromkeys((t for t in INPUT_TOPICS if t != DRAFTS), 0) | {TALK: 1, LISTINGS: 5}
    async with case(hold=100, marks=marks) as it:
        it.watermarks.ends |= marks
        it.hand(DRAFT, message(0, ROOMS[0], 0))
        await it.applied(TALK, 1)
        await it.applied(DRAFTS, 1)
        assert it.partition.late == 1  # and never decided on less


async def test_whoever_knows_what_is_to_come_has_it_applied_in_order_and_at_once() -> None:
    async with case() as it:
        it.hand(policy(0))
        await it.applied("policies", 1)
        it.watermarks.ends |= {TALK: 1, LISTINGS: 1}
        it.partition.catch_up({TALK: 1, LISTINGS: 1, DRAFTS: 1})
        it.hand(message(2, ROOMS[0], 0))
        it.hand(DRAFT)
        await asyncio.sleep(0.05)  # longer than a stretch waits for more
        assert it.engine.applied == [("policies", 0)]
        it.hand(listing(1, ROOMS[0], ("slack:T1/UALEX",)))
        await it.applied(DRAFTS, 1)
        assert it.engine.applied[1:] == [(LISTINGS, 0), (TALK, 0), (DRAFTS, 0)]
        assert len(it.written.commits) == 2


async def test_a_lost_producer_ends_the_work_and_nothing_more_is_applied() -> None:
    it = Case(5_000, None)
    it.written.error = ProducerFenced()
    it.hand(policy(0))
    with pytest.raises(ProducerFenced):
        await it.run
    assert it.partition.committed["policies"] == 0


async def test_a_halted_partition_applies_nothing_and_can_be_closed() -> None:
    async with case() as it:
        it.partition.halt("its clock is wrong")
        it.hand(policy(0))
        it.written.gate.clear()
        await asyncio.sleep(0)
    assert it.engine.applied == []


async def test_closing_waits_for_the_commit_under_way() -> None:
    it = Case(5_000, None)
    it.written.gate.clear()
    it.hand(policy(0))
    await until(lambda: _true(it.written.begun), 5)
    it.partition.close()
    it.hand(tick(1))
    it.written.gate.set()
    await it.run
    assert it.partition.committed["policies"] == 1
    assert it.partition.committed == it.partition.fold.positions


async def _true(value: object) -> bool:
    return bool(value)
