"""Each decision has one trace, of ids and digests, and a tenant's traces are one chain (R-RET-2)."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given

from tests.processors.feed import ALEX, C1, C2, D1, GUEST, KIM, Feed, ready, ref, verdicts
from tests.processors.streams import Player, Share, Step, examples, sent, steps
from turngate.processors import tracing
from turngate.processors.audience import UNKNOWN, listed
from turngate.schemas.codec import Codec
from turngate.schemas.digests import audience_digest, authorized_digest, decided_digest, trace_digest
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TracedOutcome, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Action, Code, Rendering

CODEC = Codec()
TOLD = ("drop", "deliver")


def traces(out: list[Record]) -> list[DecisionTraced]:
    return [r for r in out if isinstance(r, DecisionTraced)]


def calls(out: list[Record]) -> list[str | None]:
    """The tool calls that are reported."""
    return [t.call for t in traces(out) if [r.code for r in t.reasons] == [Code.UNDRAFTED_CALL]]


def test_every_decision_is_a_link_of_its_tenants_chain() -> None:
    share = Share()

    @examples(40)
    @given(steps())
    def check(chosen: list[Step]) -> None:
        # As whoever reads a topic has them: what a digest covers is what crosses it.
        made = list(chain(*Player().play(sent(chosen))))
        out = [CODEC.decode(CODEC.encode(r)) for r in made]
        assert list(map(repr, out)) == list(map(repr, made))  # all that is made unchecked is valid, and as it reads
        links = traces(out)
        assert [link.number for link in links] == list(range(1, len(links) + 1))
        assert [link.previous for link in links] == [None, *(trace_digest(link) for link in links[:-1])]
        decided = [decided_digest(r) for r in out if isinstance(r, TurnDecided | ContextDecided)]
        assert [link.decided for link in links if link.call is None] == decided
        let_out = [authorized_digest(r) for r in out if isinstance(r, TurnAuthorized)]
        assert [link.authorized for link in links if link.authorized is not None] == let_out
        share.count(len(let_out), len(decided))

    check()
    share.at_least(0.15)


def test_a_trace_says_of_each_leaf_what_it_came_to() -> None:
    feed = ready(C1, [ALEX, KIM])
    feed.listing(D1, [ALEX])
    recorded = feed.message(C1, 1)
    feed.message(D1, 2)
    out = feed.draft(C1, "t", trigger=ref(C1, 1), exposed=(ref(D1, 2), "tool:gone"))
    decided, trace = out
    assert isinstance(decided, TurnDecided)
    assert isinstance(trace, DecisionTraced)
    heard, secret, gone = trace.refs
    assert (heard.ref, heard.permitted, len(heard.leaves), heard.reasons, heard.others) == (ref(C1, 1), True, 1, (), ())
    assert (secret.permitted, secret.leaves, [r.code for r in secret.reasons]) == (False, (), ["audience_not_subset"])
    (leaf,) = secret.others[0].leaves
    assert secret.others == (TracedOutcome(leaves=(leaf,), codes=("audience_not_subset",)),)
    assert leaf not in heard.leaves
    assert (gone.leaves, gone.others, [r.code for r in gone.reasons]) == ((), (), ["source_missing"])
    assert recorded
    both = audience_digest(listed([ALEX, KIM]))
    assert (trace.destination, trace.lower, trace.upper, len(trace.listing)) == (both, both, both, 1)
    assert (trace.turn, trace.room, trace.policy, trace.as_of) == ("t", C1, "1", decided.as_of)
    assert (trace.decision, trace.rendering, trace.authorized) == (decided.decision, None, None)


def test_a_trace_names_the_leaves_that_a_ref_has_by_now() -> None:  # R-AUD-6
    feed = ready(C1, [ALEX, KIM])
    feed.message(C1, 1)
    (before,) = traces(feed.draft(C1, "t1", exposed=(ref(C1, 1),)))[0].refs
    feed.listing(C1, [ALEX])
    feed.message(C1, 1, text="said otherwise", edited=True)
    (after,) = traces(feed.draft(C1, "t2", exposed=(ref(C1, 1),)))[0].refs
    assert verdicts(feed.out) == [("t1", "deliver"), ("t2", "deliver")]
    assert (len(before.leaves), len(after.leaves)) == (1, 2)
    assert set(before.leaves) < set(after.leaves)


def test_a_trace_of_what_is_let_out_names_the_rendering_and_both_bounds() -> None:
    feed = ready(C1, [ALEX, KIM])
    feed.tool(C1, "c", server="wiki")
    feed.listing(D1, [ALEX])
    feed.message(D1, 1)
    feed.joined(C1, "slack:T1/UNEW")
    feed.left(C1, KIM)
    said = (Rendering(text="a", exposed=(ref(D1, 1),)), Rendering(text="b", exposed=("tool:c",)))
    decided, authorized, trace = feed.draft(C1, "t", exposed=("tool:c",), renderings=said)
    assert isinstance(decided, TurnDecided)
    assert isinstance(authorized, TurnAuthorized)
    assert isinstance(trace, DecisionTraced)
    assert (decided.verdict, decided.rendering, trace.rendering) == ("deliver", 1, 1)
    assert {r.ref: r.permitted for r in trace.refs} == {"tool:c": True, ref(D1, 1): False}
    assert trace.upper == trace.destination == audience_digest(authorized.destination)
    assert trace.upper == audience_digest(listed([ALEX, KIM, "slack:T1/UNEW"]))
    assert trace.lower == audience_digest(listed([ALEX]))


def test_a_room_that_is_not_known_is_traced_as_unknown() -> None:
    feed = Feed()
    feed.policy()
    feed.tool(C1, "c")
    held = traces(feed.draft(C1, "t", exposed=("tool:c",)))[-1]
    assert (held.destination, held.upper, held.listing, held.refs) == (audience_digest(UNKNOWN), None, (), ())
    ended = traces(feed.tick(6_000))[-1]
    assert (ended.destination, ended.upper, [r.permitted for r in ended.refs]) == (held.destination, None, [True])
    assert ended.authorized is not None


def test_a_context_answer_is_traced_like_a_draft() -> None:
    feed = ready(C1, [ALEX, KIM])
    feed.listing(D1, [ALEX])
    feed.message(C1, 1)
    feed.message(D1, 2)
    decided, trace = feed.context(C1, "q", "t", candidates=(ref(C1, 1), ref(D1, 2)))
    assert isinstance(decided, ContextDecided)
    assert isinstance(trace, DecisionTraced)
    assert (trace.request, trace.turn, trace.agent, trace.room) == ("q", "t", "mesh", C1)
    assert [(r.ref, r.permitted) for r in trace.refs] == [(ref(C1, 1), True), (ref(D1, 2), False)]


def test_a_tenants_chain_holds_nothing_of_another_tenant() -> None:  # R-ROOM-11
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    feed.draft(C1, "t1", exposed=("tool:c",))
    feed.draft(C1, "t1", exposed=("tool:c",), tenant="other")
    feed.draft(C1, "t2", exposed=("tool:c",))
    for tenant in ("acme", "other"):
        links = [link for link in traces(feed.out) if link.tenant == tenant]
        assert [link.number for link in links] == list(range(1, len(links) + 1))
        assert all(after.previous == trace_digest(before) for before, after in pairwise(links))


def test_a_decision_that_failed_has_its_place_in_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:  # R-RUN-6
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    feed.engine.fits = lambda record: not isinstance(record, TurnAuthorized)
    feed.draft(C1, "t1", exposed=("tool:c",))
    feed.engine.fits = lambda _: True
    feed.draft(C1, "t2", exposed=("tool:c",))
    assert verdicts(feed.out) == [("t1", "drop"), ("t2", "deliver")]
    first, second, third = traces(feed.out)
    assert (first.call, second.refs, third.number) == ("c", (), 3)
    assert (second.previous, third.previous) == (trace_digest(first), trace_digest(second))


POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}, scout: {accounts: []}}
tools: {crm: {audience: {workspace: "slack:T1"}}}
operations: {crm.read: {access: read, audience: internal}, crm.refund: {access: write}}
skills: {pay: {operation: crm.refund, params: {}}}
interlock: {outward: allow, untrusted_writes: allow}
"""
ACTION = Action(operation="crm.refund", skill="pay")


def acting() -> Feed:
    feed = Feed()
    feed.policy(POLICY)
    feed.listing(C1, [ALEX], info={"visibility": "workspace", "workspaces": ["slack:T1"]})
    feed.message(C1, 1)
    return feed


def test_a_call_that_no_authorized_action_named_is_reported_once() -> None:
    feed = acting()
    out = feed.tool(C1, "c1", server="crm", operation="refund", turn="t", fields=({"name": "n", "value": "4711"},))
    assert calls(out) == ["c1"]
    (trace,) = traces(out)
    assert (trace.decided, trace.refs, trace.room, trace.turn) == (None, (), C1, "t")
    assert "4711" not in trace.model_dump_json()
    again = {"at": feed.now, "server": "crm", "operation": "refund", "turn": "t"}
    assert calls(feed.tool(C1, "c1", fields=({"name": "n", "value": "4711"},), **again)) == []


@pytest.mark.parametrize("agent", ["mesh", "scout"])
def test_a_call_of_an_authorized_action_is_not_reported_but_a_second_one_is(agent: str) -> None:
    feed = acting()
    assert verdicts(feed.draft(C1, "t", trigger=ref(C1, 1), action=ACTION)) == [("t", "deliver")]
    done = {"server": "crm", "operation": "refund", "agent": agent}
    assert calls(feed.tool(C1, "c1", turn="t", **done)) == ([] if agent == "mesh" else ["c1"])
    assert calls(feed.tool(C1, "c2", turn="t", **done)) == ["c2"]  # one action, one call
    assert calls(feed.tool(C1, "c3", **done)) == ["c3"]  # of no turn
    assert calls(feed.tool(C1, "c4", turn="t", server="crm", operation="send", agent=agent)) == ["c4"]


def test_a_call_of_an_action_that_was_dropped_is_reported() -> None:
    feed = acting()
    paid = Action(operation="crm.refund", skill="nothing")
    assert verdicts(feed.draft(C1, "t", trigger=ref(C1, 1), action=paid)) == [("t", "drop")]
    assert calls(feed.tool(C1, "c1", turn="t", server="crm", operation="refund")) == ["c1"]


def test_an_internal_call_is_not_reported() -> None:
    assert calls(acting().tool(C1, "c1", server="crm", operation="read")) == []


@pytest.mark.parametrize("verdict", TOLD)
def test_a_trace_lists_no_more_than_fits(verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in {"MOST_REFS": 12, "MOST_LEAVES": 8, "MOST_OUTCOMES": 4}.items():
        monkeypatch.setattr(tracing, name, most)
    feed = ready(C1, [ALEX, KIM])
    feed.listing(C2, [ALEX, KIM] if verdict == "deliver" else [GUEST])
    for number in range(10):
        feed.message(C1, number)
        feed.message(C2, number, author=f"slack:T1/U{number}")
    refs = tuple(ref(room, number) for room in (C1, C2) for number in range(10))
    out = feed.draft(C1, "t", exposed=refs)
    assert verdicts(out) == [("t", verdict)]
    (trace,) = traces(out)
    assert (len(trace.refs), trace.unlisted) == (12, 8)
    there = sum(len(r.leaves) + sum(len(o.leaves) for o in r.others) for r in trace.refs)
    assert (there, there + sum(r.unlisted for r in trace.refs)) == (8 if verdict == "deliver" else 4 + 2, 12)
    assert sum(not r.permitted for r in trace.refs) == (0 if verdict == "deliver" else 10)  # the refused ones first


def test_thousands_of_refs_and_leaves_fit_their_topic() -> None:
    feed = ready(C1, [ALEX])
    refs = []
    for number in range(2_500):
        name = f"{number:0512}"
        feed.tool(C1, name, after=0)
        refs.append(f"tool:{name}")
    out = feed.draft(C1, "t", exposed=tuple(refs))
    assert verdicts(out) == [("t", "deliver")]
    (trace,) = traces(out)
    assert (len(trace.refs), trace.unlisted) == (tracing.MOST_REFS, 500)
    assert len(CODEC.encode(trace)) < 2_000_000
