"""What is told of a room too late counts for what was said there after it, and told before."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.slack.conftest import APPS, Log
from tests.connectors.slack.scene import installed
from tests.connectors.slack.test_roster import policy
from tests.slack import Conversation, Slack, Workspace
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.installations import Installations
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.listing import Listing
from turngate.schemas.inputs import MessageObserved, RoomChanged
from turngate.schemas.outputs import EvidenceRecorded
from turngate.schemas.shapes import Member, MemberKind, RoomInfo, RoomKind, Visibility
from turngate.streams.clock import now_ms
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog


@pytest.fixture
def room(slack: Slack, acme: Workspace) -> Conversation:
    seconds = itertools.count(now_ms() // 1000 - 60)
    slack.clock = lambda: next(seconds)
    return slack.channel("C1", acme, ["UBOT", "UALEX", "UBO"])


async def taken(taking: Intake, *envelopes: dict[str, Any]) -> None:
    for envelope in envelopes:
        await taking.take("A1", envelope)


async def test_a_message_that_came_before_the_change_it_followed_is_told_again(
    slack: Slack, room: Conversation, taking: Intake, log: Log
) -> None:
    slack.say(room, "UALEX", "to everybody")
    slack.convert(room, private=True)
    slack.say(room, "UALEX", "among us")
    before, change, after = slack.queue
    await taken(taking, before, after, change)
    *_, void, _, again = log.records
    assert isinstance(void, RoomChanged)
    assert isinstance(again, MessageObserved)
    assert (again.message, again.text, again.edited) == (f"slack:T1/C1/{after['event']['ts']}", None, True)
    assert again.at > void.at  # so that a listing may settle it


async def test_what_comes_in_order_is_told_once(slack: Slack, room: Conversation, taking: Intake, log: Log) -> None:
    slack.say(room, "UALEX", "to everybody")
    slack.join(room, "UCY")
    slack.leave(room, "UBO")
    slack.say(room, "UALEX", "without Bo")
    await taken(taking, *slack.queue)
    assert [type(r).__name__ for r in log.records] == [
        "MessageObserved",
        *["MembershipChanged"] * 2,
        "MessageObserved",
    ]


async def test_a_second_change_leaves_it_unknown(slack: Slack, room: Conversation, taking: Intake, log: Log) -> None:
    slack.leave(room, "UBO")
    slack.archive(room)
    slack.say(room, "UALEX", "alone")
    left, archived, said = slack.queue
    await taken(taking, said, left, archived)
    first, second = (r for r in log.records if isinstance(r, MessageObserved) and r.edited)
    assert (first.quotes, len(second.quotes)) == ((), 1)


async def test_the_engine_takes_it_to_be_of_the_room_as_it_is_then(
    slack: Slack, acme: Workspace, room: Conversation, tmp_path: Path
) -> None:
    home = installed(acme)
    slack.convert(room, private=True)
    slack.say(room, "UALEX", "among us")
    change, said = slack.queue
    with LocalLog(tmp_path / "log", clock=now_ms) as log:
        feed = LocalFeed(log)
        info = RoomInfo(kind=RoomKind.CHANNEL, visibility=Visibility.WORKSPACE, workspaces=("slack:T1",))
        members = (Member(reader="slack:T1/UBOT", kind=MemberKind.SELF),)
        await feed.append([policy(), *Listing(home, "C1", now_ms() - 10, info, members).pages(now_ms())])
        taking = Intake(Installations(APPS, [home]), Directory(), feed.append)
        found = []
        for envelope in (said, change):
            await taking.take("A1", envelope)
            evidence = [r async for r in feed.follow("source-evidence", 0, forever=False)]
            about = [r for r in evidence if isinstance(r, EvidenceRecorded) and said["event"]["ts"] in r.ref]
            found.append((about[-1].status.value, len(about[-1].leaves)))
    assert found == [("known", 1), ("unknown", 2)]
