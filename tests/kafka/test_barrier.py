"""No draft is decided on tables that lack a record acknowledged before it was sent (R-RUN-2), on a live broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from tests.kafka.chained import Chained
from tests.kafka.cluster import CODEC, Cluster, until
from tests.kafka.exactness import assert_exact
from tests.streams.world import READERS, ROOMS, an, draft
from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS
from turngate.schemas.outputs import StretchApplied
from turngate.streams.kafka.clients import plain_producer, transactional_producer
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.watermarks import Watermarks

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

ROUNDS = 100
JOINS = "membership-refreshes"
#: A transaction over several topics: its commit is acknowledged before the last of them shows it.
TOUCHED = (JOINS, "observed-messages", "identity-proofs", "tool-results", "memory-writes", "approvals", "deliveries")


@asynccontextmanager
async def running(kafka: str, prefix: str) -> AsyncIterator[tuple[Cluster, Worker]]:
    cluster = Cluster(KafkaSettings.read(kafka), f"{prefix}-", 1)
    await cluster.make_topics()
    options = WorkerOptions(names=Names(cluster.prefix, cluster.prefix), session=6.0, test_time=False)
    async with Worker(cluster.settings, CODEC, options, Chained.restore) as worker:

        async def owns() -> bool:
            return 0 in worker.committed()

        await until(owns)
        yield cluster, worker


async def write_pairs(cluster: Cluster, worker: Worker, *, transactional: bool) -> dict[TopicPartition, int]:
    """A join, and once it is acknowledged a draft, again and again; each pair is applied before the next."""
    join = an("MembershipChanged", 0, room=ROOMS[0], reader=READERS[0], kind="member", change="joined")
    joins: AIOKafkaProducer = plain_producer(cluster.settings)
    if transactional:
        joins = transactional_producer(cluster.settings, f"{cluster.prefix}connector")
    drafts = plain_producer(cluster.settings)
    await joins.start()
    await drafts.start()
    try:
        for n in range(ROUNDS):
            if transactional:
                async with joins.transaction():
                    for topic in TOUCHED:
                        await joins.send(cluster.prefix + topic, join.value, join.key, partition=0)
            else:
                await joins.send_and_wait(cluster.prefix + JOINS, join.value, join.key, partition=0)
            made = draft(n, ROOMS[0], f"t{n}", ())
            await drafts.send_and_wait(cluster.prefix + DRAFTS, made.value, made.key, partition=0)
            while worker.committed()[0][DRAFTS] <= n:
                await asyncio.wait_for(worker.runtime.wait_changed(), 20)
    finally:
        await joins.stop()
        await drafts.stop()
    return {TopicPartition(DRAFTS, 0): ROUNDS}


def blind(stretches: list[StretchApplied]) -> int:
    """How many drafts were applied before the join that had been acknowledged before they were sent."""
    joins = drafts = 0
    missed = 0
    for stretch in stretches:
        to = {p.topic: p.offset for p in stretch.to}
        joins = to.get(JOINS, joins)
        if DRAFTS in to:
            drafts = to[DRAFTS]
            # A transaction leaves one control record after each join, so the n-th join is at 2n.
            missed += joins < (2 * drafts - 1 if joins_are_transactional(stretches) else drafts)
    return missed


def joins_are_transactional(stretches: list[StretchApplied]) -> bool:
    return max((p.offset for s in stretches for p in s.to if p.topic == JOINS), default=0) > ROUNDS + 1


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
async def test_a_join_acknowledged_before_a_draft_is_always_seen(kafka: str, unique: str, transactional: bool) -> None:
    async with running(kafka, unique) as (cluster, worker):
        ends = await write_pairs(cluster, worker, transactional=transactional)
        assert worker.runtime.owned[0].partition.late == 0
    stretches = (await cluster.stretches())[0]
    assert joins_are_transactional(stretches) == transactional
    assert blind(stretches) == 0
    await assert_exact(cluster, Chained.restore, ends)


async def nothing_asked(partition: int) -> dict[str, int]:
    return {topic: 0 for topic in INPUT_TOPICS if topic != DRAFTS}


async def test_without_the_barrier_a_join_would_be_missed(kafka: str, unique: str) -> None:
    """The fault that the barrier is there for: else the test above would prove nothing."""
    async with running(kafka, unique) as (cluster, worker):
        worker.runtime.owned[0].partition.hooks.ask = nothing_asked
        await write_pairs(cluster, worker, transactional=True)
    missed = blind((await cluster.stretches())[0])
    assert missed > 0


async def test_a_question_never_shares_an_answer_that_was_asked_for_before_it(kafka: str, unique: str) -> None:
    """Partitions share questions, but none that has gone out already: its answer may be older than what was read."""
    cluster = Cluster(KafkaSettings.read(kafka), f"{unique}-", 4)
    await cluster.make_topics()
    watermarks = Watermarks(cluster.settings, cluster.prefix)
    producer = plain_producer(cluster.settings)
    await watermarks.start()
    await producer.start()
    try:
        for n in range(1, 101):
            others = [asyncio.create_task(watermarks.barrier(p)) for p in (0, 2, 3)]
            sending = asyncio.create_task(producer.send_and_wait(cluster.prefix + JOINS, b"x", b"acme", partition=1))
            early = asyncio.create_task(watermarks.barrier(1))
            await sending
            assert (await watermarks.barrier(1))[JOINS] == n
            assert (await early)[JOINS] in (n - 1, n)
            assert [(await other)[JOINS] for other in others] == [0, 0, 0]
    finally:
        await producer.stop()
        await watermarks.stop()
