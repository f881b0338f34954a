"""R-TURN-10: more evidence than some, more readers, a tighter policy or an older listing never turn a refusal into a
delivery. Each is asked of the same stream twice: as it is, and with one thing made worse before the draft."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.processors.feed import ALEX, C1, C2, D1, KIM, POLICY
from tests.processors.streams import (
    EVENTS,
    MEMBERS,
    REFS,
    ROOMS,
    TICKS,
    W1,
    Player,
    Share,
    Step,
    draft,
    examples,
    listing,
    placed,
    ref,
    sent,
    steps,
)
from turngate.schemas import inputs
from turngate.schemas.outputs import TurnDecided
from turngate.schemas.shapes import Visibility

#: The draft that is asked twice, and what time it is given.
DRAFT = st.builds(
    lambda room, refs, two: draft(room, refs, turn="x", renderings=[{"text": "a"}, {"text": "b"}][: two + 1]),
    st.sampled_from(ROOMS),
    st.lists(st.sampled_from(REFS), min_size=1, max_size=3),
    st.booleans(),
)
END = [TICKS[1], TICKS[1]]
#: Rooms in which somebody is listed, so that they are credible (R-AUD-1).
LISTED = [listing(room, members) for room in (D1, C1, C2, W1) for members in MEMBERS[room]]


def delivered(stream: list[Step]) -> bool:
    """Whether the words of turn `x` went out, not the notice in their place."""
    out = [r for made in Player().play(sent(stream)) for r in made]
    decided = [r for r in out if isinstance(r, TurnDecided) and r.turn == "x" and r.verdict in ("deliver", "downgrade")]
    return any(r.rendering is not None for r in decided)


def never_better(worse: Callable[[Step], st.SearchStrategy[tuple[list[Step], Step]]], count: int = 200) -> None:
    """Hold a stream and its draft against the same with what `worse` puts before the draft, and the draft it makes."""
    share = Share()

    @examples(count)
    @given(steps(15, without=lambda s: s.kind is inputs.AgentPaused), st.sampled_from(LISTED), DRAFT, st.data())
    def check(chosen: list[Step], fresh: Step, asked: Step, data: st.DataObject) -> None:
        asked = placed(asked, room=fresh.fields["room"])
        before, harder = data.draw(worse(asked))
        filler = [placed(TICKS[0]) for _ in before]  # the same time passes
        base = delivered([*chosen, fresh, *filler, asked, *END])
        share.count(base, 1)
        if not base:
            assert not delivered([*chosen, fresh, *before, harder, *END])

    check()
    share.at_least(0.2)


def test_more_that_was_exposed() -> None:
    def worse(asked: Step) -> st.SearchStrategy[tuple[list[Step], Step]]:
        more = st.lists(st.sampled_from(REFS), min_size=1, max_size=3)
        return more.map(lambda refs: ([], placed(asked, exposed=[*list_of(asked.fields["exposed"]), *refs])))

    never_better(worse)


def test_more_that_was_triggered_read_or_asked() -> None:
    """A trigger, a tool's result and a context answer of the turn itself."""

    def worse(asked: Step) -> st.SearchStrategy[tuple[list[Step], Step]]:
        return st.one_of(
            st.sampled_from(REFS).map(lambda ref: ([], placed(asked, trigger=ref))),
            st.sampled_from(["web", "wiki", "none", "drive"]).map(lambda server: ([result(asked, server)], asked)),
            st.sampled_from(REFS).map(lambda ref: ([context(asked, ref)], asked)),
        )

    never_better(worse)


def result(asked: Step, server: str) -> Step:
    fields = {"agent": "mesh", "room": asked.fields["room"], "call": "cx", "server": server, "operation": "get"}
    return Step(inputs.ToolReturned, fields | {"turn": "x", "audience": {"readers": [ALEX, KIM]}})


def context(asked: Step, ref: str) -> Step:
    fields = {"agent": "mesh", "room": asked.fields["room"], "turn": "x", "candidates": [ref]}
    return Step(inputs.ContextRequested, fields)


def test_more_readers_in_the_destination() -> None:
    def worse(asked: Step) -> st.SearchStrategy[tuple[list[Step], Step]]:
        joins = [placed(e, room=asked.fields["room"]) for e in EVENTS if e.fields["change"] == "joined"]
        return st.lists(st.sampled_from(joins), min_size=1, max_size=3).map(lambda chosen: (chosen, asked))

    never_better(worse)


#: Each is the policy with one thing tighter than before, or several.
TIGHTER = [
    POLICY + "".join(parts)
    for parts in product(
        ("", "freshness: {destination: 1s}\n"),
        ("", "open_rooms: refuse\n"),
        ("", "evidence: {max_leaves: 1}\n"),
        ("", "stale: {then: drop}\n", "stale: {hold: 1s}\n"),
    )
] + [POLICY.replace('["slack:T1/UBOT"]', "[]"), POLICY.replace("mesh:", "other:")]


def test_a_tighter_policy() -> None:
    def worse(asked: Step) -> st.SearchStrategy[tuple[list[Step], Step]]:
        policies = [Step(inputs.PolicyPublished, {"document": text}) for text in TIGHTER]
        return st.sampled_from(policies).map(lambda policy: ([policy], asked))

    never_better(worse)


def test_an_older_listing() -> None:
    """The room is one that nothing was heard of before, so its listing is the only thing that is older."""
    share = Share()
    quiet = [s for s in EVENTS if s.fields["room"] == C1]

    @examples(200)
    @given(
        steps(10, without=lambda s: s.kind is inputs.AgentPaused),
        st.lists(st.sampled_from(quiet), max_size=2),
        st.sampled_from([v for v in Visibility if v is not Visibility.OPEN]),
        st.tuples(st.integers(0, 70_000), st.integers(0, 70_000)).map(sorted),
        st.lists(st.sampled_from(["tool:c1", ref(C1, 0), ref(C2, 0), ref(W1, 0)]), min_size=1, max_size=2),
    )
    def check(chosen: list[Step], events: list[Step], visibility: Visibility, ages: list[int], refs: list[str]) -> None:
        room = "slack:T1/C9"
        there = [placed(e, room=room) for e in events]
        info = {"kind": "channel", "visibility": visibility, "workspaces": ["slack:T1"]}
        asked = draft(room, refs, turn="x")
        newer, older = (
            delivered([*chosen, *there, listing(room, [ALEX, KIM], info=info, early=age), asked, *END]) for age in ages
        )
        share.count(newer, 1)
        assert newer or not older

    check()
    share.at_least(0.1)


def list_of(refs: object) -> list[str]:
    assert isinstance(refs, list)
    return refs
