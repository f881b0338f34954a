"""Decides what a running worker consists of, what it says while it runs, and how it ends without losing anything."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Self

from aiokafka.errors import KafkaError

from turngate.schemas.authority import Role
from turngate.schemas.catalog import INPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.streams.kafka.append_time import AppendTime
from turngate.streams.kafka.clients import LOST
from turngate.streams.kafka.memory import Memory
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.owner import Engines, Owner
from turngate.streams.kafka.partition import Restore
from turngate.streams.kafka.runtime import Runtime
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.ticks import tick
from turngate.streams.kafka.topics import allow_create_time
from turngate.streams.kafka.transport import App
from turngate.streams.kafka.watermarks import Watermarks
from turngate.streams.log import LogError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker runs; the defaults are those of `turngate worker`.

    `instance`: a name that survives restarts, so that a restarted worker gets its partitions back at once (the group's
    static membership). `memory_limit` in bytes; None: the container's or the machine's. `admit_ahead`: partitions that
    apply records stamped ahead of this worker's clock. `test_time`: writers choose the time, on loopback only, and the
    worker writes no ticks. `session` and `heartbeat` in seconds: how soon others notice that it is gone.
    """

    names: Names = field(default_factory=Names)
    instance: str | None = None
    memory_limit: int | None = None
    admit_ahead: frozenset[int] = frozenset()
    test_time: bool = field(default_factory=lambda: os.environ.get("TURNGATE_TEST_TIME") == "1")
    session: float = 10.0
    heartbeat: float = 1.5
    report_every: float = 10.0


class Worker:
    """One worker: `async with` starts it, and finishes, commits and leaves at the end."""

    def __init__(self, settings: KafkaSettings, codec: Codec, options: WorkerOptions, restore: Restore) -> None:
        self._settings = settings
        self._codec = codec
        self._options = options
        self._memory = Memory(options.memory_limit)
        self._watermarks = Watermarks(settings, options.names.prefix)
        self._owner = Owner(settings, options.names, self._watermarks, Engines(restore, codec), self._memory)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        """Raises `LogError` where the broker cannot be reached."""
        options = self._options
        if options.test_time:
            allow_create_time(self._settings)
        try:
            await self._watermarks.start()
        except KafkaError as error:
            raise LogError(f"no broker at {self._settings.bootstrap_servers}: {type(error).__name__}") from error
        clock = AppendTime(options.test_time, options.admit_ahead)
        self.runtime = Runtime(self._owner, clock, reload_after=options.heartbeat)
        self._app = _faust_app(self._settings, options, self.runtime)
        self._start(self._app.start())
        self._start(self._watch())
        if not options.test_time:
            self._start(tick(self._settings, options.names.prefix, self._codec, self._ticking))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks[1:], return_exceptions=True)
        await self.runtime.close()
        await self._app.stop()
        await asyncio.gather(self._tasks[0], return_exceptions=True)
        await self._watermarks.stop()
        if not self.runtime.failed.cancel():
            self.runtime.failed.exception()  # or asyncio says that nobody asked

    async def failed(self) -> None:
        """Wait until the worker cannot go on, and raise why."""
        await asyncio.shield(self.runtime.failed)

    def committed(self) -> dict[int, dict[str, int]]:
        """Of each partition worked on, the positions of the last commit that the broker acknowledged."""
        return {number: one.partition.committed for number, one in self.runtime.owned.items()}

    async def lag(self) -> dict[int, int]:
        """Of each partition worked on, how many positions lie between what was applied and the high watermarks."""
        lags = {}
        for number, one in list(self.runtime.owned.items()):
            ends = await self._watermarks.ends(number)
            at = one.partition.intake.positions()
            lags[number] = sum(max(0, ends[topic] - at[topic]) for topic in INPUT_TOPICS)
        return lags

    def _start(self, run: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(run)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None and not self.runtime.failed.done():
            self.runtime.failed.set_exception(task.exception() or RuntimeError("a task ended"))

    def _ticking(self) -> list[int]:
        return [number for number, one in self.runtime.owned.items() if one.partition.halted is None]

    async def _watch(self) -> None:
        """Report, look after memory, and notice when Faust has crashed, which it tells nobody."""
        quiet = 0.0
        while True:
            await asyncio.sleep(0.2)
            if self._app.crashed:
                raise _why(self._app.crash_reason)
            quiet += 0.2
            if quiet >= self._options.report_every:
                quiet = 0.0
                self._memory.check("the state of this worker")
                await self._report()

    async def _report(self) -> None:
        """One line for each partition. Kafka's own tools show no lag, since group offsets are never committed."""
        try:
            lags = await self.lag()
        except LOST as error:
            log.warning("lag unknown: %s", type(error).__name__)
            return
        counters = self.runtime.counters
        for number, lag in sorted(lags.items()):
            one = self.runtime.owned.get(number)
            if one is not None:
                part = one.partition
                log.info(
                    "partition=%d lag=%d stretches=%d late=%d halted=%s",
                    number,
                    lag,
                    part.stretches,
                    part.late,
                    "no" if part.halted is None else "yes",
                )
                if part.halted is not None:
                    log.error("partition %d is halted: %s", number, part.halted)
        for number, why in self.runtime.unusable.items():
            log.error("partition %d is not worked on: %s", number, why)
        log.info(
            "memory_mb=%d of=%d loads=%d kept=%d lost=%d rewinds=%d",
            self._memory.used() >> 20,
            self._memory.limit >> 20,
            counters.loads,
            counters.kept,
            counters.lost,
            counters.rewinds,
        )


def _faust_app(settings: KafkaSettings, options: WorkerOptions, runtime: Runtime) -> App:
    """Made inside the running loop: touched before, the app binds to a loop that never runs, and waits for ever."""
    for noisy in ("faust", "mode", "aiokafka"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    app = App(
        options.names.group_id(Role.WORKER),
        broker=f"turngate://{settings.servers[0]}",
        broker_credentials=settings.faust_credentials(),
        web_enabled=False,  # its views need no authentication
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_wait_empty=False,
        stream_recovery_delay=0,
        table_standby_replicas=0,
        datadir=tempfile.gettempdir(),  # it would make a folder where it stands; nothing is written into it
        broker_session_timeout=options.session,
        broker_heartbeat_interval=options.heartbeat,
        broker_rebalance_timeout=max(30.0, options.session),
        broker_request_timeout=max(40.0, options.session),
        broker_check_crcs=True,
        consumer_group_instance_id=options.instance,
        key_serializer="raw",
        value_serializer="raw",
    )
    app.carried = runtime
    app.settings = settings
    for topic in INPUT_TOPICS:
        app.topics.add(app.topic(options.names.prefix + topic, key_type=bytes, value_type=bytes, acks=False))
    return app


def _why(crash: BaseException | None) -> LogError:
    """Our own error at the bottom of a crash of Faust's, or one that names its kind."""
    reason = crash
    while reason is not None and not isinstance(reason, LogError):
        reason = reason.__cause__
    return reason if reason is not None else LogError(f"Faust has crashed: {type(crash).__name__}")
