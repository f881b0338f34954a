"""Decides how the tests run a command of `turngate` as a process, and wait for it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.cli.conftest import INSTALLED

T = TypeVar("T")


class Running:
    """A command, and what it says on standard error."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self._said = said

    @property
    def said(self) -> str:
        """Everything so far."""
        return self._said.read_text("utf-8")

    def wait(self, good: Callable[[], T | None]) -> T:
        """What this gives as soon as it gives something true, while the command runs."""
        deadline = time.monotonic() + 60
        while not (found := good()):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)
        return found

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until it says this."""
        return self.wait(lambda: re.search(pattern, self.said))

    def stop(self) -> None:
        """SIGTERM, which it obeys."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said


@contextmanager
def running(folder: Path, *command: object) -> Iterator[Running]:
    """A command until the end of the block, killed if it has not ended by then."""
    said = folder / f"{command[0]}-{time.monotonic_ns()}"
    words = [str(INSTALLED), *map(str, command)]
    with said.open("wb") as out, subprocess.Popen(words, stderr=out, env=os.environ) as process:
        try:
            yield Running(process, said)
        finally:
            process.kill()
