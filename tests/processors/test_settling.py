"""Who could read what was said in a room that was not known then: never more than any listing around it allows."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, KIM, MORGAN, POLICY, Feed, ready, ref, verdicts
from turngate.processors.evidence import MOST_PENDING
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import EvidenceRecorded, RefreshRequested
from turngate.schemas.shapes import Audience


def settled(out: list[Record]) -> tuple[str, ...]:
    """Whom the one piece of evidence in these records permits."""
    (recorded,) = (r for r in out if isinstance(r, EvidenceRecorded))
    audience: Audience = recorded.leaves[0].audience
    return audience.readers


def started() -> Feed:
    feed = Feed()
    feed.policy()
    return feed


def test_a_message_settles_on_a_listing_begun_after_it() -> None:  # R-AUD-9
    feed = started()
    feed.message(C1, 1)
    assert settled(feed.listing(C1, [ALEX, KIM])) == (ALEX, KIM)
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", "deliver")]


@pytest.mark.parametrize("late", [False, True])
def test_a_join_told_again_makes_nobody_a_member_of_then(late: bool) -> None:  # R-AUD-9, R-ROOM-4, R-RUN-4
    feed = started()
    joined = feed.now
    feed.joined(C1, KIM, at=joined)
    feed.listing(C1, [ALEX])  # Kim had left again, and nobody told
    feed.joined(C1, MORGAN)
    if late:
        feed.joined(C1, KIM, at=joined)
    feed.message(C1, 1)
    assert settled(feed.listing(C1, [ALEX, KIM])) == (ALEX,)


def test_a_join_first_told_after_the_listing_before_makes_a_member_of_then() -> None:  # R-AUD-9: the twin
    feed = ready(C1, [ALEX])
    feed.joined(C1, KIM)
    feed.message(C1, 1)
    assert settled(feed.listing(C1, [ALEX, KIM])) == (ALEX, KIM)


@pytest.mark.parametrize(("earlier", "readers"), [([ALEX], (ALEX,)), ([ALEX, KIM], (ALEX, KIM))])
def test_an_earlier_listing_that_came_after_the_message_bounds_it_too(
    earlier: list[str], readers: tuple[str, ...]
) -> None:  # R-AUD-9: a join that nobody reported since that listing began is not let in
    feed = started()
    begun = feed.now
    feed.message(C1, 1)
    out = feed.listing(C1, earlier, started_at=begun, refresh="slow")
    assert [type(r) for r in out] == [RefreshRequested]  # it began before the message: another is asked for
    assert settled(feed.listing(C1, [ALEX, KIM])) == readers


def test_an_earlier_listing_that_was_open_leaves_the_message_unknown() -> None:  # R-AUD-9
    feed = started()
    begun = feed.now
    feed.message(C1, 1)
    feed.listing(C1, [], started_at=begun, refresh="slow", info={"visibility": "open"})
    out = feed.listing(C1, [ALEX])
    assert settled(out) == ()
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", "drop")]


def test_a_change_before_the_message_voids_the_listing_before() -> None:  # R-AUD-9, R-ROOM-5
    for changed, readers in ((False, (ALEX,)), (True, (ALEX, KIM))):
        feed = ready(C1, [ALEX])
        feed.joined(C1, MORGAN)
        at = feed.now
        feed.message(C1, 1, after=2000)
        if changed:
            feed.changed(C1, at=at + 1)
        assert settled(feed.listing(C1, [ALEX, KIM])) == readers


def test_who_joined_at_or_after_the_message_is_left_out() -> None:  # R-AUD-9
    feed = started()
    feed.message(C1, 1)
    said = feed.now
    feed.joined(C1, KIM, at=said)
    feed.joined(C1, MORGAN, at=said - 1)
    feed.left(C1, ALEX, at=said)
    assert settled(feed.listing(C1, [ALEX, KIM, MORGAN])) == (ALEX, MORGAN)


@pytest.mark.parametrize(("ahead", "asks"), [(4_000, True), (3_600_000, False)])
def test_a_message_from_the_future_does_not_have_its_room_listed_without_end(ahead: int, asks: bool) -> None:
    feed = started()  # R-AUD-9, R-TIME-2: no listing that may be used is begun after it
    feed.message(C1, 1, at=feed.now + ahead)
    out = feed.listing(C1, [ALEX])
    assert any(isinstance(r, RefreshRequested) for r in out) is asks
    feed.tick(ahead)
    assert settled(feed.listing(C1, [ALEX])) == (ALEX,)  # and then it settles all the same


def test_a_room_that_nobody_lists_does_not_remember_every_join() -> None:  # R-ROOM-4, R-ROOM-10
    feed = started()
    feed.draft(C1, "t1", exposed=("tool:c",))  # the agent knows of the room
    for n in range(1000):
        feed.joined(C1, f"slack:T1/U{n}", after=60_000)
    (log,) = feed.engine._tables.room_logs.rows.values()
    assert len(log.events) < 400
    feed.message(C1, 1)
    assert settled(feed.listing(C1, [ALEX])) == (ALEX,)


@pytest.mark.parametrize(("earlier", "verdict"), [(None, "downgrade"), ("members", "drop"), ("open", "downgrade")])
def test_a_word_was_said_in_the_open_only_if_every_listing_around_it_was(earlier: str | None, verdict: str) -> None:
    feed = Feed()  # R-AUD-9, R-AUD-10
    feed.policy(POLICY + "open_rooms: own_words\nnotice: null\n")
    if earlier is not None:
        feed.listing(C1, [ALEX], info={"visibility": earlier})
        feed.tick(3_600_000)
    feed.message(C1, 1)
    feed.listing(C1, [ALEX], info={"visibility": "open"})
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", verdict)]


def each_settled(out: list[Record]) -> list[tuple[str, ...]]:
    """Whom each piece of evidence in these records permits."""
    return [r.leaves[0].audience.readers for r in out if isinstance(r, EvidenceRecorded)]


@pytest.mark.parametrize(("earlier", "joins", "later"), [([ALEX, KIM], False, [ALEX]), ([ALEX], True, [ALEX])])
def test_messages_that_settle_together_have_each_its_own_listing_before(
    earlier: list[str], joins: bool, later: list[str]
) -> None:  # R-AUD-9
    feed = Feed()
    feed.policy(POLICY + "freshness: {observation: 1s}\n")
    feed.listing(C1, earlier)
    if joins:
        feed.joined(C1, KIM)
    feed.message(C1, 1, after=2000)
    feed.listing(C1, later, started_at=feed.now - 1)
    feed.message(C1, 2, after=2000)
    assert each_settled(feed.listing(C1, [ALEX, KIM])) == [(ALEX, KIM), (ALEX,)]


def test_messages_that_settle_together_have_each_those_who_had_not_joined_by_then() -> None:  # R-AUD-9
    feed = started()
    said = feed.now
    feed.message(C1, "later", at=said + 2)
    feed.joined(C1, KIM, at=said + 1)
    feed.message(C1, "earlier", at=said)
    assert each_settled(feed.listing(C1, [ALEX, KIM])) == [(ALEX, KIM), (ALEX,)]


@pytest.mark.parametrize(("leaves_last", "readers"), [(True, (ALEX,)), (False, (ALEX, KIM))])
def test_joins_and_leaves_since_the_listing_before_count_as_they_came(
    leaves_last: bool, readers: tuple[str, ...]
) -> None:  # R-AUD-9: not by what they say of their time
    feed = ready(C1, [ALEX])
    told = feed.now
    tell = [feed.joined, feed.left] if leaves_last else [feed.left, feed.joined]
    for ago, event in enumerate(tell):
        event(C1, KIM, at=told + 10 - ago)
    feed.joined(C1, MORGAN)
    feed.message(C1, 1)
    assert settled(feed.listing(C1, [ALEX, KIM])) == readers


@pytest.mark.parametrize(("agent", "readers"), [("scout", (ALEX,)), ("mesh", (ALEX, KIM)), (None, (ALEX, KIM))])
def test_a_join_that_another_agent_was_told_of_lets_nobody_in(agent: str | None, readers: tuple[str, ...]) -> None:
    feed = ready(C1, [ALEX])  # R-AUD-9, R-ROOM-4
    feed.joined(C1, KIM, agent=agent)
    feed.joined(C1, MORGAN)
    feed.message(C1, 1)
    assert settled(feed.listing(C1, [ALEX, KIM])) == readers


def test_an_edit_settles_by_itself_beside_what_was_said_before() -> None:  # R-AUD-6, R-AUD-9, R-EVI-1
    feed = ready(C1, [ALEX])
    feed.message(C1, 1)
    feed.changed(C1)
    feed.message(C1, 1, edited=True, text="bye")
    (recorded,) = (r for r in feed.listing(C1, [ALEX, KIM]) if isinstance(r, EvidenceRecorded))
    assert {leaf.audience.readers for leaf in recorded.leaves} == {(ALEX,), (ALEX, KIM)}
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", "drop")]
    feed.listing(C1, [ALEX])
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 1))) == [("t2", "deliver")]


def test_what_has_too_many_leaves_by_now_stays_unknown_and_spoils_no_listing() -> None:  # R-EVI-5, R-AUD-9
    feed = Feed()
    feed.policy(POLICY + "evidence: {max_leaves: 1}\n")
    feed.message(C1, 1)
    feed.message(C1, 2)
    feed.message(C1, 1, edited=True, text="bye", quotes=(ref(C1, 9),))
    assert settled(feed.listing(C1, [ALEX, KIM])) == (ALEX, KIM)  # that of the other
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", "drop")]
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 2))) == [("t2", "deliver")]


@pytest.mark.timeout(20)
def test_many_messages_of_a_large_room_settle_in_time_that_grows_with_its_members_alone() -> None:
    """With a look through all members for each member, this takes minutes."""
    members = [f"slack:T1/U{n:05}" for n in range(20_000)]
    feed = ready(C1, members)
    feed.joined(C1, KIM)
    for n in range(100):
        feed.message(C1, n, after=1)
    listed = feed.listing(C1, [*members, KIM])
    recorded = [r for r in listed if isinstance(r, EvidenceRecorded)]
    assert [len(r.leaves[0].audience.readers) for r in recorded] == [20_001] * 100


def asks_and_settles(feed: Feed) -> tuple[bool, bool]:
    """Whether a message has its room listed, and whether a listing then settles it."""
    feed.tick(10_000)  # what was asked for before is no longer under way
    asked = any(isinstance(r, RefreshRequested) for r in feed.message(C1, 1))
    return asked, any(isinstance(r, EvidenceRecorded) for r in feed.listing(C1, [ALEX, KIM]))


@pytest.mark.parametrize(("later", "waits"), [(-1, False), (0, True)])
def test_a_join_at_the_instant_a_listing_began_makes_what_is_said_wait(later: int, waits: bool) -> None:  # R-AUD-9
    feed = started()
    begun = feed.now
    feed.joined(C1, KIM, at=begun + later)  # told before the listing came
    feed.listing(C1, [ALEX], started_at=begun)
    assert asks_and_settles(feed) == (waits, waits)


@pytest.mark.parametrize(("again", "waits"), [(True, False), (False, True)])
def test_a_leave_that_is_only_told_again_makes_nothing_wait(again: bool, waits: bool) -> None:  # R-AUD-9, R-RUN-4
    feed = started()
    left = feed.now
    if again:
        feed.left(C1, KIM, at=left)
    feed.listing(C1, [ALEX, KIM])
    feed.left(C1, KIM, at=left)
    feed.joined(C1, KIM)
    assert asks_and_settles(feed) == (waits, waits)


@pytest.mark.parametrize(("again", "waits"), [(True, False), (False, True)])
def test_a_join_that_is_only_told_again_makes_nothing_wait(again: bool, waits: bool) -> None:  # R-AUD-9, R-EVI-1
    feed = started()
    told = feed.now
    if again:
        feed.joined(C1, KIM, at=told)
    feed.listing(C1, [ALEX])
    feed.joined(C1, KIM, at=told)
    assert asks_and_settles(feed) == (waits, waits)


def test_of_too_many_messages_that_wait_the_oldest_stay_unknown() -> None:  # R-AUD-9
    feed = started()
    for number in range(MOST_PENDING + 1):
        feed.message(C1, number, after=10)
    out = feed.listing(C1, [ALEX])
    told = [r.ref for r in out if isinstance(r, EvidenceRecorded)]
    assert told == [ref(C1, number) for number in range(1, MOST_PENDING + 1)]
