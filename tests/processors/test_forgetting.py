"""What is forgotten must not be decided again, nor depend on when or in which order it was removed."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, D1, POLICY, Feed, codes, ready, ref, verdicts
from turngate.schemas.inputs import AgentPaused
from turngate.schemas.outputs import EvidenceRecorded, RecordRefused, RoomForgotten
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


@pytest.mark.parametrize(("after", "status"), [(14_000, "known"), (30_000, "unknown")])
def test_what_is_quoted_has_ended_by_when_it_was_observed_not_by_when_it_was_said(after: int, status: str) -> None:
    feed = forgetful("messages: 30s")  # R-RET-4, R-AUD-6
    feed.message(C1, 1, at=feed.now - 20_000)
    feed.tick(after)
    feed.listing(C1, [ALEX])
    (recorded,) = feed.message(C1, 2, quotes=(ref(C1, 1),))
    assert isinstance(recorded, EvidenceRecorded)
    assert recorded.status.value == status


@pytest.mark.parametrize(("age", "taken"), [(29_999, True), (30_000, False)])
def test_a_result_that_is_too_old_is_not_taken_up(age: int, taken: bool) -> None:  # R-RET-4
    feed = forgetful("messages: 30s")
    out = feed.tool(C1, "old", at=feed.now + 1000 - age)
    assert any(isinstance(r, EvidenceRecorded) for r in out) is taken
    assert codes(feed.draft(C1, "t1", exposed=("tool:old",))) == (set() if taken else {"source_missing"})


def test_a_result_that_was_forgotten_with_its_room_is_not_taken_up_again() -> None:  # R-RET-1
    feed = forgetful("room_inactive: 30s")
    read = feed.now
    assert any(isinstance(r, RoomForgotten) for r in feed.tick(30_000))
    feed.listing(C1, [ALEX])
    assert feed.tool(C1, "c", at=read) == []
    feed.tool(C1, "c2")
    assert codes(feed.draft(C1, "t1", exposed=("tool:c",))) == {"source_missing"}
    assert verdicts(feed.draft(C1, "t2", exposed=("tool:c2",))) == [("t2", "deliver")]


@pytest.mark.parametrize(("idle", "expected"), [(1_000, set()), (30_000, {"source_unknown"})])
def test_what_was_let_out_before_its_room_was_forgotten_proves_nothing_said_there_since(
    idle: int, expected: set[str]
) -> None:  # R-RET-1, R-AUD-7
    feed = forgetful("room_inactive: 30s")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    feed.tick(idle)
    feed.listing(C1, [ALEX])
    feed.message(C1, 9, author=None, author_kind=AuthorKind.SELF, turn="t1")
    assert codes(feed.draft(C1, "t2", exposed=(ref(C1, 9),))) == expected


def test_a_message_from_the_future_that_was_forgotten_with_its_room_is_not_observed_anew() -> None:  # R-RET-1, R-TIME-1
    feed = forgetful("messages: 30s, room_inactive: 10s")
    said = feed.now + 20_000
    feed.message(C1, 1, at=said)
    assert any(isinstance(r, RoomForgotten) for r in feed.tick(10_000))
    feed.tick(32_000)  # as long as what was said then is kept, but not what is said by its own time
    feed.listing(C1, [ALEX])
    assert feed.message(C1, 1, at=said) == []
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1))) == {"source_missing"}
    feed.message(C1, 2, at=said)
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 2))) == [("t2", "deliver")]
