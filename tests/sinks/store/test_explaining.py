"""What is told of a turn, a source and a reader is what was recorded of them, in both databases alike."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from tests.sinks.store.story import EVE, MINE, THEIRS
from tests.streams.telling import ALEX, C1, D1, KIM
from turngate.schemas.shapes import Audience, Scope
from turngate.sinks.store.audible import who_can_see
from turngate.sinks.store.explaining import explain
from turngate.sinks.store.reaching import Heard, blast_radius
from turngate.sinks.store.tables import AUDIENCES, DELIVERIES, POSITIONS, TRACES
from turngate.sinks.store.told import Told


def told(store: Connection, turn: str) -> Told:
    found = explain(store, "acme", turn)
    assert found is not None
    return found


def codes(reasons: Any) -> list[str]:
    return [reason.code for reason in reasons]


def test_a_refused_turn(store: Connection) -> None:
    story = told(store, "t1")
    (decided,) = story.decisions
    assert (decided.verdict, decided.policy) == ("drop", "1")
    assert story.destination.audience == Audience(readers=(ALEX, KIM))
    assert story.destination.listed_at is not None
    assert story.destination.listed_at < decided.at
    fed = {one.ref: one for one in story.evidence}
    assert {ref: one.permitted for ref, one in fed.items()} == {
        THEIRS: True,
        MINE: False,
        "revision:d@1": False,
        "tool:none": False,
    }
    assert {ref: one.how for ref, one in fed.items()} == {
        THEIRS: "permitted by the context answer r1",
        MINE: "withheld by the context answer r1",
        "revision:d@1": "named by the draft",
        "tool:none": "a tool's result",
    }
    (leaf,) = fed["revision:d@1"].leaves
    assert (leaf.permitted, leaf.codes, leaf.missing) == (False, ("audience_not_subset",), (KIM,))
    assert (leaf.leaf.author, leaf.leaf.room, leaf.leaf.audience) == (ALEX, D1, Audience(readers=(ALEX,)))
    assert (fed["revision:d@1"].memory, fed["revision:d@1"].made_of) == ("d", ("revision:m@1",))
    assert fed["revision:d@1"].ended == "erased"
    assert (fed["tool:none"].leaves, codes(fed["tool:none"].reasons)) == ((), ["source_missing"])
    assert story.codes == ("audience_not_subset", "source_missing")
    assert (story.authorized, story.deliveries, story.unknown) == (False, (), ())


def test_a_turn_that_a_grant_let_out(store: Connection) -> None:
    story = told(store, "t2")
    assert [decided.verdict for decided in story.decisions] == ["deliver"]
    (grant,) = story.grants
    assert (grant.grant, grant.revision, grant.by) == ("g1", "d@1", "operator")  # as it was then; it was revoked since
    assert grant.audience == Audience(readers=(ALEX, KIM))
    (revision,) = [one for one in story.evidence if one.ref == "revision:d@1"]
    assert [(heard.permitted, heard.by) for heard in revision.leaves] == [(True, ("grant g1",))]
    assert [(one.status, one.message) for one in story.deliveries] == [("sent", f"{C1}/9")]
    assert story.authorized
    assert story.codes == ()


def test_what_became_of_it_and_what_no_record_says(store: Connection) -> None:
    withheld = told(store, "t3")
    assert [(one.status, codes(one.reasons)) for one in withheld.deliveries] == [("withheld", ["destination_enlarged"])]
    assert withheld.codes == ("destination_enlarged",)
    assert told(store, "t4").unknown == (
        "what another draft under this turn's id was: it was refused (turn_conflict)",
        "what became of it: no delivery was recorded",
    )
    never_listed = told(store, "t6")
    assert [decided.verdict for decided in never_listed.decisions] == ["hold"]
    assert (never_listed.destination.audience, never_listed.destination.listed_at) == (None, None)
    assert never_listed.unknown == ("who could read the room: no listing says so",)
    assert explain(store, "acme", "t99") is None
    assert explain(store, "other", "t1") is None  # R-ROOM-11


def test_who_joined_since_the_listing_could_read_it_too(store: Connection) -> None:  # R-ROOM-4
    story = told(store, "t5")
    assert codes(story.decisions[-1].reasons) == ["trigger_not_subset"]
    assert story.destination.audience == Audience(readers=(ALEX, EVE, KIM))
    assert [heard.missing for one in story.evidence for heard in one.leaves] == [(EVE,)]


def test_what_the_store_lacks_is_said_to_be_unknown(store: Connection) -> None:
    digest = told(store, "t5").evidence[0].leaves[0].leaf.digest
    store.execute(delete(TRACES).where(TRACES.c.turn == "t1"))
    untraced = told(store, "t1")
    assert {one.ref: one.permitted for one in untraced.evidence} == dict.fromkeys(
        (THEIRS, MINE, "revision:d@1", "tool:none")
    )
    assert {one.ref: codes(one.reasons) for one in untraced.evidence}[MINE] == ["audience_not_subset"]
    assert untraced.destination.audience is None
    assert "what was compared, and by which listing: the last decision has no trace here" in untraced.unknown
    store.execute(delete(AUDIENCES).where(AUDIENCES.c.digest == digest))
    store.execute(POSITIONS.update().values(missed=7).where(POSITIONS.c.topic == "outbound"))
    story = told(store, "t5")
    assert [(heard.leaf.audience, heard.missing) for one in story.evidence for heard in one.leaves] == [(None, ())]
    assert story.unknown == (
        "who could read the room: whom its listing named is not in the store",
        "what 7 records of outbound said, which were gone before they were read",
    )
    ((one,), _) = who_can_see(store, "acme", THEIRS)
    assert one.audience.scope is Scope.UNKNOWN
    store.rollback()


def test_who_may_hear_a_source(store: Connection) -> None:
    (theirs,), ended = who_can_see(store, "acme", THEIRS)
    assert (theirs.audience, theirs.grants, ended) == (Audience(readers=(ALEX, KIM)), (), None)
    (revision,), ended = who_can_see(store, "acme", "revision:d@1")
    assert (revision.source.memory, revision.source.state, ended) == ("d", "current", "erased")
    assert (revision.audience, revision.grants) == (Audience(readers=(ALEX,)), ())  # the grant was revoked
    (quoting,), _ = who_can_see(store, "acme", f"message:{C1}/10")
    assert len(quoting.source.leaves) == 2
    assert quoting.audience == Audience(readers=(ALEX,))  # what all of them have in common
    assert who_can_see(store, "acme", "message:slack:T1/C1/404") == ([], None)
    assert who_can_see(store, "other", THEIRS) == ([], None)


def test_what_a_reader_was_sent(store: Connection) -> None:
    assert [one.turn for one in blast_radius(store, "acme", KIM)] == ["t2", "t4"]  # t3 was withheld
    of_mine = blast_radius(store, "acme", KIM, MINE)
    assert [(one.turn, one.status, one.heard) for one in of_mine] == [("t2", "sent", Heard.LISTED)]
    assert of_mine[0].path == (MINE, "revision:m@1", "revision:d@1", "turn:t2")
    assert [one.turn for one in blast_radius(store, "acme", KIM, THEIRS)] == ["t2", "t4"]
    assert [one.status for one in blast_radius(store, "acme", KIM, THEIRS)] == ["sent", None]
    assert blast_radius(store, "acme", EVE) == []
    assert blast_radius(store, "other", KIM) == []


@pytest.mark.parametrize("later", [True, False])
def test_what_may_have_been_sent_once_counts_whatever_else_is_said_of_it(store: Connection, later: bool) -> None:
    (said,) = store.execute(select(DELIVERIES).where(DELIVERIES.c.turn == "t2"))
    again = {"offset": 9_999 if later else -1, "status": "withheld", "message": None}
    store.execute(insert(DELIVERIES).values(dict(said._mapping) | again))
    (one,) = blast_radius(store, "acme", KIM, MINE)
    assert (one.turn, one.status, one.message) == ("t2", "sent", f"{C1}/9")
    store.execute(update(DELIVERIES).where(DELIVERIES.c.turn == "t2").values(status="failed"))
    assert blast_radius(store, "acme", KIM, MINE) == []  # none of them says so
