"""What a taint lets nobody say or do without a yes, and whose yes to which taint that is (R-TNT-5, R-TNT-6)."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, D1, Feed, ref, verdicts
from turngate.processors.spelling import MAX_TEXT
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import TurnDecided

#: Of each bit, a policy under which it alone makes a write ask.
ASKS = {
    "untrusted": """
        version: 1
        agents: {mesh: {}}
        tools: {web: {audience: public, untrusted: true}}
        operations: {crm.file: {access: write, audience: internal}}
        skills: {file: {operation: crm.file}}
        interlock: {taint_ttl: 1m}
    """,
    "private": """
        version: 1
        agents: {mesh: {}}
        tools: {web: {audience: public, private: true}}
        operations: {crm.file: {access: write, audience: external}}
        skills: {file: {operation: crm.file}}
        interlock: {taint_ttl: 1m, mode: ask, leak_guard: true}
    """,
}


def drafted(feed: Feed, turn: str) -> list[Record]:
    action = {"operation": "crm.file", "skill": "file"}
    return feed.draft(D1, turn, trigger=ref(D1, 1), action=action)


@pytest.mark.parametrize("bit", ASKS)
def test_a_yes_that_was_given_before_a_conversation_was_armed_anew_covers_nothing_since(bit: str) -> None:
    feed = Feed()
    feed.policy(ASKS[bit])
    feed.listing(D1, [ALEX], info={"kind": "direct"})
    feed.message(D1, 1)
    feed.tool(D1, "c1")
    (asked,) = (r for r in drafted(feed, "t1") if isinstance(r, TurnDecided))
    yes = {"room": D1, "by": ALEX, "fingerprint": asked.fingerprint}
    assert verdicts(feed.make(inputs.ActionApproved, approval="a1", **yes)) == [("t1", "deliver")]
    feed.make(inputs.ActionApproved, approval="a2", **yes)
    assert verdicts(drafted(feed, "t2")) == [("t2", "deliver")]
    feed.make(inputs.ActionApproved, approval="a3", **yes)
    feed.tick(60_000)  # now the conversation is clear
    feed.listing(D1, [ALEX], info={"kind": "direct"})
    feed.tool(D1, "c2")
    assert verdicts(drafted(feed, "t3")) == [("t3", "ask")]
    assert verdicts(feed.make(inputs.ActionApproved, approval="a4", **yes)) == [("t3", "deliver")]


@pytest.mark.parametrize(("after", "verdict"), [(999, []), (1000, [("t1", "drop")])])
def test_a_draft_that_waited_for_its_room_asks_no_longer_for_that(after: int, verdict: list[tuple[str, str]]) -> None:
    feed = Feed()
    feed.policy(ASKS["untrusted"].replace("taint_ttl: 1m", "ask_ttl: 10s"))
    feed.message(D1, 1)
    feed.tool(D1, "c1")
    assert verdicts(drafted(feed, "t1")) == [("t1", "hold")]
    assert verdicts(feed.listing(D1, [ALEX], after=4_000, info={"kind": "direct"})) == [("t1", "ask")]
    assert verdicts(feed.tick(5_000)) == []
    assert verdicts(feed.tick(after)) == verdict


@pytest.mark.parametrize(("more", "verdict"), [(0, "deliver"), (1, "ask")])
def test_a_text_too_long_to_be_looked_through_may_have_any_link(more: int, verdict: str) -> None:  # R-TNT-5
    feed = Feed()
    feed.policy(ASKS["private"])
    feed.listing(D1, [ALEX], info={"kind": "direct"})
    feed.tool(D1, "c1")
    text = "a" * (MAX_TEXT + more)
    assert verdicts(feed.draft(D1, "t1", exposed=("tool:c1",), renderings=[{"text": text}])) == [("t1", verdict)]
