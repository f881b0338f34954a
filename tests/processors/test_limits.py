"""R-TIME-1: a limit has passed at the instant it is reached. Each limit is held a millisecond before it and at it."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, KIM, Feed, codes, ready, ref, verdicts
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, EvidenceRecorded, RefreshRequested
from turngate.schemas.shapes import LATEST


def started() -> Feed:
    feed = Feed()
    feed.policy()
    return feed


def status(out: list[Record]) -> list[str]:
    """Whether evidence in these records is known."""
    return [r.status.value for r in out if isinstance(r, EvidenceRecorded)]


@pytest.mark.parametrize(("age", "verdict"), [(59_999, "deliver"), (60_000, "hold")])
def test_a_listing_is_fresh_for_less_than_a_minute(age: int, verdict: str) -> None:  # R-ROOM-10
    feed = started()
    feed.tool(C1, "c")
    feed.listing(C1, [ALEX], started_at=feed.now)
    assert verdicts(feed.draft(C1, "t1", after=age - 1000, exposed=("tool:c",))) == [("t1", verdict)]


@pytest.mark.parametrize(("age", "known"), [(3_599_999, "known"), (3_600_000, "unknown")])
def test_a_message_is_known_by_a_listing_of_less_than_an_hour(age: int, known: str) -> None:  # R-ROOM-10
    feed = started()
    feed.listing(C1, [ALEX], started_at=feed.now)
    assert status(feed.message(C1, 1, after=age - 1000)) == [known]


@pytest.mark.parametrize(("ahead", "verdict"), [(5_000, "deliver"), (5_001, "hold")])
def test_a_listing_may_be_ahead_by_the_skew_and_no_more(ahead: int, verdict: str) -> None:  # R-TIME-2
    feed = started()
    feed.tool(C1, "c")
    feed.listing(C1, [ALEX], started_at=feed.now + 1000 + ahead)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", verdict)]


@pytest.mark.parametrize(("later", "settles"), [(0, False), (1, True), (29_999, True), (30_000, False)])
def test_a_listing_settles_what_was_said_before_it_for_half_a_minute(later: int, settles: bool) -> None:  # R-AUD-9
    feed = started()
    feed.message(C1, 1)
    out = feed.listing(C1, [ALEX], after=40_000, started_at=feed.now + later)
    assert status(out) == (["known"] if settles else [])


@pytest.mark.parametrize(("later", "settles"), [(-1, True), (0, False), (1, False)])
def test_a_change_at_the_message_keeps_it_from_settling(later: int, settles: bool) -> None:  # R-AUD-9
    feed = started()
    feed.message(C1, 1)
    said = feed.now
    feed.changed(C1, at=said + later)
    assert status(feed.listing(C1, [ALEX])) == (["known"] if settles else [])


@pytest.mark.parametrize(("later", "verdict"), [(-1, "deliver"), (0, "drop")])
def test_who_joined_at_the_message_did_not_hear_it(later: int, verdict: str) -> None:  # R-AUD-9
    feed = started()
    feed.message(C1, 1)
    feed.joined(C1, KIM, at=feed.now + later)
    feed.listing(C1, [ALEX, KIM])
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", verdict)]


@pytest.mark.parametrize(("left", "code"), [(0, "deadline_passed"), (1, None)])
def test_a_draft_is_decided_before_its_deadline(left: int, code: str | None) -> None:  # R-TURN-9
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    out = feed.draft(C1, "t1", deadline=feed.now + 1000 + left, exposed=("tool:c",))
    assert codes(out) == ({code} if code else set())


@pytest.mark.parametrize(("waited", "ended"), [(4_999, False), (5_000, True)])
def test_a_hold_ends_with_its_time(waited: int, ended: bool) -> None:  # R-TURN-6, R-TURN-9
    feed = started()
    feed.draft(C1, "t1", exposed=("tool:c",))
    feed.context(C1, "r", "t2", after=0)
    out = feed.tick(waited)
    assert bool(verdicts(out)) is ended
    assert any(isinstance(r, ContextDecided) for r in out) is ended


@pytest.mark.parametrize(("waited", "ended"), [(1_999, False), (2_000, True)])
def test_a_deadline_shortens_a_hold(waited: int, ended: bool) -> None:  # R-TURN-6
    feed = started()
    feed.draft(C1, "t1", deadline=feed.now + 3_000, exposed=("tool:c",))
    assert bool(verdicts(feed.tick(waited))) is ended


@pytest.mark.parametrize(("later", "asked"), [(4_999, False), (5_000, True)])
def test_a_refresh_is_asked_for_again_after_the_hold(later: int, asked: bool) -> None:  # R-TURN-6
    feed = started()
    feed.draft(C1, "t1", exposed=("tool:c",))
    out = feed.draft(C1, "t2", after=later, exposed=("tool:c",))
    assert any(isinstance(r, RefreshRequested) for r in out) is asked


def test_what_is_due_together_is_done_in_order_of_arrival() -> None:  # R-TIME-4
    feed = started()
    feed.draft(C1, "t1", exposed=("tool:c",))
    feed.draft(C1, "t2", deadline=feed.now + 3_000, exposed=("tool:c",))  # due earlier
    assert [turn for turn, _ in verdicts(feed.tick(60_000))] == ["t1", "t2"]


@pytest.mark.parametrize(("over", "verdict"), [(0, "deliver"), (1, "drop")])
def test_nothing_is_valid_beyond_the_last_time_that_a_record_can_name(over: int, verdict: str) -> None:  # R-RUN-6
    feed = Feed(now=LATEST - 63_000)
    feed.policy()
    feed.tool(C1, "c")
    feed.listing(C1, [ALEX], started_at=LATEST - 60_000 + over)
    out = feed.draft(C1, "t1", after=2_000, exposed=("tool:c",))
    assert verdicts(out) == [("t1", verdict)]
    assert codes(out) == (set() if verdict == "deliver" else {"decision_error"})
