"""Decides how a command runs that goes on until it is stopped: on which log, at which place, and how it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import embedded
from turngate.cli.options import Connection

if TYPE_CHECKING:
    from turngate.streams.feed import Feed

#: Work until it is cancelled.
Work = Coroutine[Any, Any, None]


def stopping() -> asyncio.Event:
    """What SIGTERM and Ctrl-C set from now on, instead of ending the process."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def until_stopped(*work: Work) -> None:
    """Work until SIGTERM or Ctrl-C, or until one of them raises, which is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    stopped = asyncio.create_task(stopping().wait())
    done, _ = await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
    for task in (*tasks, stopped):
        task.cancel()
    await asyncio.gather(*tasks, stopped, return_exceptions=True)
    for task in done:
        task.result()


def log_lines(connection: Connection) -> None:
    """Say on standard error what is done, once the settings of the log are known to be some."""
    from turngate.streams.stderr import log_to_stderr

    if connection.log_file() is None:
        connection.kafka()
    log_to_stderr()


@asynccontextmanager
async def feed_of(connection: Connection) -> AsyncIterator[tuple[Feed, list[Work]]]:
    """The log that was named: the embedded one with its engine, or a broker; and the work that belongs to it."""
    path = connection.log_file()
    if path is not None:
        from turngate.streams.local_feed import LocalFeed

        with embedded(path) as log:
            feed = LocalFeed(log, connection.keys())
            ticking = feed.tick()
            try:
                yield feed, [ticking]
            finally:
                ticking.close()
        return
    with extra("kafka"):
        from turngate.streams.kafka.feed import KafkaFeed
    codec = await asyncio.to_thread(connection.codec)
    async with KafkaFeed(connection.kafka(), codec) as broker:
        yield broker, []


def place_of(listen: str, flag: str = "--listen") -> tuple[str, int]:
    """A host and a port. Raises `Impossible` for what is none."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise Impossible(f"{flag} {listen}: write HOST:PORT, like 127.0.0.1:3000")
    return host.strip("[]"), int(port)
