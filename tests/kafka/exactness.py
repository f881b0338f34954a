"""Whether everything was applied exactly once, in an order that can be repeated: the check behind the live tests.

It looks at inputs seen, not only at counters: what the broker holds is compared, byte for byte, with what comes of the
recorded stretches when the same inputs are applied on the embedded log (R-RUN-3). The engine of these tests chains a
digest over everything it is given, so one record left out, repeated or in another place changes all that follows.
"""

from __future__ import annotations

import asyncio

from aiokafka import TopicPartition

from tests.kafka.cluster import CODEC, Cluster
from turngate.streams.kafka.checkpoint import Gathered
from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.loading import load
from turngate.streams.kafka.records import BrokerRecords
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.local_runtime import Restore
from turngate.streams.verifying import Held, Verifying


async def assert_exact(cluster: Cluster, restore: Restore[Held], ends: dict[TopicPartition, int]) -> int:
    """Everything before `ends` was applied, once, and left the outputs and the state that its replay leaves.

    Returns how many drafts were dropped because their barrier was not reached.
    """
    late = 0
    for number, stretches in (await cluster.stretches()).items():
        late += sum(len(s.late) for s in stretches)
        at = {p.topic: p.offset for s in stretches for p in s.to}
        behind = {p: end for p, end in ends.items() if p.partition == number and at.get(p.topic, 0) < end}
        assert not behind, f"not all was applied: {behind}, but {at}"
        replayed = await asyncio.to_thread(_replayed, cluster, restore, number)
        assert await state_digest(cluster, number, restore) == replayed
    return late


def _replayed(cluster: Cluster, restore: Restore[Held], number: int) -> str:
    """Of the state that a replay of what is on the broker leaves; everything that comes of it must be there."""
    with BrokerRecords(cluster.settings, cluster.prefix) as records:
        verifying = Verifying(records, restore, CODEC, number)
        for step in verifying.steps():
            assert step.differences == []
        assert verifying.engines == []
        return verifying.replay.engine.state.digest()


async def state_digest(cluster: Cluster, number: int, restore: Restore[Held]) -> str:
    """Of the state that a worker would load now."""
    place = TopicPartition(cluster.prefix + STATE_TOPIC, number)
    side = plain_consumer(cluster.settings, committed=False)
    await side.start()
    try:
        end = (await side.end_offsets([place]))[place]
    finally:
        await side.stop()
    gathered = Gathered(number, lambda version: restore((), version))
    engine = await load(cluster.settings, place, end, gathered, lambda changes: restore(changes, None))
    return engine.state.digest()
