"""What is authorized is said once, in exactly its bytes, to nobody who was not meant, and always has a final record."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.jvm import free_port
from tests.sinks.records import ROOM, authorized, made
from tests.sinks.stage import CODEC, Stage
from tests.slack import Call, Fault
from turngate.connectors.slack.events import ACCOUNT_CHANGED
from turngate.schemas.inputs import AgentPaused, MembershipChanged, MembershipPage, Record, RoomChanged, TurnDelivered
from turngate.sinks.delivery import ACTION_MS
from turngate.sinks.errands import KEPT_MS, SENT_WITHIN_MS, WORTH_MS
from turngate.sinks.slack import LONGEST
from turngate.streams.clock import now_ms
from turngate.streams.log import LogError


async def test_a_turn_is_said_once_and_recorded_with_its_message(stage: Stage) -> None:
    stage.authorize("t1")
    await stage.deliver()
    await stage.deliver()
    (post,) = stage.slack.posts
    (record,) = stage.recorded()
    assert (record.status, record.room, record.message) == ("sent", ROOM, f"{ROOM}/{post.ts}")


async def test_exactly_the_authorized_bytes_are_said_and_nothing_is_made_of_them(
    stage: Stage,
) -> None:  # R-DLV-3
    text = "  Grüße <@UALEX> & <https://x.example|x>, https://y.example *b* @kim \U0001f680\n\n"
    stage.authorize("t1", text=text, thread="1700000000.000100", broadcast=True)
    await stage.deliver()
    (post,) = stage.slack.posts
    assert post.args == {
        "channel": "C1",
        "text": text,
        "thread_ts": "1700000000.000100",
        "reply_broadcast": True,
        "unfurl_links": False,
        "unfurl_media": False,
        "link_names": False,
        "parse": "none",
        "metadata": {"event_type": "turngate_turn", "event_payload": {"id": "t1"}},
    }


async def test_the_room_is_listed_live_and_the_listing_is_published(stage: Stage) -> None:  # R-DLV-1
    stage.authorize("t1")
    before = now_ms()
    await stage.deliver()
    pages = [record for record in decoded(stage, "membership-refreshes") if isinstance(record, MembershipPage)]
    assert [(p.room, p.agent, p.error) for p in pages] == [(ROOM, "mesh", None)]
    assert before <= pages[0].started_at <= now_ms()
    asked = [call.method for call in stage.slack.calls]
    assert asked.index("conversations.members") < asked.index("chat.postMessage")


def decoded(stage: Stage, topic: str) -> list[Record]:
    return [CODEC.decode(message.value) for message in stage.log.scan(topic)]


async def test_one_listing_serves_the_turns_of_a_room_and_they_keep_their_order(stage: Stage) -> None:
    turns = [f"t{n}" for n in range(20)]
    stage.authorize(*turns)
    await stage.deliver()
    assert stage.said() == [f"this is {turn}" for turn in turns]
    assert sum(call.method == "conversations.members" for call in stage.slack.calls) < 5


async def test_who_joined_between_authorization_and_sending_hears_nothing(stage: Stage) -> None:  # R-DLV-1
    stage.authorize("t1")
    stage.slack.join(stage.room, "UEVE", told=False)
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == ([], {"t1": ("withheld", "destination_enlarged")})
    stage.slack.leave(stage.room, "UEVE")
    stage.authorize("t2")  # withheld is final: the agent drafts anew
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("withheld", "destination_enlarged"), "t2": ("sent",)}


async def test_who_is_said_to_join_while_the_room_is_listed_hears_nothing(stage: Stage) -> None:  # R-ROOM-4
    stage.authorize("t1")
    reader = {"reader": "slack:T1/UEVE", "kind": "member", "change": "joined"}
    stage.write(made(MembershipChanged, at=now_ms() + 1000, room=ROOM, **reader))
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == ([], {"t1": ("withheld", "destination_enlarged")})


async def test_who_became_a_guest_is_one_as_soon_as_the_log_says_that_an_account_has_changed(stage: Stage) -> None:
    workspace = {"workspaces": ["slack:T1"]}
    stage.hurry()
    stage.slack.convert(stage.room, private=False)
    async with stage.delivery() as running:
        stage.authorize("t1", destination=workspace)
        await running.look()
        await running.finish()
        stage.acme.user("UKIM", guest=True)
        stage.write(made(RoomChanged, at=now_ms(), agent="mesh", room=ROOM, what=ACCOUNT_CHANGED))
        stage.authorize("t2", destination=workspace)
        await running.look()
        await running.finish()
    assert stage.outcomes() == {"t1": ("sent",), "t2": ("withheld", "destination_enlarged")}


async def test_a_room_that_changed_a_moment_ago_is_listed_again_when_that_is_over(stage: Stage) -> None:  # R-ROOM-5
    stage.hurry()
    changed = made(RoomChanged, at=now_ms(), room=ROOM, what="archived")
    stage.write(changed)
    stage.authorize("t1")
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("sent",)}
    stage.write(changed.model_copy(update={"at": now_ms() + 30_000}))  # and one that is not over in time
    stage.authorize("t2", valid_until=now_ms() + 300)
    await stage.deliver()
    status, *codes = stage.outcomes()["t2"]
    assert status == "withheld"
    assert "destination_unknown" in codes


CHANGED: dict[str, Any] = {
    "a private room that becomes public": lambda stage: stage.slack.convert(stage.room, private=False),
    "a room shared with another organisation": lambda stage: stage.slack.share(stage.room, "T9"),
    "a room whose bot was removed": lambda stage: stage.slack.leave(stage.room, "UBOT"),
    "an app that was uninstalled": lambda stage: stage.slack.uninstall(stage.acme),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
async def test_a_room_that_is_no_longer_what_it_was_hears_nothing(stage: Stage, change: Any) -> None:
    stage.slack.workspace("T9")
    stage.authorize("t1")
    change(stage)
    await stage.deliver()
    assert stage.said() == []
    assert stage.outcomes()["t1"][0] == "withheld"


@pytest.mark.parametrize("fault", [*Fault, "fetch_members_failed", "channel_not_found"])
async def test_what_cannot_be_verified_is_withheld(stage: Stage, fault: Fault | str) -> None:
    stage.slack.fail("conversations.members", fault, times=100)
    stage.authorize("t1", valid_until=now_ms() + 300)
    await stage.deliver(call=0.1)
    assert stage.said() == []
    assert stage.outcomes()["t1"][0] == "withheld"


async def test_a_listing_that_failed_for_a_moment_is_made_again(stage: Stage) -> None:
    stage.slack.fail("conversations.members", Fault.UNAVAILABLE, times=2)
    stage.authorize("t1")
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("sent",)}


async def test_a_limit_is_waited_for_and_everything_is_checked_again(stage: Stage) -> None:
    def limited(call: Call) -> Fault | None:
        if call.method != "chat.postMessage" or "UEVE" in stage.room.members:
            return None
        stage.slack.join(stage.room, "UEVE", told=False)
        return Fault.RATE_LIMITED

    stage.slack.faults = limited
    stage.authorize("t1")
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == ([], {"t1": ("withheld", "destination_enlarged")})


async def test_a_limit_alone_delays_a_turn(stage: Stage) -> None:
    stage.slack.fail("chat.postMessage", Fault.RATE_LIMITED)
    stage.authorize("t1")
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("sent",)}


async def test_a_limit_beyond_the_turns_end_is_a_failure(stage: Stage) -> None:
    stage.slack.retry_after = 100
    stage.slack.fail("chat.postMessage", Fault.RATE_LIMITED)
    stage.authorize("t1")
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == ([], {"t1": ("failed", "rate_limited")})


@pytest.mark.parametrize(("code", "times"), [("is_archived", 1), ("restricted_action", 1), ("no_text", 1)])
async def test_what_slack_refuses_has_failed_with_slacks_own_code(stage: Stage, code: str, times: int) -> None:
    stage.slack.fail("chat.postMessage", code, times=times)
    stage.authorize("t1")
    await stage.deliver()
    (record,) = stage.recorded()
    assert record.status == "failed"
    assert [(r.code, r.detail) for r in record.reasons] == [("connector_refused", code)]


async def test_a_text_that_slack_would_cut_is_not_sent_at_all(stage: Stage) -> None:
    stage.authorize("long", text="x" * LONGEST)
    stage.authorize("longer", text="x" * (LONGEST + 1))
    stage.authorize("pairs", text="\U0001f680" * (LONGEST // 2 + 1))
    stage.authorize("signs", text="&" * (LONGEST // 5 + 1))
    await stage.deliver()
    assert [len(text) for text in stage.said()] == [LONGEST]
    assert stage.outcomes() == {
        "long": ("sent",),
        "longer": ("failed", "text_too_long"),
        "pairs": ("failed", "text_too_long"),
        "signs": ("failed", "text_too_long"),
    }


async def test_a_slack_that_is_not_there_sends_nothing_and_leaves_nothing_uncertain(stage: Stage) -> None:
    stage.authorize("t1", destination="public", valid_until=now_ms() + 2500)
    await stage.deliver(url=f"http://127.0.0.1:{free_port()}/api/")
    assert stage.outcomes() == {"t1": ("failed", "connector_unreachable")}


async def test_a_paused_agent_says_nothing_that_was_authorized_before(stage: Stage) -> None:  # R-POL-4
    stage.authorize("t1")
    stage.write(made(AgentPaused, at=now_ms(), command="c", operator="o", agent="mesh", paused=True))
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == ([], {"t1": ("withheld", "paused")})


async def test_what_is_not_for_slack_or_has_no_text_is_left_to_others(stage: Stage) -> None:
    stage.authorize("elsewhere", room="discord:G1/C1")
    stage.authorize("act", text=None, action={"operation": "crm.refund"})
    stage.authorize("t1")
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == (["this is t1"], {"t1": ("sent",)})


ACTED: dict[str, tuple[list[str], list[str]]] = {
    "done": (["sent"], ["this is t1"]),
    "done after all": (["uncertain", "sent"], ["this is t1"]),
    "failed": (["failed"], []),
    "failed and then said to be done": (["failed", "sent"], []),  # R-ACT-4: the first stands
    "not known": (["uncertain"], []),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("statuses", "said"), ACTED.values(), ids=ACTED)
async def test_the_text_of_an_action_is_said_when_that_is_done(
    stage: Stage, statuses: list[str], said: list[str]
) -> None:
    valid = 60_000 if said else 400
    stage.authorize("t1", action={"operation": "crm.refund"}, valid_until=now_ms() + valid)
    for status in statuses:
        stage.write(made(TurnDelivered, at=now_ms(), turn="t1", room=ROOM, status=status))
    stage.authorize("t2")  # does not wait for it
    await stage.deliver()
    assert sorted(stage.said()) == [*said, "this is t2"]
    assert [record.status.value for record in stage.recorded() if record.turn == "t1"] == [
        *statuses,
        *("sent" for _ in said),
    ]


async def test_an_action_that_is_never_done_is_not_waited_for_as_long_as_it_is_valid(stage: Stage) -> None:
    stage.authorize("t1", action={"operation": "crm.refund"}, at=now_ms() - ACTION_MS, valid_until=now_ms() + 60_000)
    async with stage.courier() as carrying:
        await carrying.take_all(stage.log.scan("outbound"))
        await asyncio.wait_for(carrying.finish(), 10)
    assert stage.said() == []


async def test_an_action_that_is_done_later_is_waited_for(stage: Stage) -> None:
    stage.authorize("t1", action={"operation": "crm.refund"})
    async with stage.delivery() as running:
        await running.look()
        assert stage.said() == []
        stage.write(made(TurnDelivered, at=now_ms(), turn="t1", room=ROOM, status="sent"))
        await running.finish()
    assert stage.said() == ["this is t1"]


async def test_a_room_of_a_workspace_without_the_app_is_withheld(stage: Stage) -> None:
    stage.authorize("t1", room="slack:T7/C1")
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("withheld", "destination_unknown")}


@pytest.mark.parametrize("age", [0, WORTH_MS])
async def test_what_has_no_end_of_its_own_is_not_said_long_after_it_was_authorized(stage: Stage, age: int) -> None:
    stage.authorize("t1", destination="public", at=now_ms() - age, valid_until=None)
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("withheld", "validity_expired") if age else ("sent",)}


@pytest.mark.parametrize("late", [False, True])
async def test_nothing_outlives_its_claim(stage: Stage, late: bool) -> None:  # R-DLV-2
    at = now_ms() - SENT_WITHIN_MS + (0 if late else 60_000)
    stage.authorize("t1", at=at, valid_until=now_ms() + 60_000)
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("withheld", "validity_expired") if late else ("sent",)}
    assert SENT_WITHIN_MS < KEPT_MS


async def test_no_log_line_quotes_a_text_or_a_token(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    stage.slack.fail("chat.postMessage", Fault.RESET)
    stage.slack.fail("conversations.members", Fault.UNAVAILABLE)
    stage.authorize("t1", text="the zebra is out")
    await stage.deliver()
    ours = list(caplog.messages)
    assert any("t1" in line for line in ours)
    assert not any("zebra" in json.dumps(line) or stage.acme.token in line for line in ours)


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        ("outbound", b"acme", b"no record"),
        ("outbound", b"other", CODEC.encode(authorized())),
        ("grants", b"acme", CODEC.encode(authorized())),
    ],
)
async def test_what_no_worker_writes_is_not_said_and_stops_a_delivery(
    stage: Stage, topic: str, key: bytes, value: bytes
) -> None:
    stage.log.append(topic, key, value, timestamp=now_ms())
    with pytest.raises(LogError, match=rf"{topic}\[0\]: the record at 0 cannot be read"):
        await stage.deliver()
    assert stage.slack.posts == []
