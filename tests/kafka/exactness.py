"""Whether everything was applied exactly once, in an order that can be repeated: the check behind the live tests.

It looks at inputs seen, not only at counters: what the broker holds is compared, byte for byte, with what comes of the
recorded stretches when the same inputs are applied on the embedded log (R-RUN-3). The engine of these tests chains a
digest over everything it is given, so one record left out, repeated or in another place changes all that follows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from aiokafka import TopicPartition

from tests.kafka.cluster import CODEC, Cluster
from turngate.schemas.catalog import APPLIED, INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.outputs import StretchApplied
from turngate.streams.kafka.checkpoint import Gathered
from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.loading import load
from turngate.streams.kafka.partition import Restore
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.local_runtime import Runtime
from turngate.streams.log import Headers, Message

Bytes = dict[str, list[tuple[bytes | None, bytes | None, Headers]]]


async def assert_exact(cluster: Cluster, restore: Restore, ends: dict[TopicPartition, int]) -> int:
    """Everything before `ends` was applied, once, and left the outputs and the state that its replay leaves.

    Returns how many drafts were dropped because their barrier was not reached.
    """
    inputs = await cluster.read(*INPUT_TOPICS)
    outputs = await cluster.read(*OUTPUT_TOPICS)
    late = 0
    for number in range(cluster.partitions):
        records = [CODEC.decode(m.value) for m in outputs[TopicPartition(APPLIED, number)]]
        stretches = [r for r in records if isinstance(r, StretchApplied)]
        late += sum(len(s.late) for s in stretches)
        at = {p.topic: p.offset for s in stretches for p in s.to}
        behind = {p: end for p, end in ends.items() if p.partition == number and at.get(p.topic, 0) < end}
        assert not behind, f"not all was applied: {behind}, but {at}"
        with LocalLog(partitions=cluster.partitions) as log:
            log.append_many(
                Append(m.topic, m.key, m.value, m.timestamp, number, m.headers, m.offset)
                for topic in INPUT_TOPICS
                for m in inputs[TopicPartition(topic, number)]
            )
            replay = Runtime(log, restore, CODEC, number)
            again = by_topic(replay.replay(stretches))
            found = by_topic(m for topic in OUTPUT_TOPICS for m in outputs[TopicPartition(topic, number)])
            assert found.keys() == again.keys()
            for topic, messages in found.items():
                assert messages == again[topic], f"{topic}[{number}] differs from its replay"
            assert await state_digest(cluster, number, restore) == replay.engine.state.digest()
    return late


def by_topic(messages: Iterable[Message]) -> Bytes:
    """Records without their places and times, which are the log's own."""
    found: Bytes = defaultdict(list)
    for m in messages:
        found[m.topic].append((m.key, m.value, m.headers))
    return dict(found)


async def state_digest(cluster: Cluster, number: int, restore: Restore) -> str:
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
