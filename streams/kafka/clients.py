"""Decides how this runtime's own Kafka clients are made, and what a lost producer looks like."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import IllegalOperation, KafkaError
from aiokafka.producer import sender

from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import OUTPUT_BYTES
from turngate.streams.log import Headers, LogError

#: What a producer raises that was fenced, or whose broker went away: `ProducerFenced` from a commit or from a delivery,
#: `IllegalOperation` (no `KafkaError`) from a send after that, `AssertionError` from every call on a dead producer.
LOST = (KafkaError, IllegalOperation, AssertionError)

#: Of a transaction, in milliseconds: an owner that hangs in one holds up its successor for so long.
TRANSACTION_TIMEOUT_MS = 10_000
#: Bytes of a record batch; a single larger record still goes, as a batch of its own.
BATCH_BYTES = 256 * 1024
#: Seconds until a refused AddPartitionsToTxn is tried again. While the markers of one transaction are written, the next
#: one's first request is refused; with aiokafka's 20 ms one partition commits 42 times a second, with 5 ms 123 times.
sender.BACKOFF_OVERRIDE = 0.005


def transactional_producer(settings: KafkaSettings, transactional_id: str) -> AIOKafkaProducer:
    """The producer of one partition. Its start fences the former owner and waits for that one's transaction to end."""
    return AIOKafkaProducer(
        transactional_id=transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        retry_backoff_ms=20,  # a start beside an open transaction is refused once, then tried again after this
        acks="all",
        linger_ms=0,
        max_batch_size=BATCH_BYTES,
        max_request_size=OUTPUT_BYTES,
        **settings.client_options(),
    )


def plain_producer(settings: KafkaSettings, **more: Any) -> AIOKafkaProducer:
    """A producer without transactions."""
    return AIOKafkaProducer(acks="all", linger_ms=0, **settings.client_options(), **more)


def plain_consumer(settings: KafkaSettings, *, committed: bool, **more: Any) -> AIOKafkaConsumer:
    """A consumer of no group, told by hand what it reads; not `committed`: its end offsets are high watermarks."""
    return AIOKafkaConsumer(
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed" if committed else "read_uncommitted",
        max_partition_fetch_bytes=OUTPUT_BYTES,
        **settings.client_options(),
        **more,
    )


class TooLarge(LogError):
    """A record that the broker does not take. Whoever applies the same input again comes to the same record."""


Entry = tuple[bytes | None, bytes | None, Headers]


async def send_all(producer: AIOKafkaProducer, topic: str, partition: int, entries: Iterable[Entry]) -> Sequence[Any]:
    """Send records as whole batches, which costs half of sending them singly; the futures of their deliveries.

    Raises `TooLarge` for a record that no batch can take. Deliveries begun before that are not lost sight of.
    """
    futures: list[asyncio.Future[Any]] = []
    batch = producer.create_batch()
    try:
        for key, value, headers in entries:
            if batch.append(key=key, value=value, timestamp=None, headers=list(headers)) is not None:
                continue
            futures.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            if batch.append(key=key, value=value, timestamp=None, headers=list(headers)) is None:
                raise TooLarge(f"{topic}: a record of {len(value or b'')} bytes fits into no batch")
        if batch.record_count():
            futures.append(await producer.send_batch(batch, topic, partition=partition))
    except BaseException:
        forget(futures)
        raise
    return futures


def forget(futures: Iterable[asyncio.Future[Any]]) -> None:
    """Fetch the exceptions of deliveries that no longer matter, or asyncio reports them as never retrieved."""
    for future in futures:
        future.add_done_callback(lambda f: f.cancelled() or f.exception())


def named(error: BaseException) -> str:
    """An error in a log line: what is said of our own, and others by their class, since their texts may quote keys."""
    return str(error) if isinstance(error, LogError) else type(error).__name__
