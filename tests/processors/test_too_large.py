"""What cannot be written comes to nothing: its record has failed, and nothing else stops for it (R-RUN-6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.processors.feed import ALEX, C1, D1, Feed, authorized, codes, ready, ref, verdicts
from turngate.processors.engine import Engine
from turngate.processors.erasure import MOST_REFS
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ErasureApplied, EvidenceRecorded, RecordRefused, TurnAuthorized, TurnDecided

CROWD = [f"slack:T1/U{n}" for n in range(100)]


def few(record: Record) -> bool:
    """Records that name a few readers and refs can be written, and no others."""
    audiences = [leaf.audience for leaf in record.leaves] if isinstance(record, EvidenceRecorded) else []
    audiences += [record.destination] if isinstance(record, TurnAuthorized) else []
    refs = record.provenance if isinstance(record, TurnDecided) else ()
    return sum(len(audience.readers) for audience in audiences) < 50 and len(refs) < 50


def after(feed: Feed, then: Callable[[Feed], list[Record]]) -> list[Record]:
    """What comes of a step that leaves no state but the clock's and its place in the chain of decisions."""

    def rows() -> dict[str, object]:
        return {
            name: dict(table.rows) for name, table in feed.engine.state.tables.items() if name not in ("clock", "heads")
        }

    before = rows()
    out = then(feed)
    assert rows() == before
    return out


@pytest.mark.parametrize("members", [[ALEX], CROWD], ids=["few", "a crowd"])
def test_a_turn_for_more_readers_than_can_be_named_is_dropped(members: list[str]) -> None:
    feed = ready(C1, members)
    feed.tool(C1, "c")
    feed.engine.fits = few
    if members == [ALEX]:
        assert verdicts(feed.draft(C1, "t", exposed=("tool:c",))) == [("t", "deliver")]
        return
    out = after(feed, lambda feed: feed.draft(C1, "t", exposed=("tool:c",)))
    assert (verdicts(out), codes(out), authorized(out)) == ([("t", "drop")], {"decision_error"}, [])
    feed.listing(D1, [ALEX])
    assert verdicts(feed.draft(D1, "u", exposed=("tool:c",))) == [("u", "deliver")]  # and the rest goes on


def test_a_turn_that_waited_is_dropped_alone_when_its_room_turns_out_too_large() -> None:
    feed = Feed()
    feed.policy()
    feed.tool(C1, "c")
    assert verdicts(feed.draft(C1, "t", exposed=("tool:c",))) == [("t", "hold")]
    feed.engine.fits = few
    out = feed.listing(C1, CROWD)
    assert (verdicts(out), codes(out)) == ([("t", "drop")], {"decision_error"})
    assert feed.draft(C1, "t", exposed=("tool:c",), at=feed.now - 1000) == []  # its only decision (R-TURN-9)
    feed.engine.fits = lambda _: True
    assert verdicts(feed.draft(C1, "u", exposed=("tool:c",))) == [("u", "deliver")]  # the listing was taken in


def test_a_turn_that_had_more_than_can_be_named_ends_all_the_same() -> None:
    feed = Feed()
    feed.policy()
    feed.context(D1, "q", "t")
    feed.draft(C1, "t")
    for n in range(60):
        feed.tool(C1, f"c{n}", after=1, turn="t")
    feed.engine.fits = few
    out = feed.tick(60_000)
    assert (verdicts(out), codes(out)) == ([("t", "drop")], {"decision_error"})
    assert all(few(record) for record in out)


def test_a_message_in_a_room_too_large_has_no_evidence() -> None:
    feed = ready(C1, CROWD)
    feed.engine.fits = few
    (refused,) = after(feed, lambda feed: feed.message(C1, 1))
    assert isinstance(refused, RecordRefused)
    assert (refused.code, refused.topic) == ("decision_error", "observed-messages")
    assert codes(feed.draft(C1, "t", trigger=ref(C1, 1))) == {"source_missing"}


def test_an_erasure_names_all_it_reached_however_much_that_is() -> None:
    feed = ready(C1, [ALEX])
    for n in range(MOST_REFS + 1):
        feed.message(C1, n, after=1)
    out = feed.make(inputs.ErasureCommanded, command="e", operator="ops", room=C1)
    named = [record.refs for record in out if isinstance(record, ErasureApplied)]
    assert [len(refs) for refs in named] == [MOST_REFS, 1]
    assert {ref for refs in named for ref in refs} == {ref(C1, n) for n in range(MOST_REFS + 1)}
    assert codes(feed.draft(C1, "t", trigger=ref(C1, MOST_REFS))) == {"source_deleted"}


def test_an_engine_of_which_nobody_says_otherwise_writes_everything() -> None:
    assert Engine().fits(inputs.Tick(tenant="0", at=0))
