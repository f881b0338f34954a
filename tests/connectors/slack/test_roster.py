"""Listings come when the engine asks, and before observations go stale; what fails is tried while somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.connectors.slack.scene import installed
from tests.slack import Call, Fault, Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.events import ACCOUNT_CHANGED, changed
from turngate.connectors.slack.installations import App, Installation, Installations
from turngate.connectors.slack.roster import ACTIVE, EARLY, PACE, Roster
from turngate.schemas.inputs import MembershipPage, MessageObserved, PolicyPublished, Record
from turngate.schemas.outputs import EvidenceRecorded
from turngate.streams.clock import now_ms
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog

C1 = "slack:T1/C1"


@pytest.fixture
async def feed(tmp_path: Path) -> AsyncIterator[LocalFeed]:
    with LocalLog(tmp_path / "log", clock=now_ms) as log:
        yield LocalFeed(log)


@asynccontextmanager
async def roster(
    api: SlackApi, homes: Iterable[Installation], feed: LocalFeed, clock: Callable[[], int] = now_ms
) -> AsyncIterator[Roster]:
    homes = list(homes)
    running = Roster(api, Installations([App(a) for a in {h.app for h in homes}], homes), feed, clock)
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(30):
            await running.ready.wait()
        yield running
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def policy(freshness: str = "{}", stale: str = "{}") -> PolicyPublished:
    agents = '{"mesh": {"accounts": ["slack:T1/UBOT"]}}'
    document = f'{{"version": 1, "agents": {agents}, "freshness": {freshness}, "stale": {stale}}}'
    return PolicyPublished(tenant="acme", at=now_ms(), version="1", document=document)


def message(number: int = 1, room: str = C1) -> MessageObserved:
    fields = {"tenant": "acme", "at": now_ms(), "agent": "mesh", "room": room, "message": f"{room}/{number}"}
    return MessageObserved.model_validate(
        fields | {"author": "slack:T1/UALEX", "author_kind": "person", "text": "hello"}
    )


async def until(feed: LocalFeed, topic: str, good: Callable[[list[Record]], bool]) -> list[Record]:
    """What is on a topic once it is as it should be."""
    seen: list[Record] = []
    async with asyncio.timeout(30):
        async for record in feed.follow(topic, 0):
            seen.append(record)
            if good(seen):
                return seen
    raise AssertionError


def pages(records: Iterable[Record]) -> list[MembershipPage]:
    return [r for r in records if isinstance(r, MembershipPage)]


async def test_what_the_engine_asks_for_is_listed(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"], private=True)
    async with roster(api, [home], feed):
        await feed.append([policy(), message()])
        settled = await until(feed, "source-evidence", lambda seen: len(seen) == 2)
    assert [r.status.value for r in settled if isinstance(r, EvidenceRecorded)] == ["unknown", "known"]  # R-AUD-9
    last = settled[-1]
    assert isinstance(last, EvidenceRecorded)
    assert last.leaves[0].audience.readers == ("slack:T1/UALEX",)


async def test_what_was_asked_before_it_began_is_listed_if_somebody_still_waits(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    await feed.append([policy(), message()])
    async with roster(api, [home], feed):
        (page,) = pages(await until(feed, "membership-refreshes", lambda seen: True))
    assert (page.room, page.error, len(page.members)) == (C1, None, 2)


async def test_rooms_of_nobody_here_are_left_to_others(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    async with roster(api, [home], feed):
        await feed.append([policy(), message(room="slack:T9/C1"), message(room="teams:T1/C1"), message()])
        await until(feed, "membership-refreshes", lambda seen: True)
    assert {call.args["channel"] for call in slack.called("conversations.info")} == {"C1"}


@pytest.mark.parametrize("fault", [Fault.RATE_LIMITED, Fault.UNAVAILABLE, Fault.HALF, Fault.RESET, Fault.LOST])
async def test_a_listing_that_fails_says_so_and_is_tried_again(
    slack: Slack, acme: Workspace, home: Installation, feed: LocalFeed, fault: Fault
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX", "UBO"])
    slack.page = 2
    slack.retry_after = 0.1
    slack.fail("conversations.members", fault, after=1, times=2 if fault is Fault.RESET else 1)
    patience = 0.5 if fault is Fault.LOST else 10
    async with SlackApi(slack.url, patience) as api, roster(api, [home], feed):
        await feed.append([policy(), message()])
        seen = pages(await until(feed, "membership-refreshes", lambda seen: len(seen) == 2))
    assert [(p.error is None, len(p.members), p.last) for p in seen] == [(False, 0, True), (True, 3, True)]
    assert seen[0].refresh != seen[1].refresh


async def test_what_slack_refuses_is_asked_once_for_each_request(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C2", acme, ["UBOT", "UALEX"])
    async with roster(api, [home], feed):
        await feed.append([policy(), message()])  # no such conversation
        await until(feed, "membership-refreshes", lambda seen: True)
        await feed.append([message(room="slack:T1/C2")])
        seen = pages(await until(feed, "membership-refreshes", lambda seen: len(seen) == 2))
    assert [p.error for p in seen] == ["conversations.info: channel_not_found", None]
    assert len([c for c in slack.called("conversations.info") if c.args["channel"] == "C1"]) == 1


async def test_one_listing_settles_everything_said_before_it_began(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    async with roster(api, [home], feed):
        await feed.append([policy(), *map(message, range(20))])
        seen = await until(feed, "source-evidence", lambda seen: len(seen) == 40)
    assert [r.status.value for r in seen if isinstance(r, EvidenceRecorded)][20:] == ["known"] * 20
    assert len(slack.called("conversations.members")) == 1


async def test_what_is_said_while_a_room_is_listed_is_settled_by_the_next_listing(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    room = slack.channel("C1", acme, ["UBOT", "UALEX"])
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def happen(call: Call) -> None:
        loop.call_soon_threadsafe(begun.set)

    slack.before["conversations.members"] = happen
    async with roster(api, [home], feed):
        await feed.append([policy(), message(1)])
        await begun.wait()
        slack.join(room, "UBO")
        await feed.append([message(2)])
        evidence = await until(feed, "source-evidence", lambda seen: len(seen) == 4)
    first, second = pages([r async for r in feed.follow("membership-refreshes", 0, forever=False)])
    assert "slack:T1/UBO" in {m.reader for m in second.members}
    assert second.started_at > first.started_at
    assert [r.ref for r in evidence if isinstance(r, EvidenceRecorded)][-1] == f"message:{C1}/2"


async def test_rooms_are_listed_before_their_observations_go_stale(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    offset = [0]
    async with roster(api, [home], feed, clock=lambda: now_ms() + offset[0]):
        await feed.append([policy('{"observation": "10m"}'), message()])
        (first,) = pages(await until(feed, "membership-refreshes", lambda seen: True))
        offset[0] = int(EARLY * 600_000)
        _, second = pages(await until(feed, "membership-refreshes", lambda seen: len(seen) == 2))
    assert EARLY * 600_000 <= second.started_at - first.started_at < 600_000


async def test_an_account_that_changed_is_looked_at_anew(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    async with roster(api, [home], feed):
        await feed.append([policy(stale='{"hold": "1ms"}'), message(1)])  # how soon it is asked again
        await until(feed, "membership-refreshes", lambda seen: len(pages(seen)) == 1)
        acme.user("UALEX", guest=True)
        await feed.append([changed(home, C1, ACCOUNT_CHANGED, now_ms())])
        await feed.append([message(2)])
        _, after = pages(await until(feed, "membership-refreshes", lambda seen: len(pages(seen)) == 2))
    assert {m.reader: m.kind.value for m in after.members} == {"slack:T1/UBOT": "self", "slack:T1/UALEX": "guest"}


async def test_each_workspace_is_asked_with_its_own_token(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    other = slack.workspace("T2", bot="UBOT2")
    other.user("UEVE")
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    slack.channel("C2", other, ["UBOT2", "UEVE"])
    async with roster(api, [home, installed(other)], feed):
        await feed.append([policy(), message(), message(room="slack:T2/C2")])
        seen = pages(await until(feed, "membership-refreshes", lambda seen: len(seen) == 2))
    assert {(p.room, p.error) for p in seen} == {(C1, None), ("slack:T2/C2", None)}
    assert {(c.team, c.args["channel"]) for c in slack.called("conversations.info")} == {("T1", "C1"), ("T2", "C2")}


async def test_many_rooms_under_faults_are_all_listed_or_said_not_to_be(
    slack: Slack, acme: Workspace, home: Installation, feed: LocalFeed
) -> None:
    users = [f"U{n:03d}" for n in range(40)]
    for number, user in enumerate(users):
        acme.user(user, guest=number % 7 == 0)
    rooms = {
        f"C{n:03d}": slack.channel(f"C{n:03d}", acme, ["UBOT", *users[: n % 40 + 1]], private=n % 3 == 0)
        for n in range(80)
    }
    slack.page = 15
    slack.retry_after = 0.05
    bad = [Fault.RATE_LIMITED, Fault.UNAVAILABLE, Fault.HALF, Fault.BROKEN, Fault.FATAL, "fetch_members_failed"]
    slack.faults = lambda call: bad[len(slack.calls) % 6] if len(slack.calls) % 17 == 3 else None
    wanted = {f"slack:T1/{room}" for room in rooms}
    async with SlackApi(slack.url) as api, roster(api, [home], feed):
        await feed.append([policy(), *(message(room=room) for room in wanted)])
        seen = pages(
            await until(
                feed, "membership-refreshes", lambda seen: {p.room for p in pages(seen) if not p.error} == wanted
            )
        )
    failed = [p for p in seen if p.error is not None]
    assert len(failed) > 10
    assert all(p.members == () and p.info is None and p.last for p in failed)
    for page in (p for p in seen if p.error is None):
        members = rooms[page.room.partition("/")[2]].members
        assert {m.reader for m in page.members} == {f"slack:T1/{m}" for m in members}


async def test_a_room_in_which_something_is_said_is_kept_fresh_though_nobody_asks_any_more(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    offset = [0]
    async with roster(api, [home], feed, clock=lambda: now_ms() + offset[0]):
        await feed.append([policy('{"observation": "30h"}')])
        for number, room in enumerate(("C2", "C1"), 1):  # the silent one would come first
            slack.channel(room, acme, ["UBOT", "UALEX"])
            await feed.append([message(room=f"slack:T1/{room}")])
            await until(feed, "membership-refreshes", lambda seen, number=number: len(seen) == number)
        said = message(2)
        await feed.append([said.model_copy(update={"at": said.at + ACTIVE // 2})])
        offset[0] = ACTIVE + 60_000
        *_, third = pages(await until(feed, "membership-refreshes", lambda seen: len(seen) == 3))
        requests = [r async for r in feed.follow("refresh-requests", 0, forever=False)]
    assert third.room == C1
    assert len(requests) == 2


async def test_rooms_that_nobody_asks_for_are_listed_one_at_a_time(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    offset = [0]
    async with roster(api, [home], feed, clock=lambda: now_ms() + offset[0]):
        await feed.append([policy('{"observation": "10m"}')])
        for room in ("C1", "C2"):
            slack.channel(room, acme, ["UBOT", "UALEX"])
            await feed.append([message(room=f"slack:T1/{room}")])
        await until(feed, "membership-refreshes", lambda seen: len(seen) == 2)
        offset[0] = int(EARLY * 600_000)
        await until(feed, "membership-refreshes", lambda seen: len(seen) == 3)
        offset[0] += PACE
        *_, third, fourth = pages(await until(feed, "membership-refreshes", lambda seen: len(seen) == 4))
    assert {third.room, fourth.room} == {C1, "slack:T1/C2"}
    assert fourth.started_at - third.started_at >= PACE - 1_000  # the first was begun a moment after its turn


async def test_a_room_that_changes_while_somebody_waits_is_listed_again(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, feed: LocalFeed
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    async with roster(api, [home], feed):
        await feed.append([policy(), message()])
        await until(feed, "membership-refreshes", lambda seen: len(pages(seen)) == 1)
        void = changed(home, C1, "archived", now_ms())
        await feed.append([void])
        *_, second = pages(await until(feed, "membership-refreshes", lambda seen: len(pages(seen)) == 2))
        requests = [r async for r in feed.follow("refresh-requests", 0, forever=False)]
    assert second.started_at > void.at
    assert len(requests) == 1
