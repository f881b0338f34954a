"""What another policy would decide is said beside what was decided, and changes nothing of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processors.streams import Player, Share, Step, examples, sent, steps, with_ticks
from tests.streams.history import history
from tests.streams.test_verifying import live, verified
from tests.streams.test_what_if import NAMED, OTHERS, tried
from tests.streams.world import CODEC, ROOMS, Input, a_delivered_turn, an, draft, ref
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.processors.shadow import Shadowing
from turngate.processors.trying import Tried
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS, SHADOW
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ShadowDecided, ShadowOutcome, ShadowVerdict
from turngate.schemas.shapes import Position
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.local_runtime import Runtime
from turngate.streams.log import Headers

NOBODY = '{"version": 9}'


def shadowed(log: LocalLog, inputs: Iterable[Input], document: str, tenant: str | None = None, every: int = 7) -> None:
    """Inputs applied under both policies, each on its own; a new process goes on after so many."""
    restore = partial(Shadowing.under, document, tenant, keys=TEST_KEYS)
    runtime = Runtime(log, restore, CODEC)
    for n, i in enumerate(inputs):
        if n % every == every - 1:
            runtime = Runtime(log, restore, CODEC)
        log.append_many([Append(i.topic, i.key, i.value, i.timestamp, headers=i.headers)])
        runtime.step()


def said(log: LocalLog) -> list[ShadowDecided]:
    records = [CODEC.decode(m.value) for m in log.scan(SHADOW)]
    return [r for r in records if isinstance(r, ShadowDecided)]


def plain(record: ShadowDecided) -> tuple[object, ...]:
    """As `replay --policy` tells it."""
    kind, name = ("turn", record.turn) if record.turn is not None else ("context", record.request)
    return record.tenant, record.room, kind, name, *(_outcome(o) for o in (record.was, record.now))


def _outcome(outcome: ShadowOutcome) -> tuple[object, ...]:
    return outcome.verdict.value, [(r.code, r.ref) for r in outcome.reasons], outcome.passes


def told(one: Tried) -> tuple[object, ...]:
    outcomes = ((o.verdict, o.listed, o.passes) for o in (one.was, one.now))
    return one.tenant, one.room, one.kind, one.name, *outcomes


def bytes_of(log: LocalLog) -> dict[str, list[tuple[bytes | None, bytes | None, Headers]]]:
    topics = [topic for topic in (*INPUT_TOPICS, *OUTPUT_TOPICS) if topic != SHADOW]
    return {topic: [(m.key, m.value, m.headers) for m in log.scan(topic)] for topic in topics}


@pytest.fixture(scope="module")
def inputs() -> list[Input]:
    return list(history(80))


@pytest.fixture(scope="module")
def alone(inputs: list[Input]) -> Iterator[LocalLog]:
    """What comes of them without another policy."""
    with LocalLog() as log:
        yield live(log, inputs)


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_what_a_replay_under_that_policy_tells(inputs: list[Input], alone: LocalLog, name: str) -> None:
    """All else on the log is as it is without: a plain replay agrees, and a live run has the same bytes."""
    with LocalLog() as log:
        shadowed(log, inputs, OTHERS[name], every=50)
        found, _ = tried(log, OTHERS[name])
        assert [plain(r) for r in said(log)] == [told(t) for t in found if t.was != t.now]
        assert (said(log) == []) == (name == "the same")
        assert verified(log)[1] == []
        assert bytes_of(log) == bytes_of(alone)
        assert list(log.checkpoint(0).entries) == list(alone.checkpoint(0).entries)


def test_it_leaves_nothing_behind_whatever_happens() -> None:
    """Of policies, pauses, tools, quotes and rooms that end, too, nothing comes but what comes without it."""
    differed = Share()

    @examples(40)
    @given(steps(), st.sampled_from(sorted(OTHERS)))
    def holds(chosen: list[Step], name: str) -> None:
        shadowing = Shadowing.under(OTHERS[name], None, (), None)
        both, alone = Player(shadowing), Player(Engine())
        stream = with_ticks(sent(chosen))
        came = [_apart(out) for out in both.play(stream)]
        assert [rest for _, rest in came] == alone.play(stream)
        assert shadowing.state.digest() == alone.engine.state.digest()
        differed.count(sum(len(shadow) for shadow, _ in came), len(stream))

    holds()
    differed.at_least(0.02)


def _apart(out: list[Record]) -> tuple[list[Record], list[Record]]:
    """What is said of the other policy, which comes last, and all that came before."""
    rest = [r for r in out if not isinstance(r, ShadowDecided)]
    assert out[: len(rest)] == rest
    return out[len(rest) :], rest


def test_it_names_the_policy_and_both_outcomes() -> None:
    room = ROOMS[0]
    asked = {"request": "q1", "turn": "t2", "room": room, "candidates": [ref(room, 0)]}
    with LocalLog() as log:
        drafted = draft(5000, room, "t2", (ref(room, 0),))
        shadowed(log, [*a_delivered_turn()[:3], an("ContextRequested", 4000, **asked), drafted], NOBODY)
        context, turn = said(log)
        assert (context.turn, context.request, context.room) == (None, "q1", room)
        assert (context.was.verdict, context.was.passes) == (ShadowVerdict.ANSWERED, (ref(room, 0),))
        assert (context.now.verdict, context.now.passes) == (ShadowVerdict.ANSWERED, ())
        assert (turn.turn, turn.request, turn.policy) == ("t2", None, "9")
        # printf '{"version": 9}' | sha256sum
        assert turn.document == "716e125a9f22b369969202bb7ef027a24fcd012996aa8727bd7bcc655cb20891"
        assert turn.was == ShadowOutcome(verdict=ShadowVerdict.DELIVER, passes=("0",))
        assert (turn.now.verdict, [r.code for r in turn.now.reasons]) == (ShadowVerdict.DROP, ["agent_unknown"])
        assert any(b"words of t2" in (m.value or b"") for m in log.scan("outbound"))
        assert not any(b"words of" in (m.value or b"") for m in log.scan(SHADOW))


def test_a_request_that_waits_and_would_not_is_told() -> None:
    room = ROOMS[0]
    late = an("ContextRequested", 100_000, request="q1", turn="t2", room=room, candidates=[ref(room, 0)])
    with LocalLog() as log:
        shadowed(log, [*a_delivered_turn()[:3], late], NAMED + ', "freshness": {"destination": "24h"}}')
        (one,) = said(log)
    assert (one.was.verdict, one.now.verdict) == (ShadowVerdict.WAITS, ShadowVerdict.ANSWERED)


def test_it_may_be_of_one_tenant() -> None:
    inputs = [*a_delivered_turn("acme"), *a_delivered_turn("bolt", 10_000)]
    with LocalLog() as log, LocalLog() as other:
        shadowed(log, inputs, NOBODY, "bolt")
        shadowed(other, inputs, NOBODY)
        assert [r.tenant for r in said(log)] == ["bolt"]
        assert {r.tenant for r in said(other)} == {"acme", "bolt"}


def test_what_is_too_large_is_said_without_reasons() -> None:
    """R-RUN-6: what cannot be written must not stop the partition, nor the decision beside it."""
    shadowing = Shadowing.under(NOBODY, None, (), None)
    shadowing.fits = lambda record: not (isinstance(record, ShadowDecided) and record.now.reasons)
    out: list[Record] = []
    for i in a_delivered_turn():
        out += shadowing.apply(CODEC.decode(i.value), Position(topic=i.topic, partition=0, offset=0), i.timestamp)
    (one,) = (r for r in out if isinstance(r, ShadowDecided))
    assert (one.abridged, one.was.verdict, one.now) == (
        True,
        ShadowVerdict.DELIVER,
        ShadowOutcome(verdict=ShadowVerdict.DROP),
    )
    assert one.was.passes == ()


def test_an_error_in_saying_it_leaves_the_state_as_it_was() -> None:  # R-RUN-6
    *before, drafted = [(CODEC.decode(i.value), i) for i in a_delivered_turn()]
    shadowing = Shadowing.under(NOBODY, None, (), None)
    for record, i in before:
        shadowing.apply(record, Position(topic=i.topic, partition=0, offset=0), i.timestamp)
    state, at = shadowing.state.digest(), Position(topic=drafted[1].topic, partition=0, offset=0)

    def fits(record: Record) -> bool:
        if isinstance(record, ShadowDecided):
            raise OSError
        return True

    shadowing.fits = fits
    with pytest.raises(OSError, match=r"^$"):
        shadowing.apply(drafted[0], at, drafted[1].timestamp)
    assert shadowing.state.digest() == state
    shadowing.fits = lambda _: True
    after = [r for r in shadowing.apply(drafted[0], at, drafted[1].timestamp) if isinstance(r, ShadowDecided)]
    assert [r.was.verdict for r in after] == [ShadowVerdict.DELIVER]
