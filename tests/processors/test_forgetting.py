"""What is forgotten must not be decided again, nor depend on when or in which order it was removed."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, D1, POLICY, Feed, codes, ready, ref, verdicts
from turngate.schemas.inputs import AgentPaused
from turngate.schemas.outputs import RecordRefused, RoomForgotten
from turngate.schemas.shapes import AuthorKind


def forgetful(retention: str) -> Feed:
    feed = Feed()
    feed.policy(POLICY + f"retention: {{{retention}}}\n")
    feed.listing(C1, [ALEX])
    feed.tool(C1, "c")
    return feed


def test_what_waits_is_decided_however_short_its_id_is_kept() -> None:  # R-TURN-9, R-RET-2
    feed = forgetful("log: 0s, messages: 0s, room_inactive: 0s, room_empty: 0s")
    feed.tick(60_000)
    feed.context(C1, "r", "t1")
    assert verdicts(feed.draft(C1, "t2", at=feed.now + 60_000)) == [("t2", "hold")]
    feed.tick()
    assert verdicts(feed.tick(10_000)) == [("t2", "downgrade")]


def test_a_draft_told_again_is_known_as_long_as_drafts_are_taken_up() -> None:  # R-RUN-4, R-RET-4
    feed = forgetful("log: 1s, messages: 1h")
    at = feed.now
    assert verdicts(feed.draft(C1, "t1", at=at, exposed=("tool:c",))) == [("t1", "deliver")]
    feed.tick(60_000)
    feed.listing(C1, [ALEX])
    assert feed.draft(C1, "t1", at=at, exposed=("tool:c",)) == []
    feed.tick(3_600_000)
    assert codes(feed.draft(C1, "t1", at=at, exposed=("tool:c",))) == {"deadline_passed"}


@pytest.mark.parametrize("swept", [False, True])
def test_a_message_that_has_ended_is_missing_and_was_nobody_elses(swept: bool) -> None:  # R-RET-4, R-AUD-3
    feed = forgetful("messages: 30s")
    feed.message(C1, 1)
    feed.message(C1, 2, agent="scout", author_kind=AuthorKind.PERSON)
    feed.tick(29_500 if not swept else 40_000)
    feed.listing(C1, [ALEX])
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1))) == {"source_missing"}


def test_what_another_agent_still_has_is_still_anothers() -> None:  # R-AUD-3
    feed = forgetful("messages: 30s")
    feed.message(C1, 1)
    feed.listing(D1, [ALEX])
    feed.tick(20_000)
    feed.message(C1, 1, agent="scout")
    feed.tick(10_000)  # Mesh's observation has ended, Scout's has not
    feed.listing(C1, [ALEX])
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1))) == {"other_agent"}


def test_the_twin_that_is_kept_is_delivered() -> None:  # R-RET-4
    feed = ready(C1, [ALEX])
    feed.message(C1, 1)
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", "deliver")]


@pytest.mark.parametrize("refused", [False, True])
def test_a_room_that_a_refused_record_named_is_forgotten_in_its_time(refused: bool) -> None:  # R-RET-1, R-RUN-3
    feed = Feed()
    feed.policy(POLICY + "retention: {room_empty: 30s}\n")
    if refused:
        pause = AgentPaused(tenant="acme", at=feed.now, command="c", operator="ops", agent="mesh", room=C1, paused=True)
        (dead,) = feed.send(pause, topic="memory-writes")
        assert isinstance(dead, RecordRefused)
        feed.tick(60_000)
    feed.listing(C1, [ALEX])
    assert [type(r) for r in feed.tick(30_000)] == [RoomForgotten]
