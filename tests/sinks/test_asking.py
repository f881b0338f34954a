"""What needs a yes is asked where its text may be heard, the button lets out exactly that, and offers are shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kafka.cluster import until
from tests.sinks.engine import ASK_TTL, LINK, REFUND, Engine, offered, press, shown
from tests.sinks.records import ALEX, DIRECT, KIM, ROOM, made, page
from tests.sinks.stage import CODEC, Stage
from tests.slack import Fault
from turngate.processors.approvals import turn_fingerprint
from turngate.schemas import inputs
from turngate.schemas.inputs import ActionApproved, ApprovalWithdrawn, Record, TurnDrafted
from turngate.schemas.outputs import GrantChanged, TurnDecided
from turngate.sinks.questions import WITHDRAW
from turngate.streams.clock import now_ms


async def test_a_text_that_asks_is_shown_in_its_room_and_a_yes_lets_out_exactly_it(engine: Engine) -> None:  # R-TNT-6
    stage = engine.stage
    decided = engine.draft()
    assert (decided.verdict, [r.code for r in decided.reasons]) == ("ask", ["interlock_link"])
    await engine.deliver()
    (asked_in,) = stage.slack.posts
    assert asked_in.room == "C1"
    assert shown(asked_in)[1:] == ["divider", LINK, "divider"]
    assert LINK not in asked_in.args["text"]
    yes = press(stage, asked_in)
    assert isinstance(yes, ActionApproved)
    assert (yes.by, yes.room, yes.fingerprint) == (ALEX, ROOM, decided.fingerprint)
    engine.feed(yes)
    await engine.deliver()
    assert stage.said()[1:] == [LINK]
    assert stage.outcomes() == {"t1": ("sent",)}


def buttons(post: Any, stage: Stage) -> list[str]:
    """What of a message can be pressed now, and what it says beside."""
    return [block["type"] for block in stage.slack.rooms[post.room].messages[post.ts]["blocks"]]


@pytest.mark.parametrize("yes", [True, False])
async def test_when_a_question_is_decided_its_buttons_go(engine: Engine, yes: bool) -> None:
    stage = engine.stage
    engine.policy(interlock={"mode": "ask", "ask_ttl": "2s"})
    engine.draft()
    await engine.deliver()
    (post,) = stage.slack.posts
    assert "actions" in buttons(post, stage)
    stage.slack.fail("chat.update", Fault.RATE_LIMITED)
    stage.slack.retry_after = 0.05
    if yes:
        given = press(stage, post)
        assert given is not None
        engine.feed(given)
    else:
        engine.runtime.feed("ticks", None, CODEC.encode(inputs.Tick(tenant="0", at=now_ms())), now_ms() + 3_000)
        engine.runtime.flush()
    await engine.deliver()
    assert buttons(post, stage) == ["section"]
    (said,) = stage.slack.rooms[post.room].messages[post.ts]["blocks"]
    assert said["text"]["text"] == f"This is decided: it {'goes' if yes else 'does not go'} ahead."
    assert stage.slack.rooms[post.room].messages[post.ts]["metadata"] == post.args["metadata"]  # it is still found


async def test_a_question_is_asked_once_whatever_is_started_again(engine: Engine) -> None:
    engine.draft()
    await engine.deliver()
    await engine.deliver()
    assert len(engine.stage.slack.posts) == 1
    assert engine.stage.recorded() == []  # it is no delivery of the turn


async def test_a_withdrawn_yes_lets_out_nothing(engine: Engine) -> None:
    engine.draft()
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    no, yes = press(engine.stage, post, WITHDRAW), press(engine.stage, post)
    assert isinstance(no, ApprovalWithdrawn)
    assert isinstance(yes, ActionApproved)
    assert no.approval == yes.approval
    engine.feed(no, yes)
    await engine.deliver()
    assert len(engine.stage.slack.posts) == 1


async def test_where_somebody_has_joined_the_approvers_are_asked_each_alone(engine: Engine) -> None:
    stage = engine.stage
    engine.policy(interlock={"mode": "ask", "approvers": [ALEX, "slack:T1/UEVE", "slack:T9/UX"]})
    engine.listing("slack:T1/C2", ALEX)  # a room that starts under the new policy
    room = stage.slack.channel("C2", stage.acme, ["UBOT", "UALEX"], private=True)
    engine.say(1, "slack:T1/C2")
    engine.make(inputs.ToolReturned, agent="mesh", room="slack:T1/C2", call="c", server="mail", operation="list")
    engine.make(TurnDrafted, agent="mesh", turn="t2", room="slack:T1/C2", trigger="message:slack:T1/C2/1",
                renderings=[{"text": LINK}])  # fmt: skip
    stage.slack.join(room, "UKIM", told=False)
    await engine.deliver()
    assert sorted(stage.slack.rooms[post.room].members for post in stage.slack.posts) == [
        ["UBOT", "UALEX"],
        ["UBOT", "UEVE"],
    ]
    assert all("slack:T1/C2" in shown(post)[0] for post in stage.slack.posts)
    assert all(shown(post)[2] == LINK for post in stage.slack.posts)
    yes = press(stage, stage.slack.posts[0], user="UEVE")
    assert isinstance(yes, ActionApproved)
    assert yes.room == "slack:T1/C2"


@pytest.mark.parametrize("fault", [Fault.RATE_LIMITED, Fault.UNAVAILABLE])
async def test_an_approver_whose_room_cannot_be_opened_for_a_moment_is_asked_after_that(
    engine: Engine, fault: Fault
) -> None:
    stage = engine.stage

    async def opening() -> bool:
        return bool(stage.slack.called("conversations.open"))

    async def sent() -> bool:
        return "t9" in stage.outcomes()

    engine.policy(interlock={"mode": "ask", "approvers": ["slack:T1/UEVE"]})
    engine.listing("slack:T1/C2", ALEX)  # a room that starts under the new policy
    stage.slack.channel("C2", stage.acme, ["UBOT", "UALEX", "UKIM"], private=True)
    engine.say(1, "slack:T1/C2")
    stage.slack.fail("conversations.open", fault, times=2)
    engine.draft(text=None, action=REFUND, room="slack:T1/C2", trigger="message:slack:T1/C2/1")
    async with stage.delivery(append=engine.append) as running:
        await running.look()
        await until(opening)
        stage.authorize("t9", room="slack:T1/C2", destination="public")  # and no turn waits for that
        await running.look()
        await until(sent)
        await running.finish()
    assert [stage.slack.rooms[post.room].members for post in stage.slack.posts if "blocks" in post.args] == [
        ["UBOT", "UEVE"]
    ]


async def test_where_somebody_has_joined_and_nobody_approves_nobody_is_asked(engine: Engine) -> None:
    engine.draft()
    engine.stage.slack.join(engine.stage.room, "UEVE", told=False)
    await engine.deliver()
    assert engine.stage.slack.posts == []


async def test_an_action_is_shown_with_every_value_and_its_yes_is_for_it_alone(engine: Engine) -> None:  # R-ACT-3
    decided = engine.draft(text=None, action=REFUND)
    assert decided.verdict == "ask"
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    assert shown(post)[2] == "operation: crm.refund\nskill: refund\namount: 5"
    yes = press(engine.stage, post)
    assert isinstance(yes, ActionApproved)
    came = engine.feed(yes)
    assert [r.verdict for r in came if isinstance(r, TurnDecided)] == ["deliver"]


async def test_a_value_that_would_look_like_another_line_is_escaped(engine: Engine) -> None:
    values = [{"name": "memo", "value": "gift\namount: 5", "origin": "llm"}, *REFUND["params"]]
    params = {name: {"type": kind, "set_by": ["llm"]} for name, kind in (("amount", "price"), ("memo", "text"))}
    engine.policy(skills={"refund": {"operation": "crm.refund", "approval": "required", "params": params}})
    engine.listing("slack:T1/C2", ALEX)  # a room that starts under the new policy
    engine.stage.slack.channel("C2", engine.stage.acme, ["UBOT", "UALEX"], private=True)
    engine.say(1, "slack:T1/C2")
    engine.draft(text=None, action=REFUND | {"params": values}, room="slack:T1/C2", trigger="message:slack:T1/C2/1")
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    assert shown(post)[2].splitlines()[2:] == [r'memo: "gift\namount: 5"', "amount: 5"]


@pytest.mark.parametrize("guest", [False, True])
async def test_an_actions_values_are_shown_to_no_guest(engine: Engine, guest: bool) -> None:  # R-EGR-2
    stage = engine.stage
    engine.policy(interlock={"mode": "ask", "approvers": ["slack:T1/UEVE"]})
    room = "slack:T1/C2"
    engine.listing(room, ALEX, {"reader": KIM, "kind": "guest" if guest else "member"})
    stage.acme.user("UKIM", guest=guest)
    stage.slack.channel("C2", stage.acme, ["UBOT", "UALEX", "UKIM"], private=True)
    engine.say(1, room)
    engine.draft(text=None, action=REFUND, room=room, trigger=f"message:{room}/1")
    await engine.deliver()
    (post,) = stage.slack.posts
    assert (post.room == "C2") is not guest
    assert shown(post)[2].endswith("amount: 5")


ENDED: dict[str, Record] = {
    "a grant": made(inputs.GrantCommanded, command="c", operator="o", op="revoke", agent="mesh", grant="g"),
    "a proof": made(inputs.ProofRevoked, proof="p"),
}


@pytest.mark.parametrize("ended", ENDED.values(), ids=ENDED)
async def test_what_was_judged_by_a_grant_or_proof_that_has_ended_since_is_not_shown(
    engine: Engine, ended: Record
) -> None:  # R-POL-2
    engine.draft()
    engine.stage.write(ended.model_copy(update={"at": now_ms()}))
    await engine.deliver()
    assert engine.stage.slack.posts == []


async def test_a_yes_counts_while_the_draft_asks_and_for_no_later_draft(engine: Engine) -> None:  # R-TNT-6
    before = now_ms()
    decided = engine.draft()
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    yes = press(engine.stage, post)
    assert isinstance(yes, ActionApproved)
    assert yes.expires_at is not None
    assert before + ASK_TTL <= yes.expires_at <= now_ms() + ASK_TTL
    late = yes.model_copy(update={"expires_at": now_ms()})  # as a button of a question of a quarter of an hour ago
    engine.feed(late)
    again = engine.draft("t2")
    assert (again.fingerprint, again.verdict) == (decided.fingerprint, "ask")


async def test_what_was_decided_meanwhile_is_asked_of_nobody(engine: Engine) -> None:
    decided = engine.draft()
    engine.make(ActionApproved, approval="a", fingerprint=decided.fingerprint, by=ALEX, room=ROOM)
    await engine.deliver()
    assert engine.stage.said() == [LINK]


async def test_a_paused_agent_asks_nothing(engine: Engine) -> None:
    engine.draft()
    engine.stage.write(made(inputs.AgentPaused, at=now_ms(), command="c", operator="o", agent="mesh", paused=True))
    await engine.deliver()
    assert engine.stage.slack.posts == []


async def test_an_offer_is_shown_to_its_author_alone_and_works_as_typed(engine: Engine) -> None:  # R-GRT-1, R-GRT-2
    found = offered(engine)
    await engine.deliver()
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    assert post.room == "D1"
    assert shown(post)[2] == "the offsite is in June"
    assert "everybody in slack:T1" in shown(post)[0]
    assert shown(post)[4].endswith(f"share {found.code}")
    came = engine.make(inputs.MessageObserved, agent="mesh", room=DIRECT, message=f"{DIRECT}/8", author=ALEX,
                       author_kind="person", text=f"share {found.code}")  # fmt: skip
    assert [r.state for r in came if isinstance(r, GrantChanged)] == ["active"]


async def test_an_offer_is_shown_nowhere_but_in_a_direct_room(engine: Engine) -> None:
    offered(engine)
    engine.stage.slack.join(engine.stage.slack.rooms["D1"], "UEVE", told=False)
    engine.stage.slack.rooms["D1"].kind = "mpim"
    await engine.deliver()
    assert engine.stage.slack.posts == []


def members(reader: str) -> list[dict[str, str]]:
    return [{"reader": reader, "kind": "member"}]


AGO = 60_000  # `freshness.destination`
BEFORE: dict[str, tuple[list[dict[str, Any]], int]] = {
    "a listing": ([{}], 1),
    "one that was fresh": ([{"started_at": AGO - 500}], 1),
    "one that was not": ([{"started_at": AGO}], 0),
    "none": ([], 0),
    "one that failed": ([{"error": "ratelimited"}], 0),
    "one of two pages, the second first": ([{"page": 1, "members": members(KIM)}, {"last": False}], 1),
    "one that has not ended": ([{"last": False}], 0),
    "one of less people, begun later": ([{"started_at": 10}, {"refresh": "r2", "members": members(ALEX)}], 0),
    "another agent's": ([{"agent": "scout"}], 0),
    "one of another room": ([{"room": "slack:T1/C2"}], 0),
    "a change since": ([{"started_at": 10}, {"what": "shared"}], 0),
    "a change before": ([{"what": "shared", "at": 20}, {"started_at": 10}], 1),
}


@pytest.mark.parametrize(("before", "count"), BEFORE.values(), ids=BEFORE)
async def test_a_question_is_asked_where_the_log_tells_who_was_there_when_it_was_judged(
    stage: Stage, before: list[dict[str, Any]], count: int
) -> None:
    """`started_at`, `at`: milliseconds before the decision."""
    at = now_ms() - 6_000  # what happened then is over by now
    draft = made(TurnDrafted, at=at, agent="mesh", turn="t1", room=ROOM, renderings=[{"text": LINK}])
    assert isinstance(draft, TurnDrafted)
    for fields in before:
        times = {name: at - fields[name] for name in ("started_at", "at") if name in fields}
        if "what" in fields:
            record = made(inputs.RoomChanged, room=ROOM, **({"at": at} | fields | times))
            stage.log.append("membership-refreshes", b"acme", CODEC.encode(record), timestamp=at)
        else:
            stage.write(page(ALEX, KIM, **({"started_at": at} | fields | times)))
    as_of = [
        {"topic": topic, "partition": 0, "offset": end}
        for topic, end in (("membership-refreshes", len(before)), ("turn-drafts", 1))
    ]
    asks = made(TurnDecided, at=at, turn="t1", agent="mesh", room=ROOM, verdict="ask", leaves_digest="", policy="1",
                decision="d", as_of=as_of, fingerprint=turn_fingerprint(draft, LINK))  # fmt: skip
    stage.write(draft, asks)
    await stage.deliver()
    assert len(stage.slack.posts) == count
