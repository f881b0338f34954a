"""Decides how the tests run `turngate gateway` and `turngate up` as processes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import INSTALLED
from tests.cli.slack_commands import Running


@contextmanager
def running(folder: Path, *command: object) -> Iterator[tuple[Running, str]]:
    """A command until the end of the block, and where it answers."""
    said = folder / f"{command[0]}-{time.monotonic_ns()}"
    with (
        said.open("wb") as out,
        subprocess.Popen([str(INSTALLED), *map(str, command)], stderr=out, env=os.environ) as process,
    ):
        run = Running(process, said)
        try:
            yield run, "http://" + run.until(r"listening on (\S+)")[1]
        finally:
            process.kill()
            process.wait()
