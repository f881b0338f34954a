"""What a turn saw: no id used twice, no order of arrival and no omission makes evidence disappear."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.processors.feed import ALEX, C1, D1, KIM, MORGAN, Feed, authorized, codes, ready, ref, untraced, verdicts
from turngate.processors.rows import Turn
from turngate.processors.turns import but
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MessageDeleted
from turngate.schemas.outputs import EvidenceRecorded, TurnDecided
from turngate.schemas.shapes import AuthorKind, Rendering

CODEC = Codec()
ONLY_ALEX = {"server": "drive", "audience": {"readers": [ALEX]}}
BOTH = {"server": "drive", "audience": {"readers": [ALEX, KIM]}}


def two_rooms() -> Feed:
    """Alex's direct room and a channel with Kim, one message in each."""
    feed = ready(D1, [ALEX])
    feed.listing(C1, [ALEX, KIM])
    feed.message(D1, 1)
    feed.message(C1, 1)
    return feed


def answer(request: str | None = None) -> tuple[Rendering, ...]:
    return (Rendering(text="so", request=request),)


@pytest.mark.parametrize(("candidate", "verdict"), [(ref(C1, 1), "deliver"), (ref(D1, 1), "drop")])
def test_an_inference_that_had_another_turns_context_answers_for_it(candidate: str, verdict: str) -> None:  # R-TURN-2
    feed = two_rooms()
    feed.context(D1 if verdict == "drop" else C1, "r", "t1", candidates=(candidate,))
    out = feed.draft(C1, "t2", trigger=ref(C1, 1), renderings=answer("r"))
    assert verdicts(out) == [("t2", verdict)]
    (decided,) = (r for r in out if isinstance(r, TurnDecided))
    assert candidate in decided.provenance


@pytest.mark.parametrize(("terms", "verdict"), [(BOTH, "deliver"), (ONLY_ALEX, "drop")])
def test_an_inference_that_had_another_turns_results_answers_for_them(terms: dict[str, object], verdict: str) -> None:
    feed = two_rooms()  # R-TURN-2
    feed.context(C1, "r", "t1")
    feed.tool(C1, "c", request="r", **terms)
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 1), renderings=answer("r"))) == [("t2", verdict)]


@pytest.mark.parametrize(("terms", "verdict"), [(BOTH, "deliver"), (ONLY_ALEX, "drop")])
@pytest.mark.parametrize("early", [False, True])
def test_a_result_is_of_the_turn_of_its_request_in_any_order(
    terms: dict[str, object], verdict: str, early: bool
) -> None:  # R-EVI-2
    feed = two_rooms()
    if early:
        feed.tool(C1, "c", request="r", **terms)
    feed.context(C1, "r", "t1")
    if not early:
        feed.tool(C1, "c", request="r", **terms)
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", verdict)]


@pytest.mark.parametrize(("trigger", "verdict"), [(ref(C1, 1), "deliver"), (ref(D1, 1), "drop")])
def test_the_trigger_that_a_context_request_named_is_evidence_too(trigger: str, verdict: str) -> None:  # R-TURN-3
    feed = two_rooms()
    feed.context(C1, "r", "t1", trigger=trigger)
    assert verdicts(feed.draft(C1, "t1")) == [("t1", verdict)]


def test_another_agents_context_request_is_no_evidence() -> None:  # R-TURN-4
    feed = ready(C1, [ALEX, KIM])
    feed.context(C1, "r", "t1", agent="scout")
    assert codes(feed.draft(C1, "t1")) == {"source_missing"}
    feed.context(C1, "r2", "t2")
    assert verdicts(feed.draft(C1, "t2")) == [("t2", "deliver")]  # its twin: asked by the same agent


@pytest.mark.parametrize(("second", "verdict"), [(BOTH, "deliver"), (ONLY_ALEX, "drop")])
def test_a_call_that_is_used_again_carries_both_results(second: dict[str, object], verdict: str) -> None:  # R-AUD-8
    feed = ready(C1, [ALEX, KIM])
    feed.tool(C1, "call_0", turn="t0", server="web")
    out = feed.tool(C1, "call_0", turn="t1", **second)
    (recorded,) = (r for r in out if isinstance(r, EvidenceRecorded))
    assert len(recorded.leaves) == 2
    assert verdicts(feed.draft(C1, "t1")) == [("t1", verdict)]


@pytest.mark.parametrize(("agent", "provenance"), [("mesh", ("tool:c",)), ("scout", ())])
def test_a_result_that_names_no_turn_is_of_its_own_agents_turns(agent: str, provenance: tuple[str, ...]) -> None:
    feed = ready(C1, [ALEX])  # R-EVI-2
    feed.context(C1, "r", "t1")
    feed.tool(C1, "c", agent=agent)
    assert [sent.provenance for sent in authorized(feed.draft(C1, "t1"))] == [provenance]


def test_all_results_that_overtook_their_request_are_of_its_turn() -> None:  # R-EVI-2
    feed = ready(C1, [ALEX])
    for call in ("c1", "c2", "c1"):
        feed.tool(C1, call, request="r")
    feed.context(C1, "r", "t1")
    (sent,) = authorized(feed.draft(C1, "t1"))
    assert sent.provenance == ("tool:c1", "tool:c2")


def test_a_result_is_of_the_turn_that_it_names_and_of_that_of_its_request() -> None:  # R-EVI-2
    feed = ready(C1, [ALEX])
    for turn in ("t1", "t2", "t3"):
        feed.context(C1, f"r-{turn}", turn)
    feed.tool(C1, "c", turn="t2", request="r-t1")
    sent = [authorized(feed.draft(C1, turn))[0].provenance for turn in ("t1", "t2", "t3")]
    assert sent == [("tool:c",), ("tool:c",), ()]


def test_a_result_told_again_changes_nothing_even_under_another_policy() -> None:  # R-RUN-4, R-POL-1
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c", at=feed.now)
    feed.context(C1, "r", "t1")
    feed.policy("version: 1\nagents: {mesh: {}}\n", 2)
    assert feed.tool(C1, "c", at=feed.now) == []
    assert verdicts(feed.draft(C1, "t2", exposed=("tool:c",))) == [("t2", "deliver")]
    decided = feed.draft(C1, "t1")[0]
    assert isinstance(decided, TurnDecided)
    assert decided.provenance == ()  # t1 was opened after the result, and has nothing to do with it


def test_a_call_of_two_agents_is_the_evidence_of_each() -> None:  # R-AUD-3
    feed = ready(C1, [ALEX, KIM])
    feed.tool(C1, "c", agent="scout", **BOTH)
    assert codes(feed.draft(C1, "t1", exposed=("tool:c",))) == {"other_agent"}
    feed.tool(C1, "c", **ONLY_ALEX)
    assert codes(feed.draft(C1, "t2", exposed=("tool:c",))) == {"audience_not_subset"}
    feed.tool(C1, "d", **BOTH)
    assert verdicts(feed.draft(C1, "t3", exposed=("tool:d",))) == [("t3", "deliver")]


def test_a_turn_id_of_two_agents_belongs_to_the_first_that_drafted() -> None:  # R-TURN-8
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    for _ in range(2):
        feed.draft(C1, "t1", agent="scout", exposed=("tool:c",))
    assert [(v, codes([r])) for r in feed.out for _, v in verdicts([r])][1:] == [("drop", {"turn_conflict"})]


def test_turns_that_ended_elsewhere_are_not_kept_open() -> None:  # R-EVI-2
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    for n in range(5):  # asked in the channel, said in a thread
        feed.context(C1, f"r{n}", f"t{n}")
        feed.draft(C1, f"t{n}", thread="1", exposed=("tool:c",))
    rows = feed.engine._tables.open_turns.rows.values()
    assert [row.turns for row in rows] == [("t4",)]


def test_a_secret_that_is_a_matter_of_health_too_is_redacted() -> None:  # R-EGR-4
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c", fields=({"name": "pin", "value": "1", "class": "secret", "health": True},))
    (decided,) = untraced(feed.context(C1, "r", "t1", candidates=("tool:c",)))
    assert decided.permitted[0].redact == ("pin",)  # type: ignore[attr-defined]
    assert codes(feed.draft(C1, "t1")) == set()  # nothing of it is kept, so it is not looked for inside the house


def test_a_message_that_quotes_itself_is_unknown() -> None:  # R-AUD-6
    feed = ready(C1, [ALEX])
    feed.message(C1, 1, quotes=(ref(C1, 1),))
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1))) == {"source_unknown"}
    feed.message(C1, 2, quotes=())
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 2))) == [("t2", "deliver")]


def test_a_message_that_was_deleted_before_it_came_is_deleted() -> None:  # R-AUD-6
    feed = ready(C1, [ALEX])
    feed.make(MessageDeleted, agent="scout", room=C1, message=f"{C1}/1")
    feed.message(C1, 1)
    feed.message(C1, 2)
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1))) == {"source_deleted"}
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 2))) == [("t2", "deliver")]


@pytest.mark.parametrize(
    ("room", "agent", "verdict"), [(C1, "mesh", "deliver"), (D1, "mesh", "drop"), (C1, "scout", "drop")]
)
def test_an_own_message_is_proven_by_a_turn_of_its_agent_and_room(room: str, agent: str, verdict: str) -> None:
    feed = two_rooms()  # R-AUD-7
    feed.listing(C1, [ALEX, KIM], agent="scout")
    feed.draft(C1, "t1", trigger=ref(C1, 1))
    feed.message(room, 9, agent=agent, author=None, author_kind=AuthorKind.SELF, turn="t1")
    out = feed.draft(room, "t2", agent=agent, exposed=(ref(room, 9),))
    assert verdicts(out) == [("t2", verdict)]
    assert codes(out) == (set() if verdict == "deliver" else {"source_unknown"})


@pytest.mark.parametrize(("most", "status"), [(3, "known"), (2, "unknown")])
def test_to_quote_what_has_too_many_leaves_is_to_quote_the_unknown(most: int, status: str) -> None:
    feed = Feed()  # R-AUD-6, R-EVI-5
    feed.policy(f"version: 1\nagents: {{mesh: {{}}}}\nevidence: {{max_leaves: {most}}}\n")
    feed.listing(C1, [ALEX, KIM])
    feed.message(C1, 1)
    for author in (KIM, MORGAN):
        feed.message(C1, 1, author=author, edited=True, text=author)
    (recorded,) = feed.message(C1, 2, author=KIM, quotes=(ref(C1, 1),))
    assert isinstance(recorded, EvidenceRecorded)
    assert recorded.status.value == status


@pytest.mark.parametrize(("terms", "verdict"), [(BOTH, "deliver"), (ONLY_ALEX, "drop")])
def test_a_result_of_an_inference_that_nobody_knows_is_of_every_inference(
    terms: dict[str, object], verdict: str
) -> None:  # R-TURN-2, R-EVI-2
    feed = two_rooms()
    feed.context(C1, "q1", "t1")
    feed.tool(C1, "c", turn="t1", request="never seen", **terms)
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1), renderings=answer("q1"))) == [("t1", verdict)]


@pytest.mark.parametrize(("room", "verdict"), [(C1, "deliver"), (D1, "hold")])
@pytest.mark.parametrize("call", ["c\n", "\nc", "\u2028", " "])
def test_an_id_may_be_anything_and_so_may_what_follows_a_ref_s_colon(call: str, room: str, verdict: str) -> None:
    feed = ready(C1, [ALEX, KIM])
    recorded = feed.tool(room, call, turn="t")
    decided = feed.draft(room, "t", exposed=(f"tool:{call}",))
    assert verdicts(decided) == [("t", verdict)]
    for out in (recorded, decided):
        assert list(map(repr, out)) == [repr(CODEC.decode(CODEC.encode(record))) for record in out]


def test_a_turn_is_changed_in_fields_that_it_has() -> None:
    row = Turn(agent="mesh", content="a", seen=1)
    assert but(row, content="b", final=True) == replace(row, content="b", final=True)
    assert row == Turn(agent="mesh", content="a", seen=1)
    with pytest.raises(KeyError, match="finished"):
        but(row, final=True, finished=True)
