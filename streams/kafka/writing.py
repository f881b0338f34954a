"""Decides how records get onto a broker's input topics from outside the worker: keyed by tenant, each acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from aiokafka.errors import KafkaConnectionError, KafkaError

from turngate.streams.kafka.clients import forget, plain_producer
from turngate.streams.kafka.reading import unreachable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import LogError

#: Records on their way at once; more would only be more memory.
_WINDOW = 2_000


@dataclass(frozen=True, slots=True)
class ToSend:
    """Bytes for an input topic; without a `partition` its key decides, as for every producer of Kafka."""

    topic: str
    key: bytes
    value: bytes
    partition: int | None = None


async def send(settings: KafkaSettings, records: Iterable[ToSend]) -> int:
    """Send records in this order and wait until the broker has acknowledged each; their number.

    Raises `LogError` where the broker refuses one or cannot be reached; it says how many were acknowledged before.
    """
    producer = plain_producer(settings, enable_idempotence=True)
    waiting: list[asyncio.Future[object]] = []
    done = 0
    try:
        await producer.start()
        for r in records:
            waiting.append(await producer.send(r.topic, r.value, key=r.key, partition=r.partition))
            if len(waiting) >= _WINDOW:
                done += await _acknowledged(waiting)
        done += await _acknowledged(waiting)
    except KafkaConnectionError:
        raise LogError(unreachable(settings)) from None
    except KafkaError as error:
        forget(waiting)
        message = f"{settings.bootstrap_servers}: {error}; {done} records had been acknowledged before"
        raise LogError(message) from error
    finally:
        await producer.stop()
    return done


async def _acknowledged(waiting: list[asyncio.Future[object]]) -> int:
    await asyncio.gather(*waiting)
    done = len(waiting)
    waiting.clear()
    return done
