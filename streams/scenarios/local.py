"""Decides how scenarios run on the embedded runtime: each on a log in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from turngate.processors.keys import TEST_KEYS
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog
from turngate.streams.log import Message
from turngate.streams.scenarios.backend import Incoming, Session


class LocalSession:
    """A log in memory and the runtime over it."""

    partition = 0

    def __init__(self, runtime: LocalRuntime) -> None:
        self._runtime = runtime

    def send(self, records: Sequence[Incoming]) -> list[Message]:
        """Feed the records one by one; everything that came of them, in order."""
        out: list[Message] = []
        for r in records:
            out += self._runtime.feed(r.topic, r.key, r.value, r.timestamp)
        return out + self._runtime.flush()


class LocalBackend:
    """The embedded runtime."""

    at_once = 1

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A new log in memory."""
        with LocalLog() as log:
            yield LocalSession(LocalRuntime(log, keys=TEST_KEYS))
