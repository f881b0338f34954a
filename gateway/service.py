"""Decides how the gateway runs: first it reads what the log says of late, then it serves, and follows the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from turngate.gateway.app import application
from turngate.gateway.asking import Asking
from turngate.gateway.book import Book
from turngate.gateway.guard import Gate, Limits
from turngate.gateway.tokens import Tokens
from turngate.schemas.authority import ANSWERED
from turngate.schemas.inputs import PolicyPublished, Record
from turngate.schemas.outputs import RefreshRequested, TurnDecided
from turngate.streams.clock import now_ms
from turngate.streams.feed import Feed

#: Of which everything counts, however old.
_WHOLE = ("policies", "operator-commands")
#: Seconds for which requests are known by their ids, so that each is answered as it was before.
KEEP = 86_400.0
#: Milliseconds by which this clock and a broker's may differ.
_SKEW = 60_000

log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See `uvicorn.Server`."""
        yield


class Gateway:
    """The gateway on a log; it listens once this is made, and answers in `run`.

    `place`: a host and a port, 0 for any free one. `tls`: PEM files of a certificate and its key, without a password.
    `keep`: seconds. Raises `OSError` where the place is not to be had, or a file, `ssl.SSLError` where a file is none.
    """

    def __init__(
        self,
        feed: Feed,
        tokens: Tokens,
        place: tuple[str, int],
        limits: Limits | None = None,
        keep: float = KEEP,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        self._feed = feed
        self._keep = keep
        self.book = Book(keep)
        self._gate = Gate(Asking(feed, self.book), tokens, Limits() if limits is None else limits)
        self._socket = _listening(place)
        self._server = _Server(
            uvicorn.Config(
                application(self._gate),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=5,
                ssl_certfile=None if tls is None else tls[0],
                ssl_keyfile=None if tls is None else str(tls[1]),
                ssl_keyfile_password="no password",  # noqa: S106  or OpenSSL would ask for one at the terminal
            )
        )
        try:
            self._server.config.load()
        except BaseException:
            self._socket.close()
            raise

    @property
    def place(self) -> str:
        """Where it listens."""
        host, port, *_ = self._socket.getsockname()
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def run(self) -> None:
        """Read what the log says of late, then serve, until cancelled.

        Raises `LogError` where the log cannot be read, or not any more.
        """
        with contextlib.closing(self._socket):
            began = now_ms()
            read = [asyncio.Event() for _ in ANSWERED]
            tasks = [asyncio.create_task(self._follow(t, began, done)) for t, done in zip(ANSWERED, read, strict=True)]
            tasks.append(asyncio.create_task(self._serve(read)))
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                self.book.close()
                self._gate.refreshes.close()
                self._server.should_exit = True
                for task in tasks if not self._server.started else tasks[:-1]:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, read: Iterable[asyncio.Event]) -> None:
        for done in read:
            await done.wait()
        log.info("listening on %s", self.place)
        await self._server.serve(sockets=[self._socket])

    async def _follow(self, topic: str, began: int, read: asyncio.Event) -> None:
        """In the log's order, which says what came first; what is read twice changes nothing."""
        since = 0 if topic in _WHOLE else began - int(self._keep * 1000)
        async for at, record in self._feed.stamped(topic, since, forever=False):
            self._learn(record, at)
        read.set()
        async for at, record in self._feed.stamped(topic, began - _SKEW):
            self._learn(record, at)

    def _learn(self, record: Record, at: int) -> None:
        if isinstance(record, RefreshRequested):
            self._gate.refreshes.learn(record)
            return
        if isinstance(record, PolicyPublished | TurnDecided):
            self._gate.policies.learn(record)
        self._gate.stops.learn(record, at)
        self.book.learn(record)


def _listening(place: tuple[str, int]) -> socket.socket:
    """A socket that listens there. asyncio sends small answers at once (TCP_NODELAY) only where it is told TCP."""
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(2048)
    except OSError:
        made.close()
        raise
    return made
