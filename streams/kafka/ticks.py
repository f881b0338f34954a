"""Decides how time passes when nothing else arrives: one `Tick` a second for each partition worked on (R-TIME-3)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from turngate.schemas.catalog import TICKS
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Tick
from turngate.streams.kafka.clients import LOST, forget, plain_producer
from turngate.streams.kafka.settings import KafkaSettings

#: Seconds between two ticks of a partition (contract section 3).
EVERY = 1.0

log = logging.getLogger(__name__)


async def tick(settings: KafkaSettings, prefix: str, codec: Codec, partitions: Callable[[], Iterable[int]]) -> None:
    """Write ticks until cancelled. A tick that cannot be written is left out: the next one says the same."""
    # Batches are given up after their deadline, so that a broker that was away is not sent hours of ticks at once.
    producer = plain_producer(settings, request_timeout_ms=5_000)
    await producer.start()
    try:
        while True:
            await asyncio.sleep(EVERY)
            for partition in partitions():
                record = Tick(tenant=str(partition), at=int(time.time() * 1000))
                try:
                    delivery = await producer.send(
                        prefix + TICKS, codec.encode(record), record.tenant.encode(), partition=partition
                    )
                except LOST as error:
                    log.warning("partition %d: no tick: %s", partition, type(error).__name__)
                else:
                    forget([delivery])
    finally:
        await producer.stop()
