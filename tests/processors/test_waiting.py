"""What may happen to a turn while it waits for its room, and what an operator's word does then."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, D1, POLICY, Feed, authorized, codes, ready, ref, verdicts
from turngate.schemas.inputs import Tick
from turngate.schemas.outputs import RecordRefused

NOBODY = POLICY.replace('mesh: {accounts: ["slack:T1/UBOT"]}, ', "")


def held() -> Feed:
    """A draft about public evidence waits for its room."""
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    feed.tick(60_000)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "hold")]
    return feed


def test_a_held_draft_is_decided_when_its_room_is_listed() -> None:  # R-TURN-6: the twin of what follows
    assert verdicts(held().listing(C1, [ALEX])) == [("t1", "deliver")]


@pytest.mark.parametrize("listed", [True, False])
def test_an_agent_that_a_new_policy_does_not_name_says_nothing_more(listed: bool) -> None:  # R-POL-1, R-ROOM-7
    feed = held()
    feed.policy(NOBODY, 2)
    out = feed.listing(C1, [ALEX]) if listed else feed.tick(10_000)
    assert (verdicts(out), codes(out), authorized(out)) == ([("t1", "drop")], {"agent_unknown"}, [])


def test_a_policy_that_still_names_the_agent_lets_it_go_on() -> None:  # R-POL-1
    feed = held()
    feed.policy(POLICY, 2)
    assert verdicts(feed.listing(C1, [ALEX])) == [("t1", "deliver")]


@pytest.mark.parametrize(("edited", "verdict"), [(False, "deliver"), (True, "drop")])
def test_an_edit_of_a_held_trigger_counts(edited: bool, verdict: str) -> None:  # R-AUD-6, R-TURN-2
    feed = ready(C1, [ALEX])
    feed.message(C1, 1)
    feed.tick(60_000)
    feed.draft(C1, "t1", trigger=ref(C1, 1))
    if edited:
        feed.changed(C1)
        feed.message(C1, 1, edited=True, text="hi, more")  # nobody can say who reads the room now
    assert verdicts(feed.listing(C1, [ALEX], started_at=feed.now)) == [("t1", verdict)]  # too early to settle it


def test_a_pause_drops_what_waits_and_a_lifted_one_lets_later_drafts_go() -> None:  # R-POL-4
    feed = held()
    out = feed.pause("c1", True)
    assert (verdicts(out), codes(out)) == ([("t1", "drop")], {"paused"})
    feed.listing(C1, [ALEX])
    assert codes(feed.draft(C1, "t2", exposed=("tool:c",))) == {"paused"}
    feed.pause("c2", False)
    assert verdicts(feed.draft(C1, "t3", exposed=("tool:c",))) == [("t3", "deliver")]


def test_a_command_told_again_does_not_undo_a_later_one() -> None:  # R-RUN-4, R-POL-4
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    feed.pause("c1", True)
    feed.pause("c2", False)
    feed.pause("c1", True)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    feed.pause("c3", True)
    feed.pause("c2", False)
    assert codes(feed.draft(C1, "t2", exposed=("tool:c",))) == {"paused"}


def test_a_pause_in_one_room_stops_nothing_elsewhere() -> None:  # R-POL-4
    feed = ready(C1, [ALEX])
    feed.listing(D1, [ALEX])
    feed.tool(C1, "c")
    feed.pause("c1", True, room=C1)
    assert codes(feed.draft(C1, "t1", exposed=("tool:c",))) == {"paused"}
    assert verdicts(feed.draft(D1, "t2", exposed=("tool:c",))) == [("t2", "deliver")]
    feed.pause("c2", False)  # lifts what stops the agent everywhere, which nothing did
    assert codes(feed.draft(C1, "t3", exposed=("tool:c",))) == {"paused"}


def test_a_tick_on_another_topic_is_no_tick() -> None:  # contract section 6
    feed = Feed()
    tick = Tick(tenant="0", at=feed.now)
    (dead,) = feed.send(tick, topic="turn-drafts")
    assert isinstance(dead, RecordRefused)
    assert dead.code == "invalid"
    assert feed.send(tick) == []


def test_a_pause_in_one_room_drops_what_waits_there_alone() -> None:  # R-POL-4
    feed = held()
    feed.listing(D1, [ALEX], started_at=feed.now - 120_000)
    feed.draft(D1, "t2", exposed=("tool:c",))
    assert verdicts(feed.pause("c1", True, room=D1)) == [("t2", "drop")]
    assert verdicts(feed.listing(C1, [ALEX])) == [("t1", "deliver")]


def test_a_policy_told_again_is_not_refused() -> None:  # R-RUN-4, R-POL-3
    feed = Feed()
    assert feed.policy() == feed.policy() == []
    feed.policy(NOBODY, 2)
    assert feed.policy() == []
    assert [type(r) for r in feed.policy(NOBODY, 1)] == [RecordRefused]


@pytest.mark.parametrize("members", [[], [ALEX]])
def test_a_listing_that_does_not_make_the_room_known_and_fresh_decides_nothing(members: list[str]) -> None:
    feed = held()  # R-TURN-6
    begun = feed.now - (60_000 if members else 0)
    assert feed.listing(C1, members, started_at=begun, refresh="late") == []
    assert verdicts(feed.listing(C1, [ALEX])) == [("t1", "deliver")]
