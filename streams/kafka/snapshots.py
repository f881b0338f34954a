"""Decides how a partition's state is copied from its state topic, while its worker goes on."""

from __future__ import annotations

from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from turngate.schemas.catalog import OUTPUT_TOPICS
from turngate.streams.kafka.checkpoint import Gathered
from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.loading import load
from turngate.streams.kafka.reading import places_of
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC
from turngate.streams.log import LogError
from turngate.streams.snapshots import whole, write_snapshot


async def partitions_of(settings: KafkaSettings, prefix: str = "") -> list[int]:
    """Which partitions have a state. Raises `LogError` where the broker cannot be reached or has no such topic."""
    return [place.partition for place in await places_of(settings, prefix + STATE_TOPIC)]


async def snapshot_of(settings: KafkaSettings, partition: int, folder: Path, prefix: str = "") -> Path:
    """Write down the state that some commit of a moment ago left.

    Raises `LogError` where nothing was applied yet, or it cannot be read or written.
    """
    versions: list[str] = []
    gathered = Gathered(partition, versions.append)
    try:
        # Asked before the state, so that nothing before them came of what is applied later.
        outputs = await _ends(settings, [TopicPartition(prefix + topic, partition) for topic in OUTPUT_TOPICS])
        return await load(
            settings,
            TopicPartition(prefix + STATE_TOPIC, partition),
            None,
            gathered,
            lambda changes: write_snapshot(
                folder,
                partition,
                {topic.removeprefix(prefix): end for topic, end in outputs.items()},
                changes,
                lambda: whole(partition, gathered.positions, versions[-1] if versions else None),
            ),
        )
    except KafkaError as error:
        raise LogError(f"{settings.bootstrap_servers}: {prefix}{STATE_TOPIC} cannot be read: {error}") from error


async def _ends(settings: KafkaSettings, places: list[TopicPartition]) -> dict[str, int]:
    consumer = plain_consumer(settings, committed=True)
    try:
        await consumer.start()
        return {place.topic: end for place, end in (await consumer.end_offsets(places)).items()}
    finally:
        await consumer.stop()
