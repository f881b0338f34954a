"""The last check lets out what is still what was authorized, and each thing that has changed withholds it (R-DLV-1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processors.feed import Feed
from tests.sinks.records import (
    ALEX,
    AT,
    BOT,
    GUEST,
    KIM,
    OTHER,
    POLICY,
    ROOM,
    SELF,
    authorized,
    decided,
    made,
    page,
    policy,
)
from turngate.processors.approvals import turn_fingerprint
from turngate.processors.bounds import standing
from turngate.processors.live import shown
from turngate.processors.policy import effective
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import (
    AccountProven,
    ActionApproved,
    AgentPaused,
    ApprovalWithdrawn,
    ErasureCommanded,
    GrantCommanded,
    MembershipChanged,
    MembershipPage,
    PolicyPublished,
    ProofRevoked,
    Record,
    RoomChanged,
)
from turngate.schemas.outputs import ErasureApplied, GrantChanged, StretchApplied, TurnAuthorized
from turngate.schemas.policy import parse_policy
from turngate.sinks.check import against
from turngate.sinks.facts import KEPT_MS, Facts
from turngate.streams.log import Message

NOW = AT + 1000
GRANT = {"agent": "mesh", "memory": "m", "revision": "m@1", "audience": "public", "by": "operator"}
PROOF = {"agent": "mesh", "reader": ALEX, "subject": "s1", "expires_at": NOW + 60_000}
JOIN = {"room": ROOM, "kind": "member", "change": "joined"}
MEMBERS = (ALEX, KIM, {"reader": SELF, "kind": "self"})


def facts(*records: Record, more: int = 0) -> Facts:
    made_of = Facts()
    for record in (policy(), *records):
        made_of.learn(record, record.at + more)
    return made_of


def codes(
    turn: TurnAuthorized, *pages: MembershipPage, told: tuple[Record, ...] = (), here: int = NOW, since: int = AT
) -> set[tuple[str, str | None]]:
    return {(reason.code, reason.ref) for reason in against(turn, pages, facts(*told), here, since)}


def test_what_was_authorized_and_is_unchanged_is_sent() -> None:
    turn = authorized(grants=["g"], proofs=["p"], valid_until=NOW + 1)
    told = (made(GrantChanged, grant="g", state="active", **GRANT), made(AccountProven, proof="p", **PROOF))
    assert codes(turn, page(*MEMBERS), told=told) == set()
    assert codes(turn, page(ALEX), told=told) == set()  # somebody has left


ENLARGED: dict[str, tuple[Any, ...]] = {
    "somebody new": (ALEX, KIM, "slack:T1/UNEW"),
    "an equal account elsewhere": (ALEX, "slack:T2/UKIM"),
    "a guest": (ALEX, {"reader": GUEST, "kind": "guest"}),
    "a bot": (ALEX, {"reader": BOT, "kind": "bot"}),
    "an own account that is not the agent's": (ALEX, {"reader": BOT, "kind": "self"}),
}


@pytest.mark.parametrize("members", ENLARGED.values(), ids=ENLARGED)
def test_a_room_with_anybody_else_in_it_hears_nothing(members: tuple[Any, ...]) -> None:
    assert codes(authorized(), page(*members)) == {("destination_enlarged", ROOM)}


def test_a_workspace_is_its_full_members_and_no_guest() -> None:
    everybody = {"workspaces": ["slack:T1"], "readers": [OTHER]}
    info = {"visibility": "workspace", "workspaces": ["slack:T1"]}
    guest = {"reader": GUEST, "kind": "guest"}
    assert codes(authorized(everybody), page(ALEX, OTHER, info=info)) == set()
    assert codes(authorized(everybody), page(ALEX, guest, info=info)) == {("destination_enlarged", ROOM)}
    assert codes(authorized(), page(ALEX, info=info)) == {("destination_enlarged", ROOM)}  # a room that went public


def test_a_yes_that_was_taken_back_since_lets_out_nothing() -> None:  # R-POL-2
    turn = authorized("public", at=AT + 500)
    given = {"approval": "a", "by": ALEX, "room": ROOM}
    yes = made(ActionApproved, fingerprint=turn_fingerprint(turn, "hello"), **given)
    other = made(ActionApproved, fingerprint=turn_fingerprint(turn, "goodbye"), **given)
    no, before = (made(ApprovalWithdrawn, approval="a", at=at) for at in (AT + 500, AT - 60_000))
    withheld = {("approval_missing", None)}
    assert codes(turn, told=(yes,)) == set()
    assert codes(turn, told=(yes, no)) == withheld
    assert codes(turn, told=(other, no)) == set()
    assert codes(turn, told=(yes, before)) == set()  # the engine knew that


def test_what_is_public_needs_no_listing() -> None:
    assert against(authorized("public"), None, facts(), NOW, AT) == ()


def test_an_open_rooms_own_words_need_it_still_open() -> None:  # R-AUD-10
    assert codes(authorized("unknown"), page(info={"visibility": "open"})) == set()
    assert codes(authorized("unknown"), page(ALEX)) == {("destination_enlarged", ROOM)}
    assert codes(authorized(), page(ALEX, info={"visibility": "open"})) == {("destination_unknown", ROOM)}


NO_LISTING: dict[str, tuple[MembershipPage, ...]] = {
    "none": (),
    "an error": (page(ALEX, error="ratelimited"),),
    "no end": (page(ALEX, last=False),),
    "no beginning": (page(ALEX, page=1),),
    "a page missing": (page(ALEX, last=False), page(KIM, page=2)),
    "two listings": (page(ALEX, last=False), page(KIM, page=1, refresh="r2")),
    "another room": (page(ALEX, room="slack:T1/C2"),),
    "another tenant": (page(ALEX, tenant="other"),),
    "another agent": (page(ALEX, agent="scout"),),
    "no kind": (page(ALEX, info={"kind": None}),),
    "nobody": (page({"reader": SELF, "kind": "self"}),),
}


@pytest.mark.parametrize("pages", NO_LISTING.values(), ids=NO_LISTING)
def test_what_is_no_complete_listing_verifies_nothing(pages: tuple[MembershipPage, ...]) -> None:
    assert codes(authorized(), *pages) == {("destination_unknown", ROOM)}
    assert codes(authorized(), page(ALEX, last=False), page(KIM, page=1)) == set()  # its twin


def test_a_listing_begun_before_the_turn_was_read_or_too_long_ago_is_stale() -> None:
    assert codes(authorized(), page(ALEX), since=AT + 1) == {("destination_stale", ROOM)}
    assert codes(authorized(), page(ALEX), here=AT + 5000) == {("destination_stale", ROOM)}
    assert codes(authorized(), page(ALEX), here=AT + 4999) == set()


AFTERWARDS: dict[str, tuple[Record, str]] = {
    "somebody joins": (made(MembershipChanged, reader="slack:T1/UNEW", **JOIN), "destination_enlarged"),
    "the room is shared": (made(RoomChanged, room=ROOM, what="shared"), "destination_unknown"),
}


@pytest.mark.parametrize(("record", "code"), AFTERWARDS.values(), ids=AFTERWARDS)
def test_what_is_told_of_the_room_since_its_listing_began_counts(record: Record, code: str) -> None:
    before = record.model_copy(update={"at": AT - 60_000})
    assert codes(authorized(), page(ALEX), told=(record,)) == {(code, ROOM)}
    assert codes(authorized(), page(ALEX), told=(before,)) == set()
    elsewhere = record.model_copy(update={"room": "slack:T1/C2"})
    others = record.model_copy(update={"agent": "scout"})
    assert codes(authorized(), page(ALEX), told=(elsewhere, others)) == set()


def test_who_was_authorized_may_join_and_who_leaves_changes_nothing() -> None:
    joined = made(MembershipChanged, reader=KIM, **JOIN)
    left = made(MembershipChanged, reader="slack:T1/UNEW", **(JOIN | {"change": "left"}))
    assert codes(authorized(), page(ALEX), told=(joined, left)) == set()


PAUSE = {"command": "c1", "operator": "o", "agent": "mesh", "paused": True}
ENDED: dict[str, tuple[Record, str]] = {
    "a grant revoked": (made(GrantChanged, grant="g", state="revoked", **GRANT), "grant_revoked"),
    "a grant expired": (made(GrantChanged, grant="g", state="expired", **GRANT), "grant_expired"),
    "a grant whose revocation waits": (
        made(GrantCommanded, command="c", operator="o", op="revoke", agent="mesh", grant="g"),
        "grant_revoked",
    ),
    "a proof revoked": (made(ProofRevoked, proof="p"), "proof_not_live"),
    "a proof expired": (made(AccountProven, proof="p", **(PROOF | {"expires_at": NOW})), "proof_not_live"),
    "an agent paused": (made(AgentPaused, **PAUSE), "paused"),
    "an agent paused here": (made(AgentPaused, room=ROOM, **PAUSE), "paused"),
    "an agent no longer named": (policy(2, agents={}), "agent_unknown"),
}


@pytest.mark.parametrize(("record", "code"), ENDED.values(), ids=ENDED)
def test_what_permitted_a_turn_must_still_hold(record: Record, code: str) -> None:
    turn = authorized(grants=["g"], proofs=["p"])
    assert codes(turn, page(ALEX), told=(record,)) == {(code, None)}
    assert codes(authorized("public", grants=["g"], proofs=["p"]), told=(record,)) == {(code, None)}


def test_an_account_that_was_proven_to_be_somebody_elses_too_is_nobodys() -> None:  # R-IDN-1
    first = made(AccountProven, proof="p", **PROOF)
    again, other = (made(AccountProven, proof="q", **(PROOF | {"subject": s})) for s in ("s1", "s2"))
    turn = authorized(proofs=["p"])
    assert codes(turn, page(ALEX), told=(first, again)) == set()
    assert codes(turn, page(ALEX), told=(first, other)) == {("proof_not_live", None)}
    assert codes(turn, page(ALEX), told=(first, other, made(ProofRevoked, proof="q"))) == set()


def test_other_peoples_grants_pauses_and_tenants_do_not_matter() -> None:
    told = (
        made(GrantChanged, grant="other", state="revoked", **GRANT),
        made(GrantChanged, tenant="other", grant="g", state="revoked", **GRANT),
        made(AgentPaused, **(PAUSE | {"agent": "scout"})),
        made(AgentPaused, **PAUSE, room="slack:T1/C2"),
        made(ProofRevoked, tenant="other", proof="p"),
    )
    assert codes(authorized(grants=["g"], proofs=["p"]), page(ALEX), told=told) == set()


def test_a_pause_that_was_lifted_withholds_nothing_and_comes_back_by_no_repetition() -> None:  # R-POL-4, R-RUN-4
    pause, lift = made(AgentPaused, **PAUSE), made(AgentPaused, **(PAUSE | {"command": "c2", "paused": False}))
    assert codes(authorized(), page(ALEX), told=(pause, lift, pause)) == set()


def test_a_turn_has_ended_by_its_validity_at_that_instant_by_either_clock() -> None:  # R-TIME-1
    turn = authorized("public", valid_until=NOW)
    assert [r.code for r in against(turn, None, facts(), NOW, AT)] == ["validity_expired"]
    assert against(turn, None, facts(), NOW - 1, AT) == ()
    assert [r.code for r in against(turn, None, facts(more=1000), NOW - 1, AT)] == ["validity_expired"]


def test_everything_that_stands_against_a_turn_is_said() -> None:
    turn = authorized(grants=["g"], valid_until=AT)
    told = (ENDED["a grant revoked"][0], ENDED["an agent paused"][0])
    assert {code for code, _ in codes(turn, page(ALEX, OTHER), told=told)} == {
        "grant_revoked",
        "paused",
        "validity_expired",
        "destination_enlarged",
    }


def test_the_policy_is_that_of_the_room_and_every_later_one() -> None:  # R-POL-1, R-ROOM-7
    info = {"visibility": "workspace", "workspaces": ["slack:T1"]}
    turn, room = authorized({"workspaces": ["slack:T1"]}), page(ALEX, {"reader": BOT, "kind": "bot"}, info=info)
    trusting, later = policy(2, trusted_bots=[BOT]), policy(3, trusted_bots=[])
    assert codes(turn, room, told=(trusting, decided("2"))) == set()
    assert codes(turn, room, told=(trusting, decided("1+2"))) == {("destination_enlarged", ROOM)}
    assert codes(turn, room, told=(trusting,)) == {("destination_enlarged", ROOM)}  # nobody has said which it was
    assert codes(turn, room, told=(trusting, decided("2"), later)) == {("destination_enlarged", ROOM)}
    invalid = made(PolicyPublished, version="3", document="version: no")
    assert codes(turn, room, told=(trusting, decided("2"), invalid)) == set()


KINDS = ("member", "guest", "external", "bot", "self")
ACCOUNTS = (ALEX, KIM, GUEST, OTHER, SELF, BOT)
LISTED = st.lists(
    st.builds(
        lambda reader, kind, more: {"reader": reader, "kind": kind, "workspaces": more if kind == "member" else []},
        st.sampled_from(ACCOUNTS),
        st.sampled_from(KINDS),
        st.lists(st.sampled_from(["slack:T2", "slack:T3"]), max_size=1),
    ),
    max_size=8,
)
TOLD = st.lists(st.tuples(st.sampled_from(ACCOUNTS), st.sampled_from(KINDS), st.booleans()), max_size=4)


@given(LISTED, TOLD, st.sampled_from(["members", "workspace"]), st.booleans())
def test_the_sink_and_the_engine_see_the_same_readers(
    members: list[dict[str, Any]], told: list[tuple[str, str, bool]], visibility: str, trusted: bool
) -> None:  # R-ROOM-1, R-ROOM-4
    document = POLICY | {"trusted_bots": [BOT] if trusted else []}
    published = made(PolicyPublished, version="1", document=str(document).replace("'", '"'))
    assert isinstance(published, PolicyPublished)
    feed = Feed()
    feed.send(published)
    info = {"visibility": visibility, "workspaces": ["slack:T1"] if visibility == "workspace" else None}
    listing = page(*members, info=info, started_at=feed.now)
    feed.send(listing)
    events = [
        made(MembershipChanged, at=feed.now, room=ROOM, reader=reader, kind=kind, change="joined" if j else "left")
        for reader, kind, j in told
    ]
    for event in events:
        feed.send(event)
    known = standing(feed.engine._ledger("acme"), "mesh", ROOM).bounds
    assert known is not None
    joins = [event for event in events if isinstance(event, MembershipChanged)]
    room = shown([listing], effective((parse_policy(published.document),)), joins)
    assert room is not None
    if known.upper.audience.readers or known.upper.audience.workspaces:
        assert room.upper == known.upper.audience
    else:
        assert room.upper.scope == "unknown"


def test_what_happened_an_hour_ago_is_forgotten_and_what_happened_since_is_not() -> None:
    known = Facts()
    for number in range(5):
        at = AT + number * KEPT_MS // 4
        known.learn(made(MembershipChanged, at=at, reader=f"slack:T1/U{number}", **JOIN), at)
        known.learn(made(RoomChanged, at=at, room=f"slack:T1/C{number}", what="shared"), at)
    assert [event.reader for event in known.joined_since("acme", ROOM, 0)] == [f"slack:T1/U{n}" for n in range(1, 5)]
    assert [known.changed_since("acme", "mesh", f"slack:T1/C{n}", 0) for n in range(5)] == [False] + [True] * 4


def test_what_happened_before_what_was_read_already_is_forgotten_at_once() -> None:
    known = facts(more=KEPT_MS)  # another topic, read first
    known.learn(made(RoomChanged, room=ROOM, what="shared"), AT)
    assert not known.changed_since("acme", "mesh", ROOM, 0)


PAUSED = {"operator": "o", "agent": "mesh"}
ELSEWHERE = {"its own": ("operator-commands", b"acme"), "a connector's": ("membership-refreshes", b"acme"),
             "another tenant's": ("operator-commands", b"other")}  # fmt: skip


@pytest.mark.parametrize(("topic", "key"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_record_counts_on_its_own_topic_and_under_its_own_tenants_key_alone(topic: str, key: bytes) -> None:
    known = facts(made(AgentPaused, command="c1", paused=True, **PAUSED))  # R-EVI-10
    lifted = Codec().encode(made(AgentPaused, command="c2", paused=False, **PAUSED))
    known.read(Codec(), Message(topic, 0, 0, AT, key, lifted))
    assert known.paused("acme", "mesh", ROOM) is ((topic, key) != ELSEWHERE["its own"])


def test_an_erasure_is_waited_for_until_a_worker_has_said_what_it_reaches() -> None:  # R-RET-3
    command = made(ErasureCommanded, command="e", operator="o", memory="m")
    done = made(ErasureApplied, command="e", refs=["revision:m@1"])
    later = {"to": [{"topic": "operator-commands", "partition": 0, "offset": 8}], "engine": "1", "partition": 0}
    stretch = made(StretchApplied, **later | {"tenant": "0"})
    codec = Codec()

    def told(*records: tuple[str, Record]) -> Facts:
        found = Facts()
        for topic, record in records:
            found.read(codec, Message(topic, 0, 7, AT, record.tenant.encode(), codec.encode(record)))
        return found

    commanded = ("operator-commands", command)
    assert told(commanded).erasing("acme")
    assert not told(commanded).erasing("other")
    assert not told(commanded, ("room-lifecycle", done)).erasing("acme")
    assert not told(("room-lifecycle", done), commanded).erasing("acme")  # topics are read in no order
    assert not told(commanded, ("applied", stretch)).erasing("acme")  # it was given before, and reaches nothing new
    assert told(("applied", made(StretchApplied, **later | {"tenant": "0", "to": []})), commanded).erasing("acme")
