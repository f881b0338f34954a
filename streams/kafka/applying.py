"""Decides how a file of records runs through a worker on a broker, so that it comes to what the embedded log gives.

Tenants are spread over partitions, which go on side by side. Time passes for every tenant, so a tick goes to each
partition. For `turngate apply --kafka`: topics of its own, on a broker of this machine, where time may be simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from turngate.processors.engine import Engine
from turngate.processors.keys import Keys
from turngate.schemas.catalog import APPLIED, OUTPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.streams.kafka.driver import KafkaDriver
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.lines import Line
from turngate.streams.log import Message

#: Each has every tick and a set of topics; more of them cost more than they save.
MAX_PARTITIONS = 8


@dataclass(slots=True)
class Spread:
    """Each partition's records, and of which line each of them is, by its place as `ce_id` names it."""

    records: list[list[Message]]
    lines: dict[str, int] = field(default_factory=dict)
    _ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, line: Line, partition: int, codec: Codec) -> None:
        """Put a line's record behind those of its partition."""
        offset = self._ends.get((line.topic, partition), 0)
        self._ends[line.topic, partition] = offset + 1
        assert line.at is not None
        message = Message(line.topic, partition, offset, line.at, line.key, line.encoded(codec))
        self.records[partition].append(message)
        self.lines[f"{line.topic}/{partition}/{offset}"] = line.number

    def order(self, message: Message) -> tuple[int, int, int]:
        """What came is sorted by the line that it came of: `ce_id` is its cause's place and a number."""
        cause, _, number = dict(message.headers)["ce_id"].decode().rpartition("/")
        return self.lines[cause], message.partition, int(number)


def spread(lines: Iterable[Line], codec: Codec) -> Spread:
    """Records over partitions, a tenant's in one; every line has its broker's time."""
    lines = list(lines)
    tenants = {key: n for n, key in enumerate(dict.fromkeys(line.key for line in lines if not line.key.isdigit()))}
    partitions = max(1, min(MAX_PARTITIONS, len(tenants)))
    made = Spread([[] for _ in range(partitions)])
    for line in lines:
        if line.partition == 0:
            for number in range(partitions):
                made.add(replace(line, value={**line.value, "tenant": str(number)}), number, codec)
        else:
            made.add(line, tenants.get(line.key, 0) % partitions, codec)
    return made


def apply(settings: KafkaSettings, lines: Iterable[Line], codec: Codec, keys: Keys) -> Iterator[Message]:
    """Everything that comes of the records but the stretches, committed and read back, in the order of the lines.

    Raises `turngate.streams.log.LogError` unless time may be simulated (`TURNGATE_TEST_TIME=1`, loopback), or where
    the broker or the worker fails.
    """
    over = spread(lines, codec)
    yield from sorted(asyncio.run(_outputs(settings, over, codec, keys)), key=over.order)


async def _outputs(settings: KafkaSettings, over: Spread, codec: Codec, keys: Keys) -> list[Message]:
    topics = [topic for topic in OUTPUT_TOPICS if topic != APPLIED]
    restore = partial(Engine.restore, keys=keys)
    async with KafkaDriver(settings, partitions=len(over.records), codec=codec, restore=restore) as driver:
        await asyncio.gather(*(driver.feed(records) for records in over.records))
        return [m for number in range(len(over.records)) for m in await driver.outputs(number, topics)]
