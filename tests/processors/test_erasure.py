"""What an erasure reaches, whatever came before and comes after it (R-RET-3)."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, BOT, C1, D1, KIM, POLICY, codes, ref, verdicts
from tests.processors.remembering import SECRET, refused, remembering, states
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, ErasureApplied, RevisionRecorded
from turngate.schemas.shapes import AuthorKind

DAY = 86_400_000


def reached(out: list[Record]) -> set[str]:
    return {ref for r in out if isinstance(r, ErasureApplied) for ref in r.refs}


@pytest.mark.parametrize("what", [{"room": D1}, {"reader": ALEX}, {"memory": "trip"}])
def test_no_text_of_what_was_erased_or_made_of_it_is_kept(what: dict[str, str]) -> None:
    feed = remembering()
    feed.write("day", "day@1", sources=["revision:trip@1"])
    feed.write("day", "day@2", op="amend", base="day@1", by="operator", sources=[])
    feed.write("log", "log@1", kind="transcript", sources=["revision:day@2"])
    feed.write("log", "log@2", kind="transcript", op="amend", base="log@1")
    feed.write("kim", "kim@1", sources=[ref(C1, 1)], text="what-kim-said")
    assert feed.holds(SECRET)
    revisions = {f"revision:{r}" for r in ("trip@1", "day@1", "day@2", "log@1", "log@2")}
    assert revisions <= reached(feed.erase("e1", **what))
    assert not feed.holds(SECRET)
    assert feed.holds("what-kim-said")
    assert "source_deleted" in codes(feed.draft(D1, "t1", exposed=["revision:log@2"]))
    assert verdicts(feed.draft(C1, "t2", exposed=["revision:kim@1"])) == [("t2", "deliver")]
    assert feed.erase("e1", **what) == []


@pytest.mark.parametrize("by", ["distill", "dream", "document", "refusal", "turn", "correction"])
@pytest.mark.parametrize("named", [True, False])
def test_a_text_made_of_what_was_erased_is_not_taken_in_again(by: str, named: bool) -> None:
    feed = remembering()
    feed.context(D1, "r", "t1", trigger=ref(D1, 1), candidates=["revision:trip@1"])
    feed.erase("e1", reader=ALEX)
    sources = [ref(D1, 1)] if named else []
    out = feed.write("again", "again@1", by=by, turn="t1", sources=sources, text="once-more")
    assert "source_deleted" in refused(out)
    assert not feed.holds("once-more")


def test_an_operators_own_text_is_taken_in_and_its_erased_source_stays_deleted() -> None:  # a golden stream has it so
    feed = remembering()
    feed.erase("e1", reader=ALEX)
    feed.write("own", "own@1", by="operator", sources=[ref(D1, 1)], text="the operator's words")
    assert feed.holds("the operator's words")
    assert "source_deleted" in codes(feed.draft(D1, "t1", exposed=[ref(D1, 1)]))


@pytest.mark.parametrize("erased", [False, True])
def test_what_was_made_of_a_message_that_its_author_deleted_is_taken_in(erased: bool) -> None:  # R-AUD-6
    feed = remembering()
    if erased:  # which a deletion told later does not undo
        feed.erase("e1", reader=ALEX)
    feed.make(inputs.MessageDeleted, agent="mesh", room=D1, message=f"{D1}/1")
    out = feed.write("later", "later@1", sources=[ref(D1, 1)])
    assert (states(out), refused(out)) == (([], ["source_deleted"]) if erased else ([("later@1", "current")], []))


@pytest.mark.parametrize("what", [{"room": D1}, {"reader": ALEX}])
def test_it_finds_what_was_made_of_evidence_that_has_ended(what: dict[str, str]) -> None:  # R-RET-4
    feed = remembering("retention: {messages: 1d, room_inactive: 400d}\n")
    feed.tool(D1, "c1")
    feed.write("read", "read@1", sources=["tool:c1"])
    feed.write("day", "day@1", sources=["revision:trip@1", "revision:read@1"])
    feed.write("own", "own@1", by="operator", sources=[ref(D1, 1)])
    feed.tick(DAY)
    feed.tick(DAY)
    mine = {"revision:trip@1", "revision:day@1", "revision:own@1"}
    found = mine | {"revision:read@1"} if "room" in what else mine
    assert reached(feed.erase("e1", **what)) == found
    assert feed.holds(SECRET) == ("reader" in what)  # what the tool said is nobody's words


def test_what_an_operator_reviewed_is_still_of_its_author() -> None:  # R-EVI-3
    feed = remembering("retention: {messages: 1d, room_inactive: 400d}\n")
    feed.write("odd", "odd@1", sources=[ref(D1, 1), "tool:never"])
    feed.write("odd", "odd@1", op="review", by="operator", audience="public")
    feed.tick(2 * DAY)
    assert "revision:odd@1" in reached(feed.erase("e1", reader=ALEX))


def test_a_write_that_waits_is_refused_by_whatever_it_was_made_of() -> None:  # R-SEN-1
    feed = remembering("sensitivity: {enabled: true}\n")
    feed.context(D1, "r", "t1", trigger=ref(D1, 1))
    feed.write("plan", "plan@1", by="turn", turn="t1", text="made-of-the-trigger")
    assert feed.holds("made-of-the-trigger")
    assert refused(feed.erase("e1", room=D1)) == ["source_deleted"]
    assert not feed.holds("made-of-the-trigger")
    assert feed.make(inputs.SensitivityAssessed, write=f"w{feed.writes}", label="ordinary") == []


@pytest.mark.parametrize("what", [{"room": D1}, {"reader": ALEX}])
@pytest.mark.parametrize(("later", "quotes"), [(0, {ref(C1, 2)}), (DAY, set())])
def test_it_finds_who_quotes_a_message_that_has_ended_and_what_was_made_of_that(
    later: int, quotes: set[str], what: dict[str, str]
) -> None:  # R-RET-4, R-AUD-6
    feed = remembering("retention: {messages: 1d, room_inactive: 400d}\n")
    feed.tick(DAY // 2)
    feed.message(C1, 2, author=KIM, quotes=[ref(D1, 1)], at=feed.now - DAY // 2)
    feed.message(C1, 3, author=KIM)
    feed.write("q", "q@1", room=C1, sources=[ref(C1, 2)])
    feed.tick(DAY // 2)
    feed.tick(later)
    assert reached(feed.erase("e1", **what)) == {"revision:trip@1", "revision:q@1"} | quotes


def test_nobody_is_asked_about_what_was_erased() -> None:  # R-SEN-3
    feed = remembering("sensitivity: {enabled: true}\n")
    for name in ("plan", "diary"):
        feed.write(name, f"{name}@1", sources=[ref(D1, 1)])
        feed.make(inputs.SensitivityAssessed, write=f"w{feed.writes}", label="ordinary", ask_author=True)
    feed.erase("e1", memory="plan")
    answers = [r for r in feed.context(D1, "r", "t1") if isinstance(r, ContextDecided)]
    assert [r.questions for r in answers] == [("diary@1",)]


def test_it_reaches_what_the_agent_said_of_it_and_whoever_once_quoted_that() -> None:  # R-AUD-6, R-AUD-7
    feed = remembering()
    for turn, evidence in (("t1", "revision:trip@1"), ("t2", ref(D1, 1))):
        assert verdicts(feed.draft(D1, turn, exposed=[evidence])) == [(turn, "deliver")]
        feed.message(D1, turn, author=None, author_kind=AuthorKind.SELF, turn=turn)
        feed.message(D1, f"quotes-{turn}", quotes=[ref(D1, turn)])
        feed.message(D1, f"quotes-{turn}", edited=True, text="never mind")
    assert reached(feed.erase("e1", memory="trip")) == {"revision:trip@1", ref(D1, "t1"), ref(D1, "quotes-t1")}


def test_it_reaches_what_a_bot_said() -> None:  # whose words have no author to anybody else (R-AUD-7)
    feed = remembering()
    feed.message(C1, 2, author=BOT, author_kind=AuthorKind.BOT)
    assert reached(feed.erase("e1", reader=BOT)) == {ref(C1, 2)}


def test_a_write_that_waits_in_another_tenant_is_taken_up() -> None:  # R-ROOM-11, R-SEN-1
    slow = "sensitivity: {enabled: true, deadline: 1m}\n"
    feed = remembering(slow)
    for tenant in ("other", "acme"):
        feed.tenant = tenant
        feed.policy(POLICY + slow, 2)
        feed.message(D1, 1)
        feed.write("day", "day@1", sources=[ref(D1, 1)])
    assert refused(feed.erase("e1", reader=ALEX)) == ["source_deleted"]
    assert {(r.tenant, r.revision) for r in feed.tick(60_000) if isinstance(r, RevisionRecorded)} == {
        ("other", "day@1")
    }


def test_what_is_of_another_tenant_or_of_somebody_else_stays() -> None:  # R-ROOM-11
    feed = remembering()
    feed.tenant = "other"
    feed.policy()
    feed.listing(D1, [ALEX], info={"kind": "direct"})
    feed.message(D1, 1)
    feed.write("theirs", "theirs@1", sources=[ref(D1, 1)], text="of-another-tenant")
    feed.tenant = "acme"
    assert reached(feed.erase("e1", reader=KIM)) == {ref(C1, 1)}
    assert reached(feed.erase("e2", reader=ALEX)) == {ref(D1, 1), "revision:trip@1"}
    assert feed.holds("of-another-tenant")
