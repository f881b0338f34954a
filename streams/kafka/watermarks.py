"""Decides how the broker is asked how far its topics reach: high watermarks, on a client of its own (R-RUN-2).

On the connection that fetches, the broker would answer only after the fetch, up to half a second later; and a
read_committed client would be told the last stable offset, which lies behind records that were acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, TopicPartition

from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS, OUTPUT_TOPICS
from turngate.streams.kafka.clients import plain_consumer
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC

_BEHIND_DRAFTS = tuple(topic for topic in INPUT_TOPICS if topic != DRAFTS)


class Watermarks:
    """What the broker says of the contract's topics under a prefix. Every method may raise one of `clients.LOST`."""

    def __init__(self, settings: KafkaSettings, prefix: str) -> None:
        self._prefix = prefix
        self._client: AIOKafkaConsumer = plain_consumer(settings, committed=False)
        self._joined: set[int] = set()
        self._answer: asyncio.Future[dict[TopicPartition, int]] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and learn of every topic: a question about an unknown one takes a second."""
        try:
            await self._client.start()
        except BaseException:
            await self._client.stop()
            raise
        topics = [self._prefix + topic for topic in (*INPUT_TOPICS, *OUTPUT_TOPICS, STATE_TOPIC)]
        await self._client._client.set_topics(topics)

    async def stop(self) -> None:
        """Disconnect."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._client.stop()

    async def ends(self, partition: int, topics: Iterable[str] = INPUT_TOPICS) -> dict[str, int]:
        """The high watermarks of a partition of these topics."""
        places = {topic: TopicPartition(self._prefix + topic, partition) for topic in topics}
        ends = await self._client.end_offsets(list(places.values()))
        return {topic: ends[place] for topic, place in places.items()}

    async def begins(self, partition: int) -> dict[str, int]:
        """The first positions that are still there of a partition's input topics."""
        places = {topic: TopicPartition(self._prefix + topic, partition) for topic in INPUT_TOPICS}
        begins = await self._client.beginning_offsets(list(places.values()))
        return {topic: begins[place] for topic, place in places.items()}

    async def barrier(self, partition: int) -> dict[str, int]:
        """The high watermarks of every input topic but the drafts', asked of the broker after this was called.

        One question goes out at a time. Partitions that ask meanwhile share the next one.
        """
        self._joined.add(partition)
        if self._answer is None:
            self._answer = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._ask(self._answer, self._task))
        ends = await asyncio.shield(self._answer)
        return {topic: ends[TopicPartition(self._prefix + topic, partition)] for topic in _BEHIND_DRAFTS}

    async def _ask(self, answer: asyncio.Future[dict[TopicPartition, int]], before: asyncio.Task[None] | None) -> None:
        answer.add_done_callback(lambda f: f.cancelled() or f.exception())  # whoever asked may have gone
        try:
            if before is not None:
                await asyncio.wait([before])
            joined, self._joined, self._answer = self._joined, set(), None
            places = [TopicPartition(self._prefix + topic, p) for p in joined for topic in _BEHIND_DRAFTS]
            answer.set_result(await self._client.end_offsets(places))
        except asyncio.CancelledError:
            answer.cancel()
            raise
        except Exception as error:
            answer.set_exception(error)
