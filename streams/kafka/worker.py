"""Decides what a worker checks before it starts, which signals end it, and where it logs."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from turngate.processors.engine import Engine
from turngate.schemas.codec import Codec
from turngate.streams.kafka.partition import Restore
from turngate.streams.kafka.registry import RegistryIds
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings, RegistrySettings
from turngate.streams.kafka.topics import check_topics

#: After how many objects more than before Python looks for cycles among them; a stretch makes thousands, and none.
COLLECTING = (50_000, 10, 10)

log = logging.getLogger(__name__)


def run_worker(
    settings: KafkaSettings,
    registry: RegistrySettings | None = None,
    options: WorkerOptions | None = None,
    restore: Restore = Engine.restore,
) -> None:
    """Run a worker until SIGTERM or SIGINT; then finish, commit, leave the group, and return.

    Raises `LogError` with one sentence where broker, topics, registry or memory do not suffice, and the engine's
    `StateVersionError` where the state was written by a newer one.
    """
    gc.set_threshold(*COLLECTING)
    asyncio.run(_serve(settings, registry, options if options is not None else WorkerOptions(), restore))


async def _serve(
    settings: KafkaSettings, registry: RegistrySettings | None, options: WorkerOptions, restore: Restore
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if not options.names.prefix:
        await check_topics(settings, create_time=options.test_time)
    codec = Codec(None if registry is None else await asyncio.to_thread(RegistryIds, registry))
    async with Worker(settings, codec, options, restore) as worker:
        log.info("worker started")
        await _first(stop.wait, worker.failed)
    log.info("worker stopped")


async def _first(*waits: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Return when the first has returned, or raise what it raised."""
    tasks = [asyncio.create_task(wait()) for wait in waits]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    for task in done:
        task.result()
