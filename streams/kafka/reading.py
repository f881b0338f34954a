"""Decides what somebody who only looks at a topic sees: committed records, partition by partition, as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import PATIENCE
from turngate.streams.log import LogError, Message

#: Milliseconds for which one question waits for new records; how soon an interrupt is seen.
_WAIT_MS = 200


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin in every partition: `offset`, the first record from `time` (ms) on, else the beginning or end."""

    offset: int | None = None
    time: int | None = None
    end: bool = False


async def follow(settings: KafkaSettings, topic: str, start: Start, *, forever: bool) -> AsyncIterator[Message]:
    """The committed records of a topic from `start` on; not `forever`: up to where the topic ends now.

    Raises `LogError` where the broker or the topic cannot be read.
    """
    places = await places_of(settings, topic)
    consumer = plain_consumer(settings, committed=True)
    try:
        await consumer.start()
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        await _seek(consumer, places, start, ends)
        open_ = {p for p in places if await consumer.position(p) < ends[p]}
        while forever or open_:
            for place, records in (await consumer.getmany(timeout_ms=_WAIT_MS)).items():
                for r in records:
                    if forever or r.offset < ends[place]:
                        yield Message(topic, r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
            if not forever:
                # positions count the broker's own control records, which are never handed out
                open_ = {p for p in open_ if await consumer.position(p) < ends[p]}
    except KafkaError as error:
        raise LogError(_words(settings, topic, error)) from error
    finally:
        await consumer.stop()


def _words(settings: KafkaSettings, topic: str, error: KafkaError) -> str:
    if isinstance(error, OffsetOutOfRangeError):
        return f"{topic}: there is no such offset; begin at `beginning`"
    return f"{settings.bootstrap_servers}: {topic} cannot be read: {error}"


async def places_of(settings: KafkaSettings, topic: str) -> list[TopicPartition]:
    """The topic's partitions, all topics being asked for: a question by name may create one that is not there."""
    async with _admin(settings) as admin:
        described = {t["topic"]: t for t in await admin.describe_topics() if not t["error_code"]}
    if topic not in described:
        raise LogError(f"there is no topic {topic}; create the topics with `turngate topics create`")
    return [TopicPartition(topic, n) for n in sorted(p["partition"] for p in described[topic]["partitions"])]


async def _seek(
    consumer: AIOKafkaConsumer, places: list[TopicPartition], start: Start, ends: dict[TopicPartition, int]
) -> None:
    if start.offset is None and start.time is None:
        await (consumer.seek_to_end(*places) if start.end else consumer.seek_to_beginning(*places))
        return
    begins = await consumer.beginning_offsets(places)
    found = {} if start.time is None else await consumer.offsets_for_times(dict.fromkeys(places, start.time))
    for place in places:
        at = found.get(place)
        wanted = start.offset if start.offset is not None else ends[place] if at is None else at.offset
        consumer.seek(place, min(max(wanted, begins[place]), ends[place]))


async def reach(settings: KafkaSettings) -> int:
    """How many brokers there are. Raises `LogError` where none answers."""
    async with _admin(settings) as admin:
        return len((await admin.describe_cluster())["brokers"])


def unreachable(settings: KafkaSettings) -> str:
    """What is said of a broker that does not answer."""
    return (
        f"no broker answers at {settings.bootstrap_servers} by {settings.security}: is it running, and are these its "
        "address and its security settings?"
    )


@asynccontextmanager
async def _admin(settings: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(request_timeout_ms=int(PATIENCE * 1000), **settings.client_options())
    try:
        async with asyncio.timeout(PATIENCE):
            await admin.start()
            yield admin
    except (KafkaError, TimeoutError):
        raise LogError(unreachable(settings)) from None
    finally:
        await admin.close()
