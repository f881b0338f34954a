"""Decides how the tests run `turngate gateway` and `turngate up` as processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli import processes
from tests.cli.processes import Running


@contextmanager
def running(folder: Path, *command: object) -> Iterator[tuple[Running, str]]:
    """A command until the end of the block, and where it answers."""
    with processes.running(folder, *command) as process:
        yield process, "http://" + process.until(r"listening on (\S+)")[1]
