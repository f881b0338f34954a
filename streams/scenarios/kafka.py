"""Decides how scenarios run on a broker: each in a partition of its own, under the worker, with simulated time.

Topics have a prefix of their own and go away at the end. Several scenarios share a set of topics and a worker, until
its partitions are used up. Nearly all of a scenario's time is waiting, so several run at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from aiokafka.errors import KafkaError

from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.streams.kafka.driver import KafkaDriver
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import allow_create_time
from turngate.streams.log import LogError, Message
from turngate.streams.scenarios.backend import Incoming, Session

T = TypeVar("T")

#: Scenarios have share codes, by keys that everyone may know (contract section 8).
_RESTORE = partial(Engine.restore, keys=TEST_KEYS)
#: Scenarios that share one set of topics. More partitions start slower than they save.
_PARTITIONS = 16


@dataclass(slots=True)
class _Shared:
    """A set of topics and a worker: partitions that have seen nothing, and how many sessions are open."""

    driver: KafkaDriver
    free: list[int]
    open: int = 0

    @property
    def done(self) -> bool:
        return not self.free and self.open == 0


class KafkaBackend:
    """A broker on this machine; a context manager.

    Raises `LogError` unless time may be simulated (`TURNGATE_TEST_TIME=1`, loopback), or where it does not answer.
    """

    at_once = 8

    def __init__(self, settings: KafkaSettings, partitions: int = _PARTITIONS) -> None:
        allow_create_time(settings)
        self._settings = settings
        self._partitions = partitions
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scenarios-on-kafka", daemon=True)
        self._shared: list[_Shared] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            for shared in self._shared:
                self._run(shared.driver.__aexit__(None, None, None))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The next partition that has seen nothing; from any thread."""
        with self._lock:
            if not self._shared or not self._shared[-1].free:
                driver = self._run(_started(self._settings, self._partitions))
                self._shared.append(_Shared(driver, list(range(self._partitions))))
            shared = self._shared[-1]
            partition = shared.free.pop(0)
            shared.open += 1
        try:
            yield _KafkaSession(shared.driver, partition, self._run)
        finally:
            with self._lock:
                shared.open -= 1
                used_up = shared.done
                if used_up:
                    self._shared.remove(shared)
            if used_up:
                self._run(shared.driver.__aexit__(None, None, None))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except KafkaError as error:
            raise LogError(f"{self._settings.bootstrap_servers}: {error}") from error


async def _started(settings: KafkaSettings, partitions: int) -> KafkaDriver:
    return await KafkaDriver(
        settings, partitions=partitions, restore=_RESTORE
    ).__aenter__()  # made inside the loop that it runs in


async def _sent(driver: KafkaDriver, partition: int, records: Sequence[Incoming]) -> list[Message]:
    for r in records:
        await driver.send(r.topic, r.key, r.value, r.timestamp, partition=partition)
        await driver.applied(partition)
    return await driver.outputs(partition)


class _KafkaSession:
    """One partition of the driver's topics."""

    def __init__(
        self, driver: KafkaDriver, partition: int, run: Callable[[Coroutine[Any, Any, list[Message]]], list[Message]]
    ) -> None:
        self.partition = partition
        self._driver = driver
        self._run = run

    def send(self, records: Sequence[Incoming]) -> list[Message]:
        """Send the records one by one, each waited for until the worker has committed it; what came of them."""
        return self._run(_sent(self._driver, self.partition, records))
