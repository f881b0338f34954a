"""The fold: the order in a stretch, what is recorded of it, and what becomes of bytes that are no record."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.chain import Chain
from tests.streams.world import CODEC, EPOCH, ROOMS, Input, draft, listing, message, policy, ref, tick
from turngate.processors.engine import Engine
from turngate.schemas.catalog import APPLIED, DEAD_LETTERS, DRAFTS, INPUT_TOPICS
from turngate.schemas.outputs import RecordRefused, StretchApplied, TurnDecided
from turngate.streams import fold
from turngate.streams.fold import RECORD_BYTES, Fold, in_order
from turngate.streams.log import Commit, Message, Outgoing, Stretch


def lying(given: Input, offset: int, partition: int = 0) -> Message:
    return Message(given.topic, partition, offset, given.timestamp, given.key, given.value, given.headers)


def stretch(messages: Sequence[Message], late: bool = False, **ends: int) -> Stretch:
    """From the beginning of each topic to after its last record here, or further where `ends` says so."""
    end = {m.topic: m.offset + 1 for m in sorted(messages, key=lambda m: m.offset)}
    end |= {topic.replace("_", "-"): offset for topic, offset in ends.items()}
    return Stretch(dict.fromkeys(end, 0), end, list(messages), late)


def applied(messages: Sequence[Message], **more: Any) -> tuple[Chain, Commit]:
    engine = Chain()
    return engine, Fold(0, engine, CODEC).apply(stretch(messages, **more))


def on(commit: Commit, topic: str) -> list[Outgoing]:
    return [o for o in commit.outputs if o.topic == topic]


def the_stretch(commit: Commit) -> StretchApplied:
    (outgoing,) = on(commit, APPLIED)
    assert commit.outputs[-1] == outgoing
    record = CODEC.decode(outgoing.value)
    assert isinstance(record, StretchApplied)
    return record


def test_a_stretch_is_applied_by_timestamp_then_topic_then_offset_and_drafts_last() -> None:
    """R-RUN-2: topics in the order of contract section 3, drafts in order of offset whatever their timestamps."""
    given = [
        lying(draft(9, ROOMS[0], "t1", ()), 0),
        lying(draft(1, ROOMS[0], "t2", ()), 1),
        lying(policy(5), 0),
        lying(message(5, ROOMS[0], 1), 3),
        lying(message(5, ROOMS[0], 2), 4),
        lying(message(4, ROOMS[0], 3), 5),
        lying(tick(3), 0),
    ]
    engine, commit = applied(list(reversed(given)), late=False)
    assert engine.applied == [
        ("ticks", 0),
        ("observed-messages", 5),
        ("observed-messages", 3),
        ("observed-messages", 4),
        ("policies", 0),
        ("turn-drafts", 0),
        ("turn-drafts", 1),
    ]
    assert commit.decided == 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(INPUT_TOPICS)), st.integers(0, 3)), max_size=20), st.randoms())
def test_the_order_depends_on_nothing_but_the_records(places: list[tuple[str, int]], random: Any) -> None:
    messages = [Message(topic, 0, offset, at, None, None) for offset, (topic, at) in enumerate(places)]
    shuffled = list(messages)
    random.shuffle(shuffled)
    order = in_order(shuffled)
    assert order == in_order(messages)
    drafts = [m for m in order if m.topic == DRAFTS]
    assert order[len(order) - len(drafts) :] == sorted(drafts, key=lambda m: m.offset)
    topics = list(INPUT_TOPICS)
    others = [(m.timestamp, topics.index(m.topic), m.offset) for m in order if m.topic != DRAFTS]
    assert others == sorted(others)


def test_what_was_applied_is_recorded_with_it() -> None:
    """R-RUN-3: positions may lie beyond the last record, since a broker's control records have offsets of their own."""
    engine, commit = applied([lying(message(7, ROOMS[0], 1), 2), lying(tick(5), 0)], observed_messages=6, approvals=0)
    record = the_stretch(commit)
    assert [(p.topic, p.partition, p.offset) for p in record.from_] == [("observed-messages", 0, 0), ("ticks", 0, 0)]
    assert [(p.topic, p.partition, p.offset) for p in record.to] == [("observed-messages", 0, 6), ("ticks", 0, 1)]
    assert (record.engine, record.late, record.tenant, record.at) == ("chain-1", (), "0", EPOCH + 7)
    assert commit.engine == "chain-1"
    assert commit.positions == dict.fromkeys(INPUT_TOPICS, 0) | {"observed-messages": 6, "ticks": 1}
    assert dict(commit.entries) == dict(engine.state.entries())


def test_a_late_stretch_drops_its_drafts_and_says_which() -> None:
    """R-RUN-2: the others are applied all the same."""
    given = [lying(draft(1, ROOMS[0], "t1", ()), 0), lying(policy(2), 0), lying(draft(3, ROOMS[0], "t2", ()), 1)]
    _, commit = applied(given, late=True)
    decided = [CODEC.decode(o.value) for o in on(commit, "turn-verdicts")]
    assert [r.reasons[0].code for r in decided if isinstance(r, TurnDecided)] == ["barrier_late", "barrier_late"]
    assert [(p.topic, p.offset) for p in the_stretch(commit).late] == [("turn-drafts", 0), ("turn-drafts", 1)]
    assert len(on(commit, "memory-revisions")) == 1
    _, in_time = applied(given)
    assert the_stretch(in_time).late == ()
    assert CODEC.decode(on(in_time, "turn-verdicts")[0].value).reasons[0].code == "no_rendering"


def dead_letter(given: Message) -> tuple[RecordRefused, Outgoing]:
    _, commit = applied([given, lying(policy(9), 0)] if given.topic != "policies" else [given])
    (outgoing,) = on(commit, DEAD_LETTERS)
    record = CODEC.decode(outgoing.value)
    assert isinstance(record, RecordRefused)
    return record, outgoing


@pytest.mark.parametrize("value", [b"", b"\x00", b"secret words that are no record", None])
def test_bytes_that_are_no_record_become_a_dead_letter_and_the_partition_goes_on(value: bytes | None) -> None:
    """R-RUN-5: it points at the record and does not copy it."""
    bad = Message("observed-messages", 0, 4, EPOCH + 3, b"acme", value)
    engine, commit = applied([bad, lying(policy(9), 0)])
    assert engine.applied == [("observed-messages", 4), ("policies", 0)]
    record, outgoing = dead_letter(bad)
    raw = value or b""
    assert (record.code, record.tenant, outgoing.key) == ("invalid", "acme", b"acme")
    assert (record.topic, record.partition, record.offset, record.timestamp) == (bad.topic, 0, 4, EPOCH + 3)
    assert (record.size, record.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert record.schema_ is None
    assert b"secret words" not in b"".join([outgoing.value or b"", *(v for _, v in outgoing.headers)])
    assert len(on(commit, "memory-revisions")) == 1


@pytest.mark.parametrize("ahead_bytes", [1, 1_000, fold.AHEAD_BYTES])
def test_how_many_records_are_decoded_ahead_changes_nothing(ahead_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-5: each is applied or refused in its place, as if it were the only one."""
    monkeypatch.setattr(fold, "AHEAD_BYTES", ahead_bytes)
    given = [lying(message(n, ROOMS[0], n), n) for n in range(50)]
    given = [replace(m, value=b"no record") if m.offset % 7 == 3 else m for m in given]
    together, commit = applied(given)
    engine = Chain()
    singly = Fold(0, engine, CODEC)
    topic = given[0].topic
    commits = [singly.apply(Stretch({topic: m.offset}, {topic: m.offset + 1}, [m])) for m in given]
    assert commit.outputs[:-1] == [out for one in commits for out in one.outputs[:-1]]
    assert together.state.digest() == engine.state.digest()
    assert len(on(commit, DEAD_LETTERS)) == sum(m.value == b"no record" for m in given) > 2


def test_a_record_under_another_key_is_refused_by_its_schema() -> None:
    """Contract section 1: a record that was keyed as another tenant's must not reach that tenant's state."""
    given = message(1, ROOMS[0], 1, tenant="bolt")
    record, outgoing = dead_letter(Message(given.topic, 0, 0, given.timestamp, b"acme", given.value))
    assert (record.schema_, record.tenant, outgoing.key) == ("MessageObserved", "acme", b"acme")
    for key in (None, b"0", b"\xff\xfe", b"Not A Tenant"):
        record, outgoing = dead_letter(Message(given.topic, 0, 0, given.timestamp, key, given.value))
        assert (record.tenant, outgoing.key) == ("0", b"0")


def test_a_tick_is_of_its_partition_and_no_tenant_is_a_number() -> None:
    _, commit = applied([lying(tick(1), 0)])
    assert on(commit, DEAD_LETTERS) == []
    record, _ = dead_letter(lying(tick(1, partition=3), 0))
    assert record.schema_ == "Tick"
    record, _ = dead_letter(lying(message(1, ROOMS[0], 1, tenant="0"), 0))
    assert (record.schema_, record.tenant) == ("MessageObserved", "0")


TRACE = b"4bf92f3577b34da6a3ce929d0e0e4736"


def headers(given: Input, offset: int = 0) -> list[dict[str, bytes]]:
    _, commit = applied([lying(given, offset)])
    return [dict(o.headers) for o in commit.outputs]


def test_outputs_carry_their_tenant_as_key_and_cloudevents_headers() -> None:
    """Contract section 7, CloudEvents' Kafka binding."""
    _, commit = applied([lying(message(1234, ROOMS[0], 1, tenant="bolt"), 5)])
    assert [o.key for o in commit.outputs] == [b"bolt", b"0"]
    first, last = (dict(o.headers) for o in commit.outputs)
    assert list(first) == ["ce_id", "ce_source", "ce_type", "ce_specversion", "ce_time", "traceparent"]
    assert first["ce_id"] == b"observed-messages/0/5/0"
    assert first["ce_source"] == b"turngate/0"
    assert (first["ce_type"], last["ce_type"]) == (b"turngate.v1.WriteRefused", b"turngate.v1.StretchApplied")
    assert first["ce_specversion"] == b"1.0"
    assert first["ce_time"] == b"2026-01-01T00:00:01.234Z"
    assert first["ce_id"] != last["ce_id"]


def with_trace(given: Input, value: bytes | None) -> Input:
    return Input(given.topic, given.key, given.value, given.timestamp, (("traceparent", value),))  # type: ignore[arg-type]


def test_a_trace_goes_on_through_the_decision() -> None:
    """W3C Trace Context: the trace id stays, the parent id is new."""
    given = with_trace(message(1, ROOMS[0], 1), b"00-" + TRACE + b"-00f067aa0ba902b7-01")
    first, last = headers(given)
    assert first["traceparent"].split(b"-")[1] == TRACE
    assert first["traceparent"].split(b"-")[2] != b"00f067aa0ba902b7"
    assert TRACE not in last["traceparent"]  # a stretch is no tenant's


@pytest.mark.parametrize("value", [None, b"", b"00-" + b"0" * 32 + b"-00f067aa0ba902b7-01", b"x" * 55, TRACE])
def test_what_is_no_trace_context_is_not_taken_over(value: bytes | None) -> None:
    bare = headers(message(1, ROOMS[0], 1))[0]["traceparent"]
    assert headers(with_trace(message(1, ROOMS[0], 1), value))[0]["traceparent"] == bare
    version, trace, span, flags = bare.split(b"-")
    assert (version, len(trace), len(span), flags) == (b"00", 32, 16, b"01")


class Overdue(Chain):
    """Something of another tenant's falls due with every record (R-TIME-4)."""

    def apply(self, record: Any, *where: Any) -> list[Any]:
        made = super().apply(record, *where)
        return [made[0].model_copy(update={"tenant": "bolt"}), *made]


def test_a_trace_stays_with_the_tenant_that_brought_it() -> None:
    """R-ROOM-11: another tenant's output that the same record sets off says nothing of it."""
    given = with_trace(message(1, ROOMS[0], 1), b"00-" + TRACE + b"-00f067aa0ba902b7-01")
    commit = Fold(0, Overdue(), CODEC).apply(stretch([lying(given, 0)]))
    traced = {o.key: TRACE in dict(o.headers)["traceparent"] for o in commit.outputs}
    assert traced == {b"bolt": False, b"acme": True, b"0": False}
    assert len({dict(o.headers)["ce_id"] for o in commit.outputs}) == 3


@pytest.mark.parametrize(("record_bytes", "verdict"), [(700, "drop"), (RECORD_BYTES, "deliver")])
def test_a_record_of_which_a_larger_one_would_come_than_can_be_written_has_failed(
    record_bytes: int, verdict: str
) -> None:
    """R-RUN-6: it is a drop and visible, everything that is written fits, and the partition goes on."""
    narrow = Fold(0, Engine(), CODEC, record_bytes=record_bytes)
    crowd = tuple(f"slack:T1/U{n:03}" for n in range(60))
    said = [message(2, ROOMS[0], 0), draft(3, ROOMS[0], "t", (ref(ROOMS[0], 0),))]
    commit = narrow.apply(stretch([lying(one, 0) for one in (policy(0), listing(1, ROOMS[0], crowd), *said)]))
    assert all(len(out.value or b"") <= record_bytes for out in commit.outputs)
    (decided,) = (r for o in commit.outputs if isinstance(r := CODEC.decode(o.value), TurnDecided))
    assert decided.verdict == verdict
    assert [CODEC.decode(o.value).code for o in on(commit, DEAD_LETTERS)] == ["decision_error"] * (verdict == "drop")
    assert narrow.positions["turn-drafts"] == 1


def refused(bad: Stretch) -> str:
    """What a fold that stands after one message says of a stretch that does not fit; nothing is applied."""
    engine = Chain()
    standing = Fold(0, engine, CODEC)
    standing.apply(stretch([lying(message(1, ROOMS[0], 1), 0)]))
    positions, digest = dict(standing.positions), engine.state.digest()
    with pytest.raises(ValueError, match=r"\[0\]|partition 0|\[1\]") as error:
        standing.apply(bad)
    assert (standing.positions, engine.state.digest(), len(engine.applied)) == (positions, digest, 1)
    return str(error.value)


def test_a_stretch_that_does_not_start_where_the_partition_stands_is_refused() -> None:
    """R-RUN-4: it would leave a gap, or apply something twice."""
    second = lying(message(2, ROOMS[0], 2), 1)
    topic = second.topic
    assert "at 1, not at 2" in refused(Stretch({topic: 2}, {topic: 3}, []))
    assert "at 1, not at 0" in refused(Stretch({topic: 0}, {topic: 2}, [second]))
    assert "at 1, not at 1 to 0" in refused(Stretch({topic: 1}, {topic: 0}, []))
    assert "at None" in refused(Stretch({"outbound": 0}, {"outbound": 1}, []))


def test_a_stretch_with_other_records_than_it_names_is_refused() -> None:
    second = lying(message(2, ROOMS[0], 2), 1)
    topic = second.topic
    assert "holds a record twice" in refused(Stretch({topic: 1}, {topic: 2}, [second, second]))
    assert "at 1 lies outside" in refused(Stretch({topic: 1}, {topic: 1}, [second]))
    assert "at 0 lies outside" in refused(Stretch({topic: 1}, {topic: 2}, [lying(message(1, ROOMS[0], 1), 0)]))
    assert "at 0 lies outside" in refused(Stretch({topic: 1}, {topic: 2}, [lying(policy(1), 0)]))
    assert "[1]: the record at 1" in refused(Stretch({topic: 1}, {topic: 2}, [lying(message(2, ROOMS[0], 2), 1, 1)]))
    assert "the same topics" in refused(Stretch({topic: 1}, {}, []))
