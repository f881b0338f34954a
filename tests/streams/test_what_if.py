"""What a past decision would be under another policy is what an engine says that has the state of then, and no more."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processors.streams import Player, Share, Step, examples, sent, steps, with_ticks
from tests.streams.history import history
from tests.streams.test_verifying import live
from tests.streams.world import CODEC, POLICY, ROOMS, Input, a_delivered_turn, an, draft, listing, message, ref
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.processors.rows import Policies
from turngate.processors.trying import Outcome, Tried, Trying
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.outputs import TurnDecided
from turngate.schemas.policy import PolicyInvalid
from turngate.schemas.shapes import Position
from turngate.streams.local_log import LocalLog
from turngate.streams.local_runtime import Runtime
from turngate.streams.verifying import Verifying

NAMED = POLICY.removesuffix("}")
OTHERS = {
    "the same": POLICY,
    "nobody": '{"version": 9}',
    "fresher": NAMED + ', "freshness": {"destination": "2s"}}',
    "longer": NAMED + ', "freshness": {"destination": "24h"}}',
    "dropping": NAMED + ', "stale": {"hold": "1s", "then": "drop"}}',
    "few leaves": NAMED + ', "evidence": {"max_leaves": 1}}',
}


def tried(log: LocalLog, document: str, tenant: str | None = None) -> tuple[list[Tried], Verifying[Trying]]:
    verifying = Verifying(log, partial(Trying.under, document, tenant, keys=TEST_KEYS), CODEC)
    found: list[Tried] = []
    for step in verifying.steps():
        assert step.differences == []  # what is tried leaves nothing behind, in no decision
        found += verifying.replay.engine.take_tried()
    return found, verifying


@pytest.fixture(scope="module")
def inputs() -> list[Input]:
    return list(history(80))


@pytest.mark.parametrize("name", OTHERS)
def test_a_draft_comes_to_what_an_engine_of_then_says(inputs: list[Input], name: str) -> None:
    """The other engine is made of the state before the draft, and gets the draft and the policy alone."""
    with LocalLog() as log:
        live(log, inputs)
        found, verifying = tried(log, OTHERS[name])
        state = Runtime(log, partial(Engine.restore, keys=TEST_KEYS)).engine.state
        assert verifying.replay.engine.state.digest() == state.digest()  # nor in the state
    expected = forked(inputs, OTHERS[name])
    first = {t.name: t for t in reversed(found) if t.kind == "turn"}
    assert {name: (t.now.verdict, t.now.reasons) for name, t in first.items()} == expected
    changed = sum(t.was != t.now for t in found)
    assert (changed == 0) == (name == "the same")
    assert len(first) == 80


def forked(inputs: list[Input], document: str) -> dict[str, tuple[str, frozenset[tuple[str, str | None]]]]:
    """The first verdict of each draft, and why, by an engine that is made for it alone."""
    engine, offsets = Engine(TEST_KEYS), Counter[str]()
    verdicts = {}
    for i in inputs:
        record, position = CODEC.decode(i.value), Position(topic=i.topic, partition=0, offset=offsets[i.topic])
        offsets[i.topic] += 1
        if isinstance(record, TurnDrafted):
            fork = Engine.restore(engine.state.entries(), Engine.version, TEST_KEYS)
            rows = fork.state.tables["policies"].rows
            for key in list(rows):
                rows[key] = Policies(((1, document),))
            out = fork.apply(record, position, i.timestamp, i.value)
            decided = next(r for r in out if isinstance(r, TurnDecided) and r.turn == record.turn)
            verdicts[record.turn] = decided.verdict.value, frozenset((r.code, r.ref) for r in decided.reasons)
        engine.apply(record, position, i.timestamp, i.value)
    return verdicts


def test_trying_leaves_nothing_behind_whatever_happens() -> None:
    """Policies, pauses, tools, quotes and rooms that end, too: the same records come, and the same state."""
    differed = Share()

    @examples(60)
    @given(steps(), st.sampled_from(sorted(OTHERS)))
    def holds(chosen: list[Step], name: str) -> None:
        trying = Trying.under(OTHERS[name], None, (), None)
        plain, other = Player(Engine()), Player(trying)
        stream = with_ticks(sent(chosen))
        assert other.play(stream) == plain.play(stream)
        assert trying.state.digest() == plain.engine.state.digest()
        assert other.restarted().engine.state.digest() == trying.state.digest()
        found = trying.take_tried()
        differed.count(sum(t.was != t.now for t in found), len(found))

    holds()
    differed.at_least(0.05)


def test_it_stands_in_the_place_of_every_version_in_every_room() -> None:
    """The room is pinned to a version that allows less; published, the new one would loosen nothing there."""
    tight = NAMED.replace('"version": 1', '"version": 2') + ', "freshness": {"destination": "1s"}}'
    with LocalLog() as log:
        live(
            log,
            [
                an("PolicyPublished", 0, version="2", document=tight),
                listing(1000, ROOMS[0], ("slack:T1/UALEX",)),
                message(2000, ROOMS[0], 1),
                an("PolicyPublished", 2500, version="3", document=POLICY.replace('"version": 1', '"version": 3')),
                draft(9000, ROOMS[0], "t1", (ref(ROOMS[0], 1),)),
            ],
        )
        (one,), _ = tried(log, POLICY)
    assert (one.was.verdict, one.now.verdict) == ("hold", "deliver")
    assert one.was.reasons == {("destination_stale", ROOMS[0])}


def test_a_held_draft_is_tried_again_when_it_is_decided() -> None:
    """One step: the draft waits as it did, since its room was not known fresh enough, whatever would have been."""
    room = ROOMS[0]
    with LocalLog() as log:
        live(log, a_delivered_turn())
        live(
            log,
            [
                draft(100_000, room, "t2", (ref(room, 0),)),
                listing(101_000, room, ("slack:T1/UALEX", "slack:T1/UBO")),
            ],
        )
        found, _ = tried(log, NAMED + ', "freshness": {"destination": "24h"}}')
        nobody, _ = tried(log, '{"version": 9}')
    assert [(t.name, t.was.verdict, t.now.verdict) for t in found] == [
        ("t1", "deliver", "deliver"),
        ("t2", "hold", "deliver"),
        ("t2", "deliver", "deliver"),
    ]
    assert [t.now for t in nobody] == [Outcome("drop", frozenset({("agent_unknown", None)}))] * 3


def test_contexts_are_tried_too() -> None:
    room = ROOMS[0]
    asked = {"request": "q1", "turn": "t2", "room": room, "candidates": [ref(room, 0)]}
    with LocalLog() as log:
        live(log, [*a_delivered_turn()[:3], an("ContextRequested", 4000, **asked)])
        (same,), _ = tried(log, POLICY)
        (less,), _ = tried(log, '{"version": 9}')
    assert same.was == same.now == Outcome("answered", frozenset(), (ref(room, 0),))
    assert (less.kind, less.name, less.now.passes) == ("context", "q1", ())
    assert {code for code, _ in less.now.reasons} == {"agent_unknown"}


def test_it_may_be_of_one_tenant() -> None:
    with LocalLog() as log:
        live(log, [*a_delivered_turn("acme"), *a_delivered_turn("bolt", 10_000)])
        both, _ = tried(log, '{"version": 9}')
        one, _ = tried(log, '{"version": 9}', "bolt")
    assert [t.tenant for t in both] == ["acme", "bolt"]
    assert one == both[1:]


def test_a_document_that_is_none_is_refused() -> None:
    with pytest.raises(PolicyInvalid):
        Trying.under("version: none", None, (), None)
