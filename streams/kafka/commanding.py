"""Decides how an operator's command gets onto a broker, and when everything that came of it is known.

The stretch that a worker records on `applied` says that the command was applied, and what came of it was written in the
same transaction. So nothing has to be guessed from silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError

from turngate.schemas.catalog import APPLIED, DEAD_LETTERS, OUTPUT_TOPIC
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import StretchApplied
from turngate.schemas.shapes import Position
from turngate.streams.kafka.clients import plain_consumer, plain_producer
from turngate.streams.kafka.reading import unreachable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError

#: Where something may come of an operator's command.
ANSWERS = tuple(dict.fromkeys((OUTPUT_TOPIC["GrantChanged"], OUTPUT_TOPIC["ErasureApplied"], DEAD_LETTERS)))
#: Milliseconds for which one question waits for new records.
_WAIT_MS = 200


class NotApplied(LogError):
    """A command that lies on the log and that no worker applied in time; it will be applied when one does."""


async def carry_out(
    settings: KafkaSettings, codec: Codec, topic: str, record: Record, patience: float
) -> tuple[Position, list[Record]]:
    """Send a command; where it lies on the log, and what was committed on `ANSWERS` since, once it was applied.

    Raises `NotApplied` where that takes more than `patience` seconds after it was acknowledged, and `LogError` where
    the broker refuses it or cannot be reached: it may lie on the log then, or not.
    """
    answers = plain_consumer(settings, committed=True)
    marks = plain_consumer(settings, committed=False)
    producer = plain_producer(settings, enable_idempotence=True)
    try:
        for client in (answers, marks, producer):
            await client.start()
        before = await _ends(marks, (APPLIED, *ANSWERS), await _partitions(marks, topic))
        value = codec.encode(record)
        sent = await producer.send_and_wait(topic, value, key=record.tenant.encode())
        place = Position(topic=topic, partition=sent.partition, offset=sent.offset)
        _begin(answers, {at: end for at, end in before.items() if at.partition == sent.partition})
        try:
            async with asyncio.timeout(patience):
                return place, await _until_applied(answers, marks, codec, place)
        except TimeoutError:
            raise NotApplied(
                f"no worker applied it within {patience:g} s; it is on {topic}[{place.partition}] at {place.offset} "
                "and will be applied when one does, so do not give it again"
            ) from None
    except KafkaConnectionError:
        raise LogError(unreachable(settings)) from None
    except KafkaError as error:
        raise LogError(f"{settings.bootstrap_servers}: {error}") from error
    finally:
        for closing in (producer, answers, marks):
            await closing.stop()


async def _partitions(client: AIOKafkaConsumer, topic: str) -> set[int]:
    """The topic's partitions, all topics being asked for: a question by name may create one that is not there."""
    found = (await client._client.fetch_all_metadata()).partitions_for_topic(topic)
    if not found:
        raise LogError(f"there is no topic {topic}; create the topics with `turngate topics create`")
    return set(found)


async def _ends(
    client: AIOKafkaConsumer, topics: Iterable[str], partitions: Iterable[int]
) -> dict[TopicPartition, int]:
    await client._client.set_topics(list(topics))  # a question about an unknown one takes a second
    places = [TopicPartition(topic, partition) for topic in topics for partition in partitions]
    ends: dict[TopicPartition, int] = await client.end_offsets(places)
    return ends


def _begin(consumer: AIOKafkaConsumer, places: dict[TopicPartition, int]) -> None:
    consumer.assign(list(places))
    for place, offset in places.items():
        consumer.seek(place, offset)


async def _until_applied(
    answers: AIOKafkaConsumer, marks: AIOKafkaConsumer, codec: Codec, place: Position
) -> list[Record]:
    """Read until the command was applied, and then up to where the answers' topics end after that."""
    found: list[Record] = []
    ends: dict[TopicPartition, int] | None = None
    while True:
        for at, came in (await answers.getmany(timeout_ms=_WAIT_MS)).items():
            for one in came:
                record = _decoded(codec, at, one.offset, one.value)
                if at.topic != APPLIED:
                    found.append(record)
                elif ends is None and _covers(record, place):
                    # What the stretch brought lies before the high watermarks asked now: it was written before it.
                    ends = await _ends(marks, ANSWERS, (place.partition,))
        if ends is not None and all([await answers.position(at) >= end for at, end in ends.items()]):
            return found


def _decoded(codec: Codec, at: TopicPartition, offset: int, value: bytes | None) -> Record:
    try:
        return codec.decode(value)
    except Undecodable:
        raise LogError(
            f"{at.topic}[{at.partition}]: the record at {offset} cannot be read: is a schema registry in use that is "
            "not named here? The command is on the log"
        ) from None


def _covers(record: Record, place: Position) -> bool:
    """Whether a stretch applied what lies at this place."""
    ends = record.to if isinstance(record, StretchApplied) else ()
    return any(end.topic == place.topic and end.offset > place.offset for end in ends)
