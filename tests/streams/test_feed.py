"""A feed, embedded and on a broker: what is appended is on the log when that returns, and is seen by all who follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kafka.cluster import Cluster
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MessageObserved, PolicyPublished, Record, RoomChanged
from turngate.schemas.outputs import RefreshRequested
from turngate.streams.clock import now_ms
from turngate.streams.feed import Feed
from turngate.streams.kafka.feed import KafkaFeed
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog
from turngate.streams.log import LogError

DOCUMENT = '{"version": 1, "agents": {"mesh": {"accounts": ["slack:T1/UBOT"]}}}'


def message(number: int) -> MessageObserved:
    room = "slack:T1/C1"
    fields = {"tenant": "acme", "at": now_ms(), "agent": "mesh", "room": room, "message": f"{room}/{number}"}
    return MessageObserved.model_validate(fields | {"author_kind": "person", "text": "hello"})


def changed(number: int) -> RoomChanged:
    return RoomChanged(tenant="acme", at=now_ms(), agent="mesh", room=f"slack:T1/C{number}", what="archived")


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[LocalFeed]:
    with LocalLog(tmp_path / "log", clock=now_ms) as log:
        yield LocalFeed(log)


@pytest.fixture(params=["embedded", pytest.param("broker", marks=pytest.mark.kafka)])
async def feed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Feed]:
    if request.param == "embedded":
        with LocalLog(tmp_path / "log", clock=now_ms) as log:
            yield LocalFeed(log)
        return
    settings = KafkaSettings.read(request.getfixturevalue("kafka"))
    prefix = f"{request.getfixturevalue('unique')}-"
    await Cluster(settings, prefix, 2).make_topics()
    async with KafkaFeed(settings, Codec(), prefix) as broker:
        yield broker


async def test_what_is_appended_is_there_in_order(feed: Feed) -> None:
    records: list[Record] = [*map(message, range(3)), *map(changed, range(3))]
    await feed.append(records)
    there = [[r async for r in feed.follow(t, 0, forever=False)] for t in ("observed-messages", "membership-refreshes")]
    assert there == [records[:3], records[3:]]
    assert [r async for r in feed.follow("observed-messages", now_ms() + 60_000, forever=False)] == []


async def test_all_who_follow_see_what_comes(feed: Feed) -> None:
    await feed.append([changed(0)])
    seen: list[list[Record]] = [[], []]
    there = asyncio.Condition()

    async def following(number: int) -> None:
        async for record in feed.follow("membership-refreshes", 0):
            async with there:
                seen[number].append(record)
                there.notify_all()

    tasks = [asyncio.create_task(following(number)) for number in (0, 1)]
    try:
        async with asyncio.timeout(30), there:
            await there.wait_for(lambda: all(len(records) == 1 for records in seen))
        later = [changed(1), changed(2)]
        await feed.append(later)
        async with asyncio.timeout(30), there:
            await there.wait_for(lambda: all(records[1:] == later for records in seen))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_comes_while_somebody_reads_is_seen_once_and_in_order(feed: Feed) -> None:
    await feed.append([changed(0), changed(1)])
    seen: list[Record] = []
    async for record in feed.follow("membership-refreshes", 0):
        if not seen:
            await asyncio.gather(feed.append([changed(2)]), feed.append([changed(3), changed(4)]))
        seen.append(record)
        if len(seen) == 5:
            break
    assert [record.room for record in seen if isinstance(record, RoomChanged)] == [f"slack:T1/C{n}" for n in range(5)]


async def test_an_embedded_log_applies_what_is_appended(local: LocalFeed) -> None:
    policy = PolicyPublished(tenant="acme", at=now_ms(), version="1", document=DOCUMENT)
    await local.append([policy])
    await local.append([message(1)])
    (asked,) = [r async for r in local.follow("refresh-requests", 0, forever=False)]
    assert isinstance(asked, RefreshRequested)
    assert (asked.room, asked.agent) == ("slack:T1/C1", "mesh")


async def test_time_passes_on_an_embedded_log(local: LocalFeed) -> None:
    ticking = asyncio.create_task(local.tick())
    try:
        async with asyncio.timeout(30):
            async for tick in local.follow("ticks", 0):
                assert tick.tenant == "0"
                break
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)


async def test_a_broker_that_is_not_there() -> None:
    with pytest.raises(LogError, match="no broker answers"):
        async with KafkaFeed(KafkaSettings.read("127.0.0.1:1"), Codec()):
            pass
