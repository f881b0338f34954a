"""Pages that contradict one another make no listing, and events are forgotten only when nothing can need them."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, C2, EPOCH, KIM, MORGAN, Feed, authorized, ready, ref, verdicts
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import EvidenceRecorded

#: A page: its number, whether it says to be the last, and whom it names.
Pages = list[tuple[int, bool, str]]
HOUR = 3_600_000


def started() -> Feed:
    feed = Feed()
    feed.policy()
    return feed


def heard(pages: Pages) -> tuple[str, ...] | None:
    """Who would hear a draft after these pages of one listing; None: nobody knows."""
    feed = started()
    begun = feed.now
    feed.tool(C1, "c")
    for number, last, reader in pages:
        out = feed.listing(C1, [reader], refresh="r", started_at=begun, page=number, last=last)
        assert out == []
    sent = authorized(feed.draft(C1, "t1", exposed=("tool:c",)))
    return sent[0].destination.readers if sent else None


@pytest.mark.parametrize(
    ("pages", "readers"),
    [
        ([(0, False, ALEX), (1, True, KIM)], (ALEX, KIM)),
        ([(1, True, KIM), (0, False, ALEX)], (ALEX, KIM)),
        ([(0, False, ALEX), (0, False, ALEX), (1, True, KIM)], (ALEX, KIM)),  # the same again
        ([(0, False, ALEX), (0, False, MORGAN), (1, True, KIM)], None),  # another page of the same number
        ([(0, False, ALEX), (0, False, MORGAN), (2, True, KIM)], None),
        ([(1, True, KIM), (3, True, MORGAN), (0, False, ALEX), (2, False, ALEX)], None),  # two that say to be the last
        ([(3, True, KIM), (1, True, MORGAN), (0, False, ALEX)], None),
        ([(2, False, KIM), (1, True, MORGAN), (0, False, ALEX)], None),  # one beyond the last
        ([(1, True, KIM)], None),
        ([(0, False, ALEX)], None),
    ],
)
def test_a_listing_is_what_all_of_its_pages_agree_on(pages: Pages, readers: tuple[str, ...] | None) -> None:  # R-ROOM-2
    assert heard(pages) == readers


def test_of_two_listings_begun_together_the_later_arrival_counts() -> None:  # R-ROOM-3
    feed = started()
    feed.tool(C1, "c")
    begun = feed.now
    feed.listing(C1, [ALEX, KIM], started_at=begun)
    feed.listing(C1, [ALEX], started_at=begun)
    (sent,) = authorized(feed.draft(C1, "t1", exposed=("tool:c",)))
    assert sent.destination.readers == (ALEX,)


def test_a_listing_told_again_brings_nothing_back() -> None:  # R-ROOM-3, R-RUN-4
    feed = started()
    feed.tool(C1, "c")
    begun = feed.now
    for refresh, members in (("a", [ALEX, KIM]), ("b", [ALEX]), ("a", [ALEX, KIM])):
        feed.listing(C1, members, refresh=refresh, started_at=begun)
    (sent,) = authorized(feed.draft(C1, "t1", exposed=("tool:c",)))
    assert sent.destination.readers == (ALEX,)


@pytest.mark.parametrize(
    ("other", "whole"),
    [({}, True), ({"agent": "scout"}, False), ({"room": C2}, False), ({"started_at": EPOCH + 1500}, False)],
)
def test_pages_of_one_listing_name_one_room_agent_and_start(other: dict[str, object], whole: bool) -> None:
    feed = started()  # R-ROOM-2
    fields = {"refresh": "r", "started_at": feed.now, "room": C1, "agent": "mesh"}
    feed.listing(members=[ALEX], last=False, **fields)
    feed.listing(members=[KIM], page=1, **fields | other)
    out = [feed.draft(room, f"{agent}-{room}", agent=agent) for room in (C1, C2) for agent in ("mesh", "scout")]
    listed = [to for told in out for to, verdict in verdicts(told) if verdict != "hold"]
    assert listed == ([f"mesh-{C1}"] if whole else [])


def test_pages_of_a_listing_begun_together_with_one_that_is_whole_still_count() -> None:  # R-ROOM-2, R-ROOM-3
    feed = started()
    feed.tool(C1, "c")
    begun = feed.now
    feed.listing(C1, [ALEX], refresh="slow", started_at=begun, last=False)
    feed.listing(C1, [ALEX, MORGAN], refresh="whole", started_at=begun)
    feed.listing(C1, [KIM], refresh="slow", started_at=begun, page=1)
    (sent,) = authorized(feed.draft(C1, "t1", exposed=("tool:c",)))
    assert sent.destination.readers == (ALEX, KIM)


def test_an_event_told_again_counts_again() -> None:  # R-ROOM-4
    feed = started()
    joined = feed.now
    feed.joined(C1, KIM, at=joined)
    feed.listing(C1, [ALEX])
    feed.message(C1, 1)
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 1))) == [("t1", "deliver")]
    feed.joined(C1, KIM, at=joined)
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 1))) == [("t2", "drop")]


def readers(out: list[Record]) -> tuple[str, ...]:
    (recorded,) = (r for r in out if isinstance(r, EvidenceRecorded))
    return recorded.leaves[0].audience.readers


@pytest.mark.parametrize(("later", "expected"), [(-1, (ALEX, KIM)), (0, (ALEX,))])
def test_a_join_is_remembered_while_a_message_said_by_then_waits(later: int, expected: tuple[str, ...]) -> None:
    feed = started()  # R-AUD-9
    feed.message(C1, 1)
    said = feed.now
    feed.joined(C1, KIM, at=said + later)
    feed.tick(2 * HOUR)
    feed.listing(C1, [ALEX], agent="scout")  # looks for what can be forgotten
    assert readers(feed.listing(C1, [ALEX, KIM], started_at=said + 1)) == expected


def test_a_leave_is_remembered_while_it_applies_to_a_listing() -> None:  # R-AUD-9, R-ROOM-4
    feed = ready(C1, [ALEX, KIM])
    feed.left(C1, KIM)
    feed.tick(2 * HOUR)
    feed.listing(C1, [ALEX], agent="scout")
    feed.message(C1, 1)
    assert readers(feed.listing(C1, [ALEX, KIM])) == (ALEX,)


@pytest.mark.parametrize(("later", "expected"), [(-1, (ALEX, KIM)), (0, (ALEX,))])
def test_a_leave_is_remembered_while_a_listing_that_may_have_missed_it_can_come(
    later: int, expected: tuple[str, ...]
) -> None:  # R-ROOM-4, R-ROOM-10
    feed = started()
    begun = feed.now
    feed.left(C1, KIM, at=begun + later)
    feed.tick(HOUR // 2)
    feed.listing(C1, [ALEX], agent="scout")  # looks for what can be forgotten
    feed.listing(C1, [ALEX, KIM], started_at=begun)
    assert readers(feed.message(C1, 1)) == expected


@pytest.mark.parametrize(("leaves", "expected"), [(True, (ALEX,)), (False, (ALEX, KIM))])
def test_a_leave_is_remembered_while_a_message_waits_that_was_said_after_it(
    leaves: bool, expected: tuple[str, ...]
) -> None:  # R-AUD-9
    feed = ready(C1, [ALEX, KIM])
    if leaves:
        feed.left(C1, KIM)
    feed.tick(2 * HOUR)
    feed.message(C1, 1)
    feed.listing(C1, [ALEX, KIM], started_at=feed.now - 1)  # begun before the message: it waits for another
    assert readers(feed.listing(C1, [ALEX, KIM])) == expected
