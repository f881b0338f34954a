"""The assessor beside a broker: who is asked, what is published, and that a crash loses no write."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.connectors.assessor.writes import DISABLED, ENABLED, a_policy, a_write
from tests.kafka.cluster import CODEC, Cluster, Sent, until
from turngate.connectors.assessor.assessment import Assess, Assessment
from turngate.connectors.assessor.service import Assessor
from turngate.schemas.inputs import Label, MemoryWrite, Record, SensitivityAssessed
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.settings import KafkaSettings

pytestmark = pytest.mark.kafka

NO_RECORD = b"no record"


@pytest.fixture
async def cluster(kafka: str, unique: str) -> Cluster:
    """Topics of two partitions, and a policy of a tenant `acme` that enables the assessor."""
    made = Cluster(KafkaSettings.read(kafka, environment={}), f"{unique}-", 2)
    await made.make_topics()
    await put(made, "policies", a_policy(ENABLED), a_policy(DISABLED, "other"))
    return made


async def put(cluster: Cluster, topic: str, *records: Record) -> None:
    sent = [Sent(topic, len(r.tenant) % 2, r.tenant.encode(), CODEC.encode(r)) for r in records]
    await cluster.send(sent, one_by_one=True)


async def answers(cluster: Cluster) -> list[SensitivityAssessed]:
    read = await cluster.read("memory-writes")
    values = [message.value for messages in read.values() for message in messages]
    records = [CODEC.decode(value) for value in values if value != NO_RECORD]
    return [record for record in records if isinstance(record, SensitivityAssessed)]


@asynccontextmanager
async def assessing(cluster: Cluster, assess: Assess) -> AsyncIterator[asyncio.Event]:
    """An assessor that has begun; the event stops it in good order, the end of the block as a crash would."""
    stop = asyncio.Event()
    assessor = Assessor(
        cluster.settings, CODEC, assess, Names(prefix=cluster.prefix, group=f"{cluster.prefix}assessors")
    )
    running = asyncio.create_task(assessor.run(stop))
    try:
        begun = asyncio.create_task(assessor.ready.wait())
        await asyncio.wait([begun, running], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert assessor.ready.is_set()
        yield stop
        if stop.is_set():
            await asyncio.wait_for(running, 30)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_writes_of_both_topics_are_answered_where_the_policy_enables_it(cluster: Cluster) -> None:
    asked: list[str] = []

    async def assess(write: MemoryWrite, seconds: float) -> Assessment:
        asked.append(write.write)
        assert 1 < seconds < 2  # the default deadline of two seconds, less what publishing takes
        return Assessment(Label.SENSITIVE, "note", ask_author=True)

    async with assessing(cluster, assess) as stop:
        await put(cluster, "memory-writes", a_write(write="w0", tenant="other"), a_write(write="w1"))
        await put(cluster, "memory-writes", a_write(write="w2", op="derive"), a_write(write="w3", health=True))
        await cluster.send([Sent("memory-writes", 0, b"acme", NO_RECORD)])
        await put(cluster, "operator-commands", a_write(write="w4", by="operator", op="amend"))

        async def all_answered() -> bool:
            return len(await answers(cluster)) == 2

        await until(all_answered)
        stop.set()
    assert sorted(asked) == ["w1", "w4"]
    said = sorted(await answers(cluster), key=lambda r: r.write)
    assert [(r.tenant, r.write, r.label, r.note, r.ask_author) for r in said] == [
        ("acme", "w1", "sensitive", "note", True),
        ("acme", "w4", "sensitive", "note", True),
    ]


async def test_a_policy_that_comes_later_counts_from_then_on(cluster: Cluster) -> None:
    async def assess(write: MemoryWrite, seconds: float) -> Assessment:
        return Assessment(Label.ORDINARY)

    async with assessing(cluster, assess):
        await put(cluster, "policies", a_policy(ENABLED, "third"))
        numbers = iter(range(1000))

        async def answered() -> bool:
            await put(cluster, "memory-writes", a_write(write=f"w{next(numbers)}", tenant="third"))
            return bool(await answers(cluster))

        await until(answered)


async def test_a_slow_write_holds_up_no_other(cluster: Cluster) -> None:
    slow = asyncio.Event()

    async def assess(write: MemoryWrite, seconds: float) -> Assessment:
        if write.write == "w1":
            await slow.wait()
        return Assessment(Label.ORDINARY)

    async with assessing(cluster, assess) as stop:
        await put(cluster, "memory-writes", *(a_write(write=f"w{n}") for n in (1, 2, 3)))

        async def others_answered() -> bool:
            return sorted(r.write for r in await answers(cluster)) == ["w2", "w3"]

        await until(others_answered)
        stop.set()
        slow.set()  # what is under way is finished before it ends
    assert len(await answers(cluster)) == 3


async def test_a_crash_loses_no_write_and_a_good_end_repeats_none(cluster: Cluster) -> None:
    never = asyncio.Event()

    async def assess(write: MemoryWrite, seconds: float) -> Assessment:
        if write.write == "w1":
            await never.wait()
        return Assessment(Label.ORDINARY)

    async def quick(write: MemoryWrite, seconds: float) -> Assessment:
        return Assessment(Label.ORDINARY)

    async with assessing(cluster, assess):
        await put(cluster, "memory-writes", a_write(write="w1"), a_write(write="w2"))

        async def second_answered() -> bool:
            return [r.write for r in await answers(cluster)] == ["w2"]

        await until(second_answered)
    async with assessing(cluster, quick) as stop:

        async def first_answered() -> bool:
            return "w1" in [r.write for r in await answers(cluster)]

        await until(first_answered)
        stop.set()
    before = sorted(r.write for r in await answers(cluster))
    assert before in (["w1", "w2"], ["w1", "w2", "w2"])  # at least once; the engine takes the first
    async with assessing(cluster, quick) as stop:
        await put(cluster, "memory-writes", a_write(write="w9"))

        async def last_answered() -> bool:
            return "w9" in [r.write for r in await answers(cluster)]

        await until(last_answered)
        stop.set()
    assert sorted(r.write for r in await answers(cluster)) == [*before, "w9"]
