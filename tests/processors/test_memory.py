"""What becomes of memory writes at the edges that a scenario does not reach (rules EVI, MEM, SEN)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.processors.feed import ALEX, C1, C2, D1, KIM, codes, ref, verdicts
from tests.processors.remembering import PAYING, SECRET, Memories, pay, refused, remembering, states
from turngate.processors import lineage, memory
from turngate.schemas import inputs
from turngate.schemas.outputs import RevisionRecorded
from turngate.schemas.shapes import AuthorKind, Rendering


def with_a_belief(kind: str = "world") -> Memories:
    feed = remembering()
    feed.write("sky", "sky@1", by="operator", kind=kind)
    return feed


@pytest.mark.parametrize("op", ["create", "derive", "amend"])
def test_what_takes_a_beliefs_place_waits_for_an_operator_whatever_it_is_called(op: str) -> None:  # R-MEM-7
    feed = with_a_belief()
    fields: dict[str, Any] = {"op": op, "base": "sky@1", "kind": "note", "sources": [ref(D1, 1)]}
    assert states(feed.write("sky", "sky@2", **fields)) == [("sky@2", "staged")]
    assert "revision_staged" in codes(feed.draft(D1, "t1", exposed=["revision:sky@2"]))
    promoted = feed.write("sky", "sky@2", op="promote", by="operator")
    assert states(promoted) == [("sky@2", "current")]


@pytest.mark.parametrize("op", ["create", "derive", "amend"])
def test_an_operators_word_takes_a_beliefs_place_at_once_and_so_does_a_note_a_notes(op: str) -> None:
    feed = with_a_belief()
    assert states(feed.write("sky", "sky@2", op=op, base="sky@1", by="operator")) == [("sky@2", "current")]
    made = feed.write("trip", "trip@2", op=op, base="trip@1", sources=[ref(D1, 1)])
    assert states(made) == [("trip@2", "current")]


@pytest.mark.parametrize("by", ["dream", "distill", "document", "refusal", "correction", "turn"])
@pytest.mark.parametrize("kind", ["world", "rule"])
def test_no_process_forgets_a_belief_on_its_own(by: str, kind: str) -> None:  # R-MEM-7
    feed = with_a_belief(kind)
    assert refused(feed.write("sky", "sky@1", op="forget", by=by))
    assert not refused(feed.write("trip", "trip@1", op="forget", by="distill"))
    assert states(feed.write("sky", "sky@1", op="forget", by="operator")) == [("sky@1", "retired")]


def test_a_context_answer_of_another_agent_answers_for_no_write(  # R-EVI-2
) -> None:
    feed = remembering()
    feed.context(C1, "r1", "t1", agent="scout")
    feed.context(C1, "r2", "t2")
    unheard = feed.write("n", "n@1", by="turn", turn="t1", sources=[ref(C1, 1)], room=C1)
    heard = feed.write("m", "m@1", by="turn", turn="t2", sources=[ref(C1, 1)], room=C1)
    assert codes(feed.draft(C1, "t3", exposed=["revision:n@1"])) == {"source_unknown"}
    assert verdicts(feed.draft(C1, "t4", exposed=["revision:m@1"])) == [("t4", "deliver")]
    assert [len(r.leaves) for r in (*unheard, *heard) if isinstance(r, RevisionRecorded)] == [2, 1]


@pytest.mark.parametrize("rooms", [[D1], [D1, C1], [C1, D1]])
def test_a_write_that_names_no_room_needs_permission_in_each_that_its_turn_asked_from(rooms: list[str]) -> None:
    feed = remembering()  # R-EVI-7
    for room in rooms:
        feed.context(room, f"r{room}", "t1")
    out = feed.write("n", "n@1", by="turn", turn="t1", room=None, sources=[ref(D1, 1)])
    assert refused(out) == ([] if rooms == [D1] else ["audience_not_subset"])


@pytest.mark.parametrize(
    ("reads", "verdict"),
    [
        ({}, "deliver"),
        ({"exposed": ("revision:n@1",)}, "ask"),
        ({"renderings": (Rendering(text="so", exposed=("revision:n@1",)),)}, "ask"),
    ],
)
def test_what_a_draft_only_wrote_arms_no_conversation_and_what_it_read_as_well_does(
    reads: dict[str, Any], verdict: str
) -> None:  # R-TNT-1, R-TNT-8
    feed = remembering(PAYING)
    feed.tool(C1, "c")
    feed.write("n", "n@1", sources=["tool:c"])
    feed.draft(D1, "t1", trigger=ref(D1, 1), wrote=("n@1",), **reads)
    assert verdicts(feed.draft(D1, "t2", trigger=ref(D1, 1), action=pay("INV-7"))) == [("t2", verdict)]


@pytest.mark.parametrize(("restrict", "expected"), [(True, {"restricted_to_conversation"}), (False, set())])
def test_a_restriction_goes_along_through_notes_and_what_the_agent_said(restrict: bool, expected: set[str]) -> None:
    feed = remembering()  # R-EVI-4, R-AUD-7
    feed.listing(C2, [ALEX, KIM])
    feed.write("a", "a@1", room=C1, restrict=restrict, sources=[ref(C1, 1)])
    feed.draft(C1, "t1", exposed=["revision:a@1"])
    feed.message(C1, "t1", author=None, author_kind=AuthorKind.SELF, turn="t1")
    feed.write("b", "b@1", room=C1, sources=[ref(C1, "t1")])
    feed.draft(C1, "t2", exposed=["revision:b@1"])
    feed.message(C1, "t2", author=None, author_kind=AuthorKind.SELF, turn="t2")
    assert codes(feed.draft(C2, "t3", exposed=[ref(C1, "t2")])) == expected
    assert verdicts(feed.draft(C1, "t4", exposed=[ref(C1, "t2")])) == [("t4", "deliver")]


@pytest.mark.parametrize(("room", "expected"), [(None, {"source_unknown"}), (C1, set())])
def test_a_restriction_without_a_room_is_unknown_whatever_binds_what_it_was_made_of(
    room: str | None, expected: set[str]
) -> None:  # R-MEM-4
    feed = remembering()
    feed.write("a", "a@1", room=C1, restrict=True, sources=[ref(C1, 1)])
    feed.write("b", "b@1", room=room, restrict=True, sources=["revision:a@1"])
    assert codes(feed.draft(C1, "t1", exposed=["revision:b@1"])) == expected


@pytest.mark.parametrize(("restrict", "expected"), [(True, ["dream_mixed_audience"]), (False, [])])
def test_a_dream_is_made_of_what_is_bound_alike(restrict: bool, expected: list[str]) -> None:  # R-EVI-9
    feed = remembering()
    feed.write("a", "a@1", room=C1, restrict=restrict, sources=[ref(C1, 1)])
    feed.write("b", "b@1", room=C1, sources=[ref(C1, 1)])
    out = feed.write("c", "c@1", by="dream", room=C1, sources=["revision:a@1", "revision:b@1"])
    assert refused(out) == expected


@pytest.mark.parametrize(("by", "expected"), [("turn", set()), ("distill", {"revision_not_current"})])
def test_a_turn_acknowledges_only_what_it_retired_itself(by: str, expected: set[str]) -> None:  # R-TURN-5
    feed = remembering()
    feed.context(D1, "r", "t1", trigger=ref(D1, 1))
    assert states(feed.write("trip", "trip@1", op="forget", by=by, turn="t1")) == [("trip@1", "retired")]
    assert codes(feed.draft(D1, "t1", trigger=ref(D1, 1), retired=("trip@1",))) == expected


@pytest.mark.parametrize(("thread", "verdict"), [("x", "ask"), ("y", "deliver"), (None, "deliver")])
def test_an_answer_arms_the_thread_that_asked(thread: str | None, verdict: str) -> None:  # R-TNT-1
    feed = remembering(PAYING)
    feed.tool(C1, "c")
    feed.context(D1, "r", "t1", thread="x", candidates=("tool:c",))
    out = feed.draft(D1, "t2", thread=thread, trigger=ref(D1, 1), action=pay("INV-7"))
    assert verdicts(out) == [("t2", verdict)]


@pytest.mark.parametrize(("trigger", "expected"), [(ref(D1, 1), []), (ref(D1, 2), ["tainted_correction"])])
def test_what_has_too_many_leaves_is_no_ground_for_a_correction(trigger: str, expected: list[str]) -> None:
    feed = remembering("evidence: {max_leaves: 1}\n")  # R-MEM-5, R-EVI-5
    for quoted in ((), (ref(D1, 9),)):
        feed.message(D1, 2, edited=bool(quoted), quotes=quoted)
    feed.context(D1, "r", "t1", trigger=trigger)
    out = feed.write("trip", "trip@2", op="amend", base="trip@1", by="correction", turn="t1", sources=[ref(D1, 1)])
    assert refused(out) == expected


def test_an_amended_transcript_keeps_what_it_replaced_and_a_forgotten_one_nothing() -> None:  # R-MEM-4
    feed = remembering()
    feed.write("log", "log@1", kind="transcript", text="first-words")
    feed.write("log", "log@2", op="amend", base="log@1", text="second-words")
    assert feed.holds("first-words")
    feed.write("log", "log@2", op="forget", by="operator", text=None)
    assert not feed.holds("second-words")


#: Writes that are refused, each for another reason.
REFUSED: list[dict[str, Any]] = [
    {"health": True},
    {"by": "operator", "topic": "memory-writes"},
    {"agent": "nobody"},
    {"revision": "trip@1"},
    {"agent": "scout", "memory": "trip"},
    {"op": "amend", "base": "trip@0"},
    {"by": "refusal", "kind": "rule"},
    {"by": "correction", "sources": ["tool:none"]},
    {"by": "correction"},
    {"by": "dream", "sources": [f"message:{D1}/1", f"message:{C1}/1"]},
    {"kind": "rule", "sources": ["tool:none"]},
    {"by": "turn", "turn": "t9", "sources": [f"message:{D1}/1"], "room": C1},
]


@pytest.mark.parametrize("fields", REFUSED)
def test_nothing_is_kept_of_a_refused_text(fields: dict[str, Any]) -> None:  # R-MEM-5, R-MEM-6
    words = "never-to-be-seen"
    feed = remembering()
    record = {"agent": "mesh", "write": "w", "memory": "m", "revision": "m@1", "op": "create", "by": "distill"}
    record |= {"kind": "note", "room": D1, "text": words} | {k: v for k, v in fields.items() if k != "topic"}
    written = inputs.MemoryWrite.model_validate({"tenant": "acme", "at": feed.now} | record)
    out = feed.send(written, topic=fields.get("topic", "memory-writes"))
    assert refused(out)
    assert not feed.holds(words)
    assert all(words not in r.model_dump_json() for r in out)


def test_a_text_goes_when_it_is_replaced_or_refused_after_its_wait() -> None:  # R-SEN-2
    feed = remembering("sensitivity: {enabled: true}\n")
    feed.write("plan", "plan@1", text="first-words", sources=[ref(D1, 1)])
    feed.write("plan", "plan@1", text="second-words", sources=[ref(D1, 1)])
    assert feed.holds("first-words")
    assert feed.holds("second-words")
    assert refused(feed.tick(3_000)) == ["revision_exists"]
    assert not feed.holds("second-words")
    feed.write("plan", "plan@2", op="amend", base="plan@1", text="third-words")
    feed.make(inputs.SensitivityAssessed, write=f"w{feed.writes}", label="ordinary")
    assert not feed.holds("first-words")
    assert feed.holds("third-words")


def test_a_write_that_cannot_be_taken_up_after_its_wait_is_answered_and_its_text_goes(  # R-RUN-6
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = remembering("sensitivity: {enabled: true}\n")
    feed.write("plan", "plan@1", text="some-words", sources=[ref(D1, 1)])

    def broken(*_: object) -> lineage.Lineage:
        raise ArithmeticError

    monkeypatch.setattr(memory, "lineage", broken)
    assert refused(feed.tick(3_000)) == ["decision_error"]
    assert not feed.holds("some-words")


def test_a_dream_is_of_one_audience_in_every_version_of_a_policy() -> None:  # R-EVI-9, R-POL-1
    feed = remembering("skills: {}\n")
    feed.tool(C1, "c1", server="wiki")
    feed.tool(C1, "c2", server="wiki")
    assert states(feed.write("d", "d@1", by="dream", sources=["tool:c1", "tool:c2"])) == [("d@1", "current")]
    assert refused(feed.write("e", "e@1", by="dream", sources=["tool:c1", ref(C1, 1)])) == ["dream_mixed_audience"]


def test_a_turn_may_acknowledge_its_own_staged_fact_and_nobody_else() -> None:  # R-TURN-5, R-MEM-2
    feed = remembering()
    feed.context(C1, "r", "t1", candidates=[ref(C1, 1)])
    feed.write("sky", "sky@1", by="turn", turn="t1", kind="world", room=C1)
    said = (Rendering(text="noted"),)
    other = feed.draft(C1, "t2", trigger=ref(C1, 1), wrote=["sky@1"], renderings=said)
    assert codes(other) == {"revision_staged"}
    assert verdicts(feed.draft(C1, "t1", wrote=["sky@1"], renderings=said)) == [("t1", "deliver")]


@pytest.mark.parametrize(("text", "against"), [("noted: 4242 4242 42", {"personal_egress"}), ("noted", set())])
def test_what_a_turn_only_wrote_of_a_value_takes_the_value_along(text: str, against: set[str]) -> None:  # R-EGR-1
    feed = remembering()
    feed.tool(D1, "c", server="wiki", fields=[{"name": "account", "value": "4242424242", "class": "personal"}])
    feed.context(C1, "r", "t1", candidates=[ref(C1, 1)])
    assert states(feed.write("a", "a@1", by="turn", turn="t1", room=C1, sources=["tool:c"])) == [("a@1", "current")]
    out = feed.draft(C1, "t1", trigger=ref(C1, 1), wrote=["a@1"], renderings=(Rendering(text=text),))
    assert (verdicts(out), codes(out)) == ([("t1", "drop" if against else "deliver")], against)


def test_restored_at_any_moment_it_goes_on_the_same() -> None:  # R-RUN-1
    def play(cut: int) -> list[tuple[str, ...]]:
        feed = remembering("sensitivity: {enabled: true}\n")
        steps = [
            lambda: feed.write("a", "a@1", sources=[ref(D1, 1)]),
            lambda: feed.make(inputs.SensitivityAssessed, write="w2", label="ordinary", ask_author=True),
            lambda: feed.write("b", "b@1", sources=["revision:a@1"], text=SECRET),
            lambda: feed.tick(1_500),
            lambda: feed.context(D1, "r", "t1", candidates=["revision:a@1", "revision:b@1"]),
            lambda: feed.draft(C1, "t2", exposed=["revision:a@1"]),
            lambda: feed.grant("g", "a@1", expires_at=feed.now + 3_000),
            lambda: feed.draft(C1, "t3", exposed=["revision:a@1"]),
            lambda: feed.tick(2_000),
            lambda: feed.draft(C1, "t4", exposed=["revision:a@1"]),
            lambda: feed.message(C1, 2, author=KIM),
        ]
        out = []
        for n, step in enumerate(steps):
            if n == cut:
                feed.restart()
            out += [(type(r).__name__, r.model_dump_json()) for r in step()]
        return [*out, (feed.engine.state.digest(),)]

    assert len({tuple(play(cut)) for cut in range(12)}) == 1
