"""What a code, a grant and a proof do at the edges that a scenario does not reach (rules GRT and IDN)."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, C1, D1, KIM, authorized, codes, ref, verdicts
from tests.processors.remembering import ROTATED, Memories, refused, remembering
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import CommandHandled, ContextDecided, EvidenceRecorded, GrantChanged, SharingOffered

MAIL, INBOX = "mail:acme/alex", "mail:acme/alex"


def outcomes(out: list[Record]) -> list[str]:
    return [r.outcome.value for r in out if isinstance(r, CommandHandled)]


def say(
    feed: Memories, words: str, number: object, room: str = D1, author: str = ALEX, **fields: object
) -> list[Record]:
    return feed.message(room, str(number), text=words, author=author, **fields)


def test_a_code_is_nowhere_but_in_its_offer() -> None:  # R-GRT-10
    feed = remembering()
    code = feed.code("s1", "trip@1")
    assert not feed.holds(code)
    say(feed, f"share {code}", 2)
    say(feed, f"share {code}", 3)
    say(feed, f"please share {code}", 4)
    say(feed, f"share {code}", 5, edited=True)
    say(feed, f"unshare {code}", 6)
    assert not feed.holds(code)
    assert [type(r) for r in feed.out if code in r.model_dump_json()] == [SharingOffered]


def test_a_code_works_once_for_its_person_in_its_room_for_its_agent_and_tenant() -> None:  # R-GRT-2
    feed = remembering()
    feed.listing(C1, [ALEX, KIM], agent="scout")
    code = feed.code("s1", "trip@1")
    assert refused(say(feed, f"share {code}", 2, author=KIM)) == ["code_wrong_reader"]
    assert refused(say(feed, f"share {code}", 2, room=C1)) == ["code_wrong_room"]
    assert refused(say(feed, f"share {code}", 3, agent="scout")) == ["code_unknown"]
    assert refused(say(feed, f"share {code}", 4, tenant="other")) == ["code_unknown"]
    assert say(feed, f"share {code}", 5, author_kind="bot")
    assert outcomes(say(feed, f" SHARE {code.lower()} ", 6)) == ["granted"]
    assert refused(say(feed, f"share {code}", 7)) == ["already_granted"]
    assert outcomes(say(feed, f"unshare {code}", 8)) == ["revoked"]
    assert refused(say(feed, f"share {code}", 9)) == ["already_granted"]


def test_a_command_in_a_message_of_the_longest_id_is_carried_out_or_refused() -> None:  # R-GRT-2, contract section 1
    feed = remembering()
    code = feed.code("s1", "trip@1")
    longest = 1024 - len(f"{D1}/")
    assert refused(say(feed, f"share {code}", "x" * longest, author=KIM)) == ["code_wrong_reader"]
    assert outcomes(say(feed, f"share {code}", "y" * longest)) == ["granted"]


@pytest.mark.parametrize("change", ["amend", "forget", "erase"])
def test_a_code_is_for_the_exact_text_that_was_shown(change: str) -> None:  # R-GRT-2, R-RET-3
    feed = remembering()
    code = feed.code("s1", "trip@1")
    if change == "erase":
        feed.erase("e1", memory="trip")
    else:
        base = {"base": "trip@1"} if change == "amend" else {}
        feed.write("trip", "trip@2" if base else "trip@1", op=change, by="operator", **base)
    assert refused(say(feed, f"share {code}", 2)) == ["base_not_current"]
    assert not [r for r in feed.out if isinstance(r, GrantChanged)]


def test_a_cancelled_code_is_one_that_nobody_knows() -> None:  # R-GRT-4
    feed = remembering()
    code = feed.code("s1", "trip@1")
    assert outcomes(say(feed, f"unshare {code}", 2)) == ["cancelled"]
    for author, room in ((ALEX, D1), (KIM, D1), (ALEX, C1)):
        assert refused(say(feed, f"share {code}", f"{author[-2:]}{room[-2:]}", room=room, author=author)) == [
            "code_unknown"
        ]
    assert outcomes(say(feed, f"unshare {code}", 9)) == ["cancelled"]


def test_a_message_that_was_a_command_stays_one_whatever_it_is_edited_to() -> None:  # R-GRT-5
    feed = remembering()
    code = feed.code("s1", "trip@1")
    say(feed, f"share {code}", 2)
    assert say(feed, "when do I fly?", 2, edited=True) == []
    assert codes(feed.draft(D1, "t1", trigger=ref(D1, 2))) == {"source_missing"}
    assert [r for r in say(feed, "when do I fly?", 3) if isinstance(r, EvidenceRecorded)]
    assert verdicts(feed.draft(D1, "t2", trigger=ref(D1, 3))) == [("t2", "deliver")]


def test_an_agents_request_stands_in_no_operators_way() -> None:  # R-POL-2, R-EVI-10
    feed = remembering()
    feed.grant("g1", "trip@1")
    for command in ("g2", "e1", "p1"):
        feed.share(command, "trip@1")
    assert [r.state.value for r in feed.revoke("g2", "g1") if isinstance(r, GrantChanged)] == ["revoked"]
    feed.pause("p1", paused=True)
    assert codes(feed.draft(D1, "t1", trigger=ref(D1, 1))) == {"paused"}
    assert feed.erase("e1", memory="trip")


def test_two_grants_never_have_one_id() -> None:  # contract: grant ids are the request's or the command's id
    feed = remembering()
    code = feed.code("x1", "trip@1")
    assert refused(feed.grant("x1", "trip@1")) == ["already_granted"]
    assert outcomes(say(feed, f"share {code}", 2)) == ["granted"]
    feed.grant("x2", "trip@1")
    assert refused(feed.share("x2", "trip@1")) == ["already_granted"]


def test_a_text_that_is_not_there_is_offered_to_nobody() -> None:  # R-GRT-1
    feed = remembering()
    feed.write("n", "n@1", sources=[ref(D1, 1)], text=None)
    assert refused(feed.share("s1", "n@1")) == ["source_unknown"]
    assert feed.code("s2", "trip@1")


def test_an_operator_grants_a_revision_of_the_memory_that_is_named() -> None:  # R-GRT-6
    feed = remembering()
    feed.write("other", "other@1", sources=[ref(D1, 1)])
    assert refused(feed.grant("g1", "trip@1", memory="other")) == ["base_not_current"]
    assert refused(feed.grant("g2", "trip@1")) == []


def test_an_operator_revokes_by_the_grant_alone() -> None:  # R-GRT-6
    feed = remembering()
    feed.grant("g1", "trip@1")
    assert not refused(feed.revoke("g2", "g1", agent="scout"))
    assert codes(feed.draft(C1, "t1", exposed=["revision:trip@1"])) == {"grant_revoked"}
    assert refused(feed.revoke("g3", "g1")) == ["source_missing"]


@pytest.mark.parametrize("op", ["amend", "derive", "create"])
def test_a_grant_passes_to_nothing_that_is_made_of_the_text(op: str) -> None:  # R-GRT-7
    feed = remembering()
    feed.grant("g1", "trip@1")
    assert verdicts(feed.draft(C1, "t1", exposed=["revision:trip@1"])) == [("t1", "deliver")]
    feed.message(C1, "own", author="slack:T1/UBOT", author_kind="self", turn="t1")
    assert authorized(feed.draft(C1, "t2", trigger=ref(C1, "own")))[0].grants == ("g1",)
    base = {"base": "trip@1", "memory": "trip"} if op == "amend" else {"memory": "new"}
    for by in ("distill", "operator"):
        fields = {"op": op, "by": by, "sources": ["revision:trip@1", ref(C1, "own")], "revision": f"x@{by}"} | base
        feed.write(**fields)
        base["memory"] = "newer"
        base.pop("base", None)
        op = "create" if op == "amend" else op
        assert "audience_not_subset" in codes(feed.draft(C1, f"t-{by}", exposed=[f"revision:x@{by}"]))


def test_codes_made_with_an_old_key_are_found_and_new_ones_made_with_the_new() -> None:
    feed = remembering()
    old = feed.code("s1", "trip@1")
    feed.restart(ROTATED)
    assert outcomes(say(feed, f"share {old}", 2)) == ["granted"]
    new = feed.code("s2", "trip@1")
    assert outcomes(say(feed, f"share {new}", 3)) == ["granted"]


def with_mail() -> Memories:
    feed = remembering()
    feed.listing(INBOX, [MAIL], info={"kind": "direct"})
    feed.prove("p1", ALEX)
    return feed


def test_proofs_that_have_ended_and_say_no_more_than_a_later_one_do_not_pile_up() -> None:  # R-IDN-1
    feed = with_mail()
    for n in range(50):
        feed.prove(f"m{n}", MAIL, lasts=500)
    sizes = [len(row) for row in feed.engine._tables.proofs_of.rows.values()]
    assert max(sizes) <= 3
    assert len(feed.engine._tables.proofs.rows) <= 4
    assert codes(feed.draft(INBOX, "t1", exposed=[ref(D1, 1)])) == {"proof_not_live"}
    feed.prove("m0", MAIL, lasts=-10_000)  # told again, after it was removed
    assert codes(feed.draft(INBOX, "t2", exposed=[ref(D1, 1)])) == {"proof_not_live"}
    feed.prove("m99", MAIL)
    assert authorized(feed.draft(INBOX, "t3", exposed=[ref(D1, 1)]))[0].proofs == ("m99", "p1")


def test_a_revoked_proof_told_again_stays_revoked_as_long_as_it_could_live() -> None:  # R-POL-2, R-RUN-4
    feed = with_mail()
    ends = feed.now + 3_600_000
    proof = {"agent": "mesh", "proof": "m1", "reader": MAIL, "subject": "alex", "expires_at": ends}
    feed.make(inputs.AccountProven, **proof)
    feed.make(inputs.ProofRevoked, proof="m1")
    for n in range(5):
        feed.prove(f"x{n}", MAIL, lasts=500)
    feed.make(inputs.AccountProven, **proof)
    assert codes(feed.draft(INBOX, "t1", exposed=[ref(D1, 1)])) == {"proof_not_live"}


def test_a_proof_told_again_lives_as_it_did_and_proves_nothing_else() -> None:  # R-IDN-1, R-RUN-4
    feed = with_mail()
    feed.prove("m1", MAIL)
    feed.prove("m1", MAIL, subject="kim")
    assert authorized(feed.draft(INBOX, "t1", exposed=[ref(D1, 1)]))[0].proofs == ("m1", "p1")


@pytest.mark.parametrize(("revoked", "expected"), [(True, {"proof_not_live"}), (False, set())])
def test_a_proof_that_was_revoked_before_it_came_never_lives(revoked: bool, expected: set[str]) -> None:  # R-POL-2
    feed = with_mail()
    if revoked:
        feed.make(inputs.ProofRevoked, proof="m1")
    feed.prove("m1", MAIL)
    assert codes(feed.draft(INBOX, "t1", exposed=[ref(D1, 1)])) == expected


def test_where_only_a_grant_permits_it_nothing_tells_whose_it_is() -> None:  # R-GRT-8
    feed = remembering()
    feed.grant("g1", "trip@1")
    answers = {room: feed.context(room, f"r{room}", f"t{room}", candidates=["revision:trip@1"]) for room in (C1, D1)}
    told = {
        room: [(p.attribution.value, p.grant) for r in out if isinstance(r, ContextDecided) for p in r.permitted]
        for room, out in answers.items()
    }
    assert told == {C1: [("hidden", "g1")], D1: [("shown", None)]}


@pytest.mark.parametrize(("expires", "revoked"), [("g1", "g2"), ("g2", "g1")])
def test_of_grants_that_ended_the_one_that_was_taken_back_is_named(expires: str, revoked: str) -> None:  # R-GRT-7
    feed = remembering()
    feed.grant(expires, "trip@1", expires_at=feed.now + 10_000)
    feed.grant(revoked, "trip@1")
    exposed = {"trigger": ref(C1, 1), "exposed": ("revision:trip@1",)}
    assert authorized(feed.draft(C1, "t1", **exposed))
    feed.revoke("c1", revoked)
    assert authorized(feed.draft(C1, "t2", **exposed))  # the other still permits it
    feed.tick(10_000)
    assert codes(feed.draft(C1, "t3", **exposed)) == {"grant_revoked"}


def test_a_grant_that_was_taken_back_does_not_expire_as_well() -> None:  # R-GRT-6, R-GRT-7
    feed = remembering()
    feed.grant("g1", "trip@1", expires_at=feed.now + 10_000)
    feed.revoke("g2", "g1")
    assert feed.tick(10_000) == []
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1), exposed=("revision:trip@1",))) == {"grant_revoked"}


def test_a_grant_that_only_expired_is_named_as_that() -> None:  # R-GRT-7: the twin
    feed = remembering()
    feed.grant("g1", "trip@1", expires_at=feed.now + 10_000)
    feed.tick(10_000)
    assert codes(feed.draft(C1, "t1", trigger=ref(C1, 1), exposed=("revision:trip@1",))) == {"grant_expired"}
