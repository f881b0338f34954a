"""Listings, joins and leaves: what counts once, what never counts, and what a restart must not change."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, GRID, KIM, SELF, Feed, authorized, codes, ref, verdicts
from turngate.schemas.shapes import MemberKind


def started() -> Feed:
    feed = Feed()
    feed.policy()
    return feed


def may_tell(feed: Feed, turn: str, number: int) -> str:
    """The verdict on a draft that repeats a message of the room in the room itself."""
    return verdicts(feed.draft(C1, turn, trigger=ref(C1, number)))[0][1]


@pytest.mark.parametrize("restart", [False, True])
def test_a_listing_of_the_same_members_ends_what_was_told_before_it(restart: bool) -> None:  # R-ROOM-1, R-ROOM-4
    feed = started()
    feed.listing(C1, [ALEX])
    feed.joined(C1, KIM)
    feed.message(C1, 1)
    assert may_tell(feed, "t1", 1) == "drop"
    feed.listing(C1, [ALEX])  # Kim is not there: the join is older than this listing
    feed.message(C1, 2)
    if restart:
        feed.restart()
    assert may_tell(feed, "t2", 2) == "deliver"


BAD = {
    "an error": {"error": "rate limited"},
    "no kind": {"info": {"kind": None}},
    "no visibility": {"info": {"visibility": None}},
    "no workspaces": {"info": {"visibility": "workspace"}},
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("pages", [1, 2])
def test_a_listing_that_was_no_good_is_not_mended_by_other_pages(bad: str, pages: int) -> None:  # R-ROOM-2
    feed = started()
    begun = feed.now
    feed.tool(C1, "c")
    for fields in (BAD[bad], {}):
        feed.listing(C1, [ALEX], refresh="r", started_at=begun, last=pages == 1, **fields)
        if pages == 2:
            feed.listing(C1, [KIM], refresh="r", started_at=begun, page=1)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "hold")]
    feed.listing(C1, [ALEX], refresh="r2")  # its twin: another listing
    assert verdicts(feed.out)[-1] == ("t1", "deliver")


def test_a_listing_begun_together_with_a_bad_one_still_counts() -> None:  # R-ROOM-2, R-ROOM-3
    feed = started()
    begun = feed.now
    feed.tool(C1, "c")
    feed.listing(C1, [ALEX], refresh="r", started_at=begun, error="rate limited")
    feed.listing(C1, [ALEX], refresh="other", started_at=begun)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]


def test_a_listing_from_the_future_is_never_used_later() -> None:  # R-TIME-2
    feed = started()
    begun = feed.now + 60_000
    feed.listing(C1, [ALEX, KIM], refresh="early", started_at=begun)
    feed.tick(60_000)
    feed.listing(C1, [ALEX], refresh="good", started_at=begun)
    feed.listing(C1, [ALEX, KIM], refresh="early", started_at=begun)
    feed.message(C1, 1)
    assert may_tell(feed, "t1", 1) == "deliver"
    assert authorized(feed.out)[-1].destination.readers == (ALEX,)


def test_pages_in_any_order_and_twice_make_one_listing() -> None:  # R-ROOM-2, R-RUN-4
    feed = started()
    begun = feed.now
    feed.tool(C1, "c")
    for page in (1, 1, 0, 0, 1):
        feed.listing(C1, [(ALEX, KIM)[page]], refresh="r", started_at=begun, page=page, last=page == 1)
    feed.draft(C1, "t1", exposed=("tool:c",))
    assert authorized(feed.out)[-1].destination.readers == (ALEX, KIM)


def test_whoever_is_listed_twice_is_the_lesser_of_the_two() -> None:  # R-ROOM-7
    feed = started()
    twice = [{"reader": KIM, "kind": "member"}, {"reader": KIM, "kind": "guest"}, {"reader": SELF, "kind": "self"}]
    feed.listing(C1, twice, info={"visibility": "workspace", "workspaces": ["slack:T1"]})
    feed.tool(C1, "c", server="wiki")
    assert codes(feed.draft(C1, "t1", exposed=("tool:c",))) == {"audience_not_subset"}
    feed.listing(C1, twice[:1], info={"visibility": "workspace", "workspaces": ["slack:T1"]})
    assert verdicts(feed.draft(C1, "t2", exposed=("tool:c",))) == [("t2", "deliver")]


@pytest.mark.parametrize("order", [(("slack:T1",), ()), ((), ("slack:T1",))])
def test_whoever_is_listed_twice_is_a_member_where_both_say_so(order: tuple[tuple[str, ...], ...]) -> None:  # R-ROOM-7
    feed = started()
    feed.tool(C1, "c", server="wiki")
    feed.listing(C1, [{"reader": GRID, "kind": "member", "workspaces": further} for further in order])
    assert codes(feed.draft(C1, "t1", exposed=("tool:c",))) == {"audience_not_subset"}
    feed.listing(C1, 2 * [{"reader": GRID, "kind": "member", "workspaces": ("slack:T1",)}])
    assert verdicts(feed.draft(C1, "t2", exposed=("tool:c",))) == [("t2", "deliver")]


@pytest.mark.parametrize("order", [(("slack:T2",), ()), ((), ("slack:T2",))])
def test_joins_that_differ_leave_a_reader_what_all_of_them_say(order: tuple[tuple[str, ...], ...]) -> None:  # R-ROOM-4
    feed = Feed()
    feed.policy('version: 1\nagents: {mesh: {}}\ntools: {wiki: {audience: {workspaces: ["slack:T2"]}}}\n')
    feed.listing(C1, ["slack:T2/UX"])
    feed.tool(C1, "c", server="wiki")
    feed.joined(C1, KIM, workspaces=("slack:T2",))
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    feed.listing(C1, ["slack:T2/UX"])
    for further in order:
        feed.joined(C1, KIM, workspaces=further, kind=MemberKind.MEMBER)
    assert verdicts(feed.draft(C1, "t2", exposed=("tool:c",))) == [("t2", "drop")]


def test_a_room_of_nobody_is_unknown_even_if_somebody_then_joins() -> None:  # R-AUD-1, R-TURN-6
    feed = started()
    feed.listing(C1, [{"reader": SELF, "kind": "self"}])
    feed.message(C1, 1)
    feed.draft(C1, "t1", trigger=ref(C1, 1))
    feed.joined(C1, KIM)
    assert codes(feed.tick(5000)) >= {"destination_unknown"}


@pytest.mark.parametrize("first", [True, False])
def test_a_join_counts_on_top_of_a_listing_that_may_have_missed_it(first: bool) -> None:  # R-ROOM-4
    feed = started()
    feed.message(C1, 1)
    feed.listing(C1, [ALEX])
    feed.tick(10_000)
    begun = feed.now
    if first:  # told before the listing came, and happened after it began
        feed.joined(C1, KIM, at=begun + 1)
    feed.listing(C1, [ALEX], started_at=begun)
    if not first:  # told after it, and happened before it began
        feed.joined(C1, KIM, at=begun - 1)
    assert may_tell(feed, "t1", 1) == "drop"
    feed.listing(C1, [ALEX])
    assert may_tell(feed, "t2", 1) == "deliver"


@pytest.mark.parametrize(("began", "verdict"), [(0, "hold"), (1, "deliver")])
def test_a_changed_room_is_unknown_until_a_listing_begun_after_that(began: int, verdict: str) -> None:  # R-ROOM-5
    feed = started()
    feed.tool(C1, "c")
    feed.changed(C1)
    feed.listing(C1, [ALEX], started_at=feed.now + began)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", verdict)]


@pytest.mark.parametrize("agent", ["mesh", "scout", None])
@pytest.mark.parametrize(("began", "verdict"), [(0, "hold"), (1, "deliver")])
def test_an_earlier_change_told_late_undoes_no_later_one(agent: str | None, began: int, verdict: str) -> None:
    feed = started()  # R-ROOM-5
    feed.tool(C1, "c")
    earlier = feed.now
    feed.changed(C1, agent="mesh")
    later = feed.now
    feed.changed(C1, agent=agent, at=earlier)
    feed.listing(C1, [ALEX], started_at=later + began)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", verdict)]


@pytest.mark.parametrize(("kind", "verdict"), [("member", "deliver"), ("guest", "drop")])
def test_a_listed_member_who_joins_as_a_guest_counts_as_one(kind: str, verdict: str) -> None:  # R-ROOM-6, R-AUD-1
    feed = started()
    feed.listing(C1, [ALEX, KIM])
    feed.tool(C1, "c", server="wiki")
    feed.joined(C1, KIM, kind=kind)
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", verdict)]
