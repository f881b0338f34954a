"""What the contract suite asks of a runtime, and how the embedded one answers.

A harness owns one partition of topics of its own, empty at first, under a runtime that is running. Another runtime
joins the suite by a class with these methods and a line in `conftest.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.streams.world import Input
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Message


class Harness(Protocol):
    """A running runtime. All calls return when they are done; the runtime makes no ticks of its own."""

    def send(self, inputs: Sequence[Input]) -> None:
        """Append the inputs in this order, at their own timestamps; they are acknowledged when this returns."""

    def until_applied(self) -> None:
        """Wait until everything sent has been applied and what came of it is committed."""

    def outputs(self, topic: str) -> list[Message]:
        """Everything committed on an output topic, in order of offset."""

    def restart(self) -> None:
        """Stop the runtime in good order, and start it again."""

    def crash(self) -> None:
        """Take the runtime away in the middle of whatever it does, with no chance to tidy up, and start it again."""


class LocalHarness:
    """The embedded runtime on a log in a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "test.log"
        self._abandoned: list[LocalLog] = []
        self._open()

    def send(self, inputs: Sequence[Input]) -> None:
        self._log.append_many(Append(i.topic, i.key, i.value, i.timestamp, headers=i.headers) for i in inputs)

    def until_applied(self) -> None:
        self._runtime.step()

    def outputs(self, topic: str) -> list[Message]:
        return list(self._log.scan(topic))

    def restart(self) -> None:
        self._log.close()
        self._open()

    def crash(self) -> None:
        """What is on the disk goes on under another name; the process's own view of it is never closed."""
        self._abandoned.append(self._log)
        folder = self._path.parent / str(len(self._abandoned))
        folder.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(self._path.with_name(self._path.name + suffix), folder)
        self._path = folder / self._path.name
        self._open()

    def close(self) -> None:
        for log in (*self._abandoned, self._log):
            log.close()

    def _open(self) -> None:
        self._log = LocalLog(self._path)
        self._runtime = LocalRuntime(self._log)
