"""Decisions are made again and held against the recorded ones: nothing that was changed, left out or added passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from tests.streams.history import history
from tests.streams.world import CODEC, EPOCH, READERS, ROOMS, Input, a_delivered_turn, an, message, policy, ref
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.catalog import APPLIED, DRAFTS, INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.digests import trace_digest
from turngate.schemas.outputs import DecisionTraced, StretchApplied, TurnAuthorized, TurnDecided, Verdict
from turngate.streams.archive import Archive
from turngate.streams.comparing import COMPARED, Difference
from turngate.streams.exporting import export
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import LogError, Message
from turngate.streams.recorded import Records
from turngate.streams.snapshots import newest, read_snapshot
from turngate.streams.verifying import Verifying

#: Drafts of the long history.
DRAFTS_LIVED = 10_000
RESTORE = partial(Engine.restore, keys=TEST_KEYS)
Change = Callable[[Message], Message | None]


def live(log: LocalLog, inputs: Iterable[Input], together: int = 1) -> LocalLog:
    """Inputs applied as they came, so many in a commit."""
    runtime, left = LocalRuntime(log, CODEC, keys=TEST_KEYS), iter(inputs)
    while some := list(islice(left, together)):
        log.append_many(Append(i.topic, i.key, i.value, i.timestamp, headers=i.headers) for i in some)
        runtime.step()
    return log


@pytest.fixture(scope="module")
def lived() -> Iterator[LocalLog]:
    """A short history, a few records in a stretch."""
    with LocalLog() as log:
        yield live(log, history(60), together=4)


def copy(log: LocalLog, change: Change = lambda m: m) -> LocalLog:
    """Another log with the same records at the same places, but for those that are changed or left out (None)."""
    made = LocalLog()
    for topic in (*INPUT_TOPICS, *OUTPUT_TOPICS):
        for one in filter(None, map(change, log.scan(topic))):
            made.append(topic, one.key, one.value, timestamp=one.timestamp, headers=one.headers, offset=one.offset)
    return made


def verified(records: Records, **more: int) -> tuple[Verifying, list[Difference]]:
    verifying = Verifying(records, RESTORE, CODEC, **more)
    return verifying, [difference for step in verifying.steps() for difference in step.differences]


def first(log: LocalLog, topic: str, wanted: Callable[[object], bool]) -> Message:
    return next(m for m in log.scan(topic) if wanted(CODEC.decode(m.value)))


def without(gone: Message) -> Change:
    return lambda m: None if (m.topic, m.offset) == (gone.topic, gone.offset) else m


def in_its_place(other: Message) -> Change:
    return lambda m: other if (m.topic, m.offset) == (other.topic, other.offset) else m


def test_a_long_history_is_decided_as_it_was() -> None:
    with LocalLog() as log:
        live(log, history(DRAFTS_LIVED), together=50)
        verifying, differences = verified(log)
        assert differences == []
        assert verifying.decisions == sum(log.end(topic, 0) for topic in COMPARED)
        assert verifying.replay.engine.state.digest() == LocalRuntime(log, CODEC).engine.state.digest()
        seen = Counter(type(CODEC.decode(m.value)).__name__ for topic in OUTPUT_TOPICS for m in log.scan(topic))
    assert seen["TurnDecided"] >= DRAFTS_LIVED
    assert seen["TurnAuthorized"] > DRAFTS_LIVED // 4
    assert seen["RevisionRecorded"] > DRAFTS_LIVED // 20
    assert seen["GrantChanged"] > DRAFTS_LIVED // 40


def test_from_an_exported_directory_it_is_the_same(lived: LocalLog, tmp_path: Path) -> None:
    export(lived, tmp_path / "x", CODEC, part_bytes=2_000)
    verifying, differences = verified(Archive(tmp_path / "x"))
    assert differences == []
    assert verifying.decisions == sum(lived.end(topic, 0) for topic in COMPARED) > 60


@pytest.mark.parametrize("left", [1, 3])
def test_what_retention_has_removed_from_a_topic_is_no_difference(lived: LocalLog, tmp_path: Path, left: int) -> None:
    export(lived, tmp_path / "x", CODEC, part_bytes=100)
    gone = 0
    for topic in ("refresh-requests", "outbound"):
        files = sorted((tmp_path / "x" / topic / "0").iterdir())
        assert len(files) > 4
        for path in files[:-left]:
            start, end = map(int, path.stem.split("-"))
            gone += end - start
            path.unlink()
    every = sum(lived.end(topic, 0) for topic in COMPARED)
    verifying, differences = verified(Archive(tmp_path / "x"))
    assert differences == []
    assert (verifying.decisions, verifying.gone) == (every - gone, gone)
    verifying, differences = verified(Archive(tmp_path / "x"), start=20)
    assert differences == []
    assert 0 < verifying.decisions < every - gone


@pytest.mark.parametrize("resumed", [False, True])
def test_a_decision_that_is_another_one_now_is_one_difference_with_both_traces(resumed: bool, tmp_path: Path) -> None:
    with LocalLog() as lived:
        live(lived, history(40), together=1)
        said = first(lived, "outbound", lambda r: isinstance(r, TurnAuthorized))
        turn = CODEC.decode(said.value).turn  # type: ignore[attr-defined]
        was = first(lived, DRAFTS, lambda r: r.turn == turn)  # type: ignore[attr-defined]
        other = CODEC.decode(was.value).model_copy(update={"broadcast": True})
        with copy(lived, in_its_place(replace(was, value=CODEC.encode(other)))) as log:
            verifying, found = Verifying(log, RESTORE, CODEC), []
            for step in verifying.steps():
                found += step.differences
                if resumed and len(found) == 1 and step.differences:
                    verifying.save(tmp_path)
                    snapshot = read_snapshot(newest(tmp_path, 0) or tmp_path)
                    again = Verifying(log, RESTORE, CODEC, begin=snapshot)
                    found += [difference for later in again.steps() for difference in later.differences]
                    break
            assert len([m for m in log.scan("audit") if m.offset > 20]) > 10, "traces go on after it"
    assert [d.topic for d in found] == ["turn-verdicts", "turn-verdicts", "outbound"]  # it was held first
    traces = [tuple(CODEC.decode(side.value) for side in d.traces) for d in found]  # type: ignore[union-attr]
    assert {trace.turn for both in traces for trace in both} == {turn}  # type: ignore[attr-defined]
    assert all(was.decided != now.decided for was, now in traces)  # type: ignore[attr-defined]


def test_decisions_of_an_engine_that_traced_nothing_are_compared_without_traces() -> None:
    """And the chain that began under the next version is its own, wherever this one's would stand by then."""
    with LocalLog() as before, LocalLog() as log:
        live(before, islice(history(40), 60))
        ends = {topic: before.end(topic, 0) for topic in OUTPUT_TOPICS}
        live(log, history(40))

        def as_it_was(m: Message) -> Message | None:
            record = CODEC.decode(m.value)
            if isinstance(record, StretchApplied) and m.offset < ends[APPLIED]:
                return replace(m, value=CODEC.encode(record.model_copy(update={"engine": "4"})))
            if m.topic == "audit":
                return rechained(m, ends["audit"])
            return m

        heads: list[str | None] = [None]

        def rechained(m: Message, since: int) -> Message | None:
            """The trace as the first version that has some would have written it."""
            if m.offset < since:
                return None
            link = {"number": m.offset - since + 1, "previous": heads[-1]}
            trace = CODEC.decode(m.value).model_copy(update=link)
            assert isinstance(trace, DecisionTraced)
            heads.append(trace_digest(trace))
            return replace(m, offset=m.offset - since, value=CODEC.encode(trace))

        with copy(log, as_it_was) as upgraded:
            verifying, differences = verified(upgraded)
            assert upgraded.end("audit", 0) > 10
    assert (verifying.engines, differences) == (["4"], [])


def test_a_draft_that_is_gone_sets_no_later_trace_apart() -> None:
    with LocalLog() as lived:
        live(lived, history(30), together=1)
        gone = next(m for m in lived.scan(DRAFTS) if m.offset == 10)
        with copy(lived, without(gone)) as log:
            _, differences = verified(log)
    assert len(differences) > 1
    assert all(d.topic != "audit" for d in differences)


@pytest.mark.parametrize(
    "topic", ["turn-verdicts", "outbound", "source-evidence", "memory-revisions", "grants", "audit"]
)
def test_a_stored_decision_that_was_changed_is_found(lived: LocalLog, topic: str) -> None:
    was = next(iter(lived.scan(topic)))
    record = CODEC.decode(was.value)
    changed = replace(was, value=CODEC.encode(record.model_copy(update={"at": record.at + 1})))
    with copy(lived, in_its_place(changed)) as log:
        verifying, (difference,) = verified(log)
    assert difference.recorded == changed
    assert difference.again is not None
    assert (difference.again.value, difference.why) == (was.value, "another value")
    assert verifying.differ == 1


def test_any_byte_of_a_stored_decision_counts(lived: LocalLog) -> None:
    was = first(lived, "turn-verdicts", lambda r: isinstance(r, TurnDecided) and r.verdict is Verdict.DROP)
    assert was.value is not None
    for at in range(len(was.value)):
        value = was.value[:at] + bytes([was.value[at] ^ 1]) + was.value[at + 1 :]
        with copy(lived, in_its_place(replace(was, value=value))) as log:
            verifying = Verifying(log, RESTORE, CODEC, to=1 + int(dict(was.headers)["ce_id"].split(b"/")[2]))
            assert [d.why for step in verifying.steps() for d in step.differences] == ["another value"]
        if at > 40:
            break


@pytest.mark.parametrize(("part", "why"), [("key", "another key"), ("headers", "another headers")])
def test_a_key_and_the_headers_count_too(lived: LocalLog, part: str, why: str) -> None:
    was = next(iter(lived.scan("outbound")))
    other = {"key": b"other", "headers": (*was.headers[:-1], ("traceparent", b"another"))}[part]
    with copy(lived, in_its_place(replace(was, **{part: other}))) as log:
        _, (difference,) = verified(log)
    assert difference.why == why


def test_a_stored_decision_that_is_gone_is_found(lived: LocalLog) -> None:
    gone = first(lived, "outbound", lambda r: isinstance(r, TurnAuthorized))
    with copy(lived, without(gone)) as log:
        verifying, (difference,) = verified(log)
    assert difference.recorded is None
    assert difference.again is not None
    assert (difference.again.value, difference.why) == (gone.value, "is not on the topic")
    assert verifying.decisions == sum(lived.end(topic, 0) for topic in COMPARED)


@pytest.mark.parametrize("later", [0, 5])
def test_one_that_nothing_led_to_is_found(later: int) -> None:
    with LocalLog() as log:
        live(log, a_delivered_turn())
        (was,) = log.scan("outbound")
        log.append("outbound", was.key, was.value, timestamp=was.timestamp, headers=was.headers)
        log.append("outbound", was.key, was.value, timestamp=was.timestamp)
        live(log, [message(10_000 + n, ROOMS[0], n) for n in range(1, 1 + later)])
        verifying, differences = verified(log)
    assert [(d.again, d.recorded and d.recorded.value) for d in differences] == [(None, was.value)] * 2
    assert [d.why for d in differences] == ["is there twice", "names no record that it came of"]
    assert verifying.differ == 2


def test_two_that_changed_places_are_found(lived: LocalLog) -> None:
    one, two = list(lived.scan("turn-verdicts"))[:2]
    places = {one.offset: replace(two, offset=one.offset), two.offset: replace(one, offset=two.offset)}
    with copy(lived, lambda m: places.get(m.offset) if m.topic == one.topic and m.offset in places else m) as log:
        verifying, differences = verified(log)
    assert differences
    assert verifying.differ == len(differences)


def test_a_draft_that_is_gone_is_said(lived: LocalLog) -> None:
    decided = first(lived, "turn-verdicts", lambda r: isinstance(r, TurnDecided))
    cause = dict(decided.headers)["ce_id"].split(b"/")
    assert cause[0] == DRAFTS.encode()
    gone = next(m for m in lived.scan(DRAFTS) if m.offset == int(cause[2]))
    with copy(lived, without(gone)) as log:
        _, differences = verified(log)
    told = next(d for d in differences if d.recorded is not None and d.recorded.value == decided.value)
    assert told.again is None
    assert f"turn-drafts at {gone.offset}, is not there" in told.why


def test_a_stretch_that_is_gone_ends_it(lived: LocalLog) -> None:
    third = list(lived.scan(APPLIED))[2]
    with copy(lived, without(third)) as log, pytest.raises(LogError, match="the recorded stretch starts at"):
        verified(log)


class Busy:
    """A log on which somebody goes on after each question for an end."""

    def __init__(self, log: LocalLog, inputs: Iterator[Input]) -> None:
        self.partitions, self.first, self.scan = log.partitions, log.first, log.scan
        self._log, self._inputs, self._runtime = log, inputs, LocalRuntime(log, CODEC, keys=TEST_KEYS)

    def end(self, topic: str, partition: int) -> int:
        end = self._log.end(topic, partition)
        for i in (next(self._inputs), next(self._inputs)):
            self._runtime.feed(i.topic, i.key, i.value, i.timestamp, i.headers)
        self._runtime.flush()
        return end


def test_a_log_on_which_somebody_goes_on_is_looked_at_as_it_was(tmp_path: Path) -> None:
    with LocalLog() as log:
        inputs = history(200)
        live(log, [next(inputs) for _ in range(40)])
        before = log.end(APPLIED, 0)
        verifying, differences = verified(Busy(log, inputs))
        assert (verifying.end, differences) == (before, [])
        assert log.end(APPLIED, 0) > before + 20
        export(Busy(log, inputs), tmp_path / "x", CODEC)
        assert verified(Archive(tmp_path / "x"))[1] == []


def test_a_stretch_that_was_changed_is_found(lived: LocalLog) -> None:
    third = list(lived.scan(APPLIED))[2]
    other = CODEC.encode(CODEC.decode(third.value).model_copy(update={"at": 1}))
    with copy(lived, in_its_place(replace(third, value=other))) as log:
        verifying, (difference,) = verified(log)
    assert (difference.topic, difference.why, verifying.differ) == (APPLIED, "another value", 1)


def test_an_export_that_was_not_finished_ends_it(lived: LocalLog, tmp_path: Path) -> None:
    export(lived, tmp_path / "x", CODEC)
    for path in (tmp_path / "x" / DRAFTS / "0").iterdir():
        path.unlink()
    with pytest.raises(LogError, match=r"records up to \d+ were applied, and there are none after 0"):
        verified(Archive(tmp_path / "x"))


def test_another_engine_is_said_once_and_before_any_difference(lived: LocalLog) -> None:
    def older(m: Message) -> Message:
        record = CODEC.decode(m.value) if m.topic == APPLIED and m.offset in (3, 4, 7) else None
        if isinstance(record, StretchApplied):
            return replace(m, value=CODEC.encode(record.model_copy(update={"engine": "1"})))
        return replace(m, value=b"?") if m.topic == "turn-verdicts" else m

    with copy(lived, older) as log:
        verifying = Verifying(log, RESTORE, CODEC)
        said = [(step.at, step.engine) for step in verifying.steps() if step.engine is not None]
    assert said == [(3, "1")]
    assert verifying.engines == ["1"]
    assert verifying.differ == lived.end("turn-verdicts", 0)


@pytest.mark.parametrize(("start", "to"), [(0, 1), (7, 19), (20, None), (59, 60)])
def test_a_range_compares_the_stretches_of_its_drafts(lived: LocalLog, start: int, to: int | None) -> None:
    """All verdicts are damaged, so each one that is looked at is found."""
    with copy(lived, lambda m: replace(m, value=b"?") if m.topic == "turn-verdicts" else m) as log:
        verifying = Verifying(log, RESTORE, CODEC, start=start, to=to)
        found = [d for step in verifying.steps() for d in step.differences]
    drafts = {int(c[2]) for d in found if (c := d.cause.split("/"))[0] == DRAFTS}
    assert drafts >= set(range(start, 60 if to is None else to))
    assert min(drafts) > start - 4  # a stretch is compared as a whole, and these hold four records at most
    assert to is None or max(drafts) < to + 4


def test_a_range_in_which_nothing_was_decided_is_said(lived: LocalLog) -> None:
    with pytest.raises(LogError, match="nothing from 60 on was decided; it stands at 60"):
        verified(lived, start=60)
    with pytest.raises(LogError, match="there is no partition 1: there are 0 to 0"):
        verified(lived, partition=1)


@pytest.mark.parametrize("steps", [1, 9, 25])
def test_it_is_gone_on_with_where_it_was_left(lived: LocalLog, tmp_path: Path, steps: int) -> None:
    whys = {"turn-verdicts": b"?"}
    with copy(lived, lambda m: replace(m, value=whys.get(m.topic, m.value))) as log:
        whole, _ = verified(log)
        left = Verifying(log, RESTORE, CODEC)
        for _, _ in zip(range(steps), left.steps(), strict=False):
            pass
        left.save(tmp_path)
        path = newest(tmp_path, 0)
        assert path is not None
        gone_on = Verifying(log, RESTORE, CODEC, begin=read_snapshot(path))
        assert 0 < gone_on.decisions < whole.decisions
        list(gone_on.steps())
        assert (gone_on.decisions, gone_on.differ) == (whole.decisions, whole.differ)
        assert gone_on.replay.engine.state.digest() == whole.replay.engine.state.digest()
        with pytest.raises(LogError, match="that replay is of the drafts from 0 on, not from 3 on"):
            Verifying(log, RESTORE, CODEC, start=3, begin=read_snapshot(path))


def test_without_the_keys_another_code_comes_of_an_offer(lived: LocalLog) -> None:
    """So a replay needs them."""
    room = ROOMS[1]
    info = {"kind": "direct", "visibility": "members"}
    page = {"room": room, "refresh": "r1", "page": 0, "last": True, "started_at": EPOCH + 1000, "info": info}
    note = {"op": "create", "by": "dream", "kind": "note", "text": "n", "sources": [ref(room, 1)]}
    asked = {"request": "s1", "memory": "m", "revision": "m@1", "audience": {"scope": "public"}}
    with LocalLog() as log:
        live(
            log,
            [
                policy(0),
                an("MembershipPage", 1000, members=[{"reader": READERS[0], "kind": "member"}], **page),
                message(2000, room, 1),
                an("MemoryWrite", 3000, write="w", memory="m", revision="m@1", **note),
                an("SharingRequested", 4000, room=room, **asked),
            ],
        )
        assert list(log.scan("grants"))
        assert verified(log)[1] == []
        verifying = Verifying(log, Engine.restore, CODEC)
        assert [d.topic for step in verifying.steps() for d in step.differences] == ["grants"]
