"""What a later policy shortens ends by it, whatever was noted before, and a restart makes no difference (R-POL-1)."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, BOT, C1, C2, POLICY, Feed, authorized, codes, ref, verdicts
from turngate.schemas.inputs import ActionApproved
from turngate.schemas.outputs import RoomForgotten, TurnDecided

MAIL = "operations: {gmail.sendEmail: {access: write, audience: external}}\n" + (
    "skills: {mail: {operation: gmail.sendEmail, approval: required}}\n"
)
ACTION = {"operation": "gmail.sendEmail", "skill": "mail"}
TRUSTED = "trusted_bots: [slack:T1/UAPP]\n"
#: Of each length of time that a policy gives, what ends by it: records that come, or tables that lose their rows.
ENDS = {
    "retention: {room_empty: 30s}": {"RoomForgotten"},
    "retention: {room_inactive: 30s}": {"RoomForgotten", "evidence"},
    "retention: {messages: 30s}": {"evidence"},
    "retention: {messages: 30s, log: 30s}": {"evidence", "turns", "contexts"},
    "interlock: {ask_ttl: 30s}": {"TurnDecided"},
}


def lived(later: str | None) -> Feed:
    """A tenant with a room that is empty and one that is not, of which something was read, asked, said and drafted."""
    feed = Feed()
    feed.policy(POLICY + MAIL)
    feed.listing(C2, [ALEX])
    feed.listing(C1, [ALEX])
    feed.message(C1, 1)
    feed.tool(C1, "c")
    feed.context(C1, "r", "t0")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    assert verdicts(feed.draft(C1, "t2", trigger=ref(C1, 1), action=ACTION)) == [("t2", "ask")]
    if later is not None:
        feed.policy(POLICY + MAIL + later + "\n", 2)
    return feed


def rows(feed: Feed) -> dict[str, int]:
    """How many rows each of these tables has."""
    return {name: len(feed.engine.state.tables[name].rows) for name in ("evidence", "turns", "contexts")}


def ended(feed: Feed) -> set[str]:
    """What ends within the next minute."""
    before = rows(feed)
    out = [record for _ in range(60) for record in feed.tick()]
    came = {type(r).__name__ for r in out if isinstance(r, RoomForgotten | TurnDecided)}
    return came | {name for name, now in rows(feed).items() if now < before[name]}


@pytest.mark.parametrize("later", ENDS)
def test_what_a_later_policy_shortens_ends_by_it(later: str) -> None:
    assert ENDS[later] <= ended(lived(later))
    assert ended(lived(None)) == ended(lived("notice: later")) == set()


@pytest.mark.parametrize("later", ENDS)
def test_a_restart_after_it_changes_nothing(later: str) -> None:  # R-RUN-3
    went_on, restarted = lived(later), lived(later)
    restarted.restart()
    for _ in range(60):
        assert went_on.tick() == restarted.tick()
        assert sorted(went_on.engine.state.entries()) == sorted(restarted.engine.state.entries())


@pytest.mark.parametrize(("later", "verdict"), [(TRUSTED, "deliver"), ("", "drop")])
def test_whom_a_later_policy_trusts_no_more_hears_nothing_more(later: str, verdict: str) -> None:  # R-POL-1, R-ROOM-7
    feed = Feed()
    feed.policy(POLICY + TRUSTED)
    feed.listing(C1, [ALEX, {"reader": BOT, "kind": "bot"}])
    feed.tool(C1, "c", server="wiki")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    feed.policy(POLICY + later, 2)
    out = feed.draft(C1, "t2", exposed=("tool:c",))
    assert (verdicts(out), "audience_not_subset" in codes(out)) == ([("t2", verdict)], verdict == "drop")


def test_the_barrier_waits_for_no_longer_than_the_least_patient_policy_says() -> None:  # R-RUN-2
    feed = Feed()
    assert feed.engine.hold_ms() == 5_000  # the contract's, while no policy says another
    feed.policy(POLICY + "stale: {hold: 9s}\n")
    assert feed.engine.hold_ms() == 9_000
    feed.tenant = "other"
    feed.policy(POLICY + "stale: {hold: 4s}\n")
    assert feed.engine.hold_ms() == 4_000
    feed.policy(POLICY + "stale: {hold: 7s}\n", 2)
    assert feed.engine.hold_ms() == 4_000  # a room that started with the first keeps it
    feed.policy(POLICY + "stale: {hold: 3s}\n", 3)
    assert feed.engine.hold_ms() == 3_000
    feed.restart()
    assert feed.engine.hold_ms() == 3_000


def test_turns_that_waited_for_their_room_ask_one_after_the_other() -> None:  # R-TIME-4, R-TNT-6
    feed = Feed()
    feed.policy(POLICY + MAIL)
    feed.listing(C1, [ALEX])
    feed.message(C1, 1)
    feed.tick(60_000)
    for turn in ("t1", "t2", "t3"):
        assert verdicts(feed.draft(C1, turn, trigger=ref(C1, 1), action=ACTION)) == [(turn, "hold")]
    asked = feed.listing(C1, [ALEX])
    assert verdicts(asked) == [("t1", "ask"), ("t2", "ask"), ("t3", "ask")]
    (fingerprint,) = {r.fingerprint for r in asked if isinstance(r, TurnDecided)}
    yes = {"room": C1, "by": ALEX, "fingerprint": fingerprint}
    assert verdicts(feed.make(ActionApproved, approval="a1", **yes)) == [("t1", "deliver")]
    feed.restart()
    assert verdicts(feed.make(ActionApproved, approval="a2", **yes)) == [("t2", "deliver")]
    assert verdicts(feed.tick(900_000)) == [("t3", "drop")]


@pytest.mark.parametrize(("ttl", "verdict"), [("1ms", "ask"), ("0s", "drop")])
def test_a_question_that_nobody_has_time_to_answer_is_not_asked(ttl: str, verdict: str) -> None:  # R-TNT-6, R-TIME-1
    feed = Feed()
    feed.policy(POLICY + MAIL + f"interlock: {{ask_ttl: {ttl}}}\n")
    feed.listing(C1, [ALEX])
    feed.message(C1, 1)
    out = feed.draft(C1, "t1", trigger=ref(C1, 1), action=ACTION)
    assert (verdicts(out), codes(out), authorized(out)) == ([("t1", verdict)], {"approval_missing"}, [])


def test_a_policy_shortens_nothing_that_another_tenant_asks() -> None:  # R-ROOM-11, R-POL-1
    feed = lived(None)
    feed.tenant = "other"
    assert feed.policy(POLICY + "interlock: {ask_ttl: 1s}\n") == []
    assert verdicts(feed.tick(30_000)) == []
    feed.tenant = "acme"
    assert feed.policy(POLICY + MAIL + "interlock: {ask_ttl: 1s}\n", 3) == []
    assert [verdict for _, verdict in verdicts(feed.tick())] == ["drop"]
