"""Decides how the commands open what they read and write: event files, standard input, embedded logs."""

from __future__ import annotations

import sys
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from turngate.cli.errors import Impossible
from turngate.streams.clock import now_ms

if TYPE_CHECKING:
    from turngate.streams.local_log import LocalLog

STDIN = Path("-")


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A file, or standard input where it is `-`. Raises `Impossible` where it cannot be opened."""
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise Impossible(f"{path}: {error.strerror}") from None
    with file:
        yield file


def policy_text(path: Path) -> str:
    """What a policy document holds, or enough of it to be refused. Raises `Impossible` where it cannot be read."""
    from turngate.schemas.policy import MAX_CHARACTERS

    most = 4 * (MAX_CHARACTERS + 1)
    with reading(path) as file:
        read = file.read(most)
    try:
        return getincrementaldecoder("utf-8")().decode(read, final=len(read) < most)
    except UnicodeDecodeError:
        raise Impossible(f"{path}: is not UTF-8") from None


@contextmanager
def embedded(path: Path | None) -> Iterator[LocalLog]:
    """An embedded log of one partition, made where it is not there; None: one on the disk that is gone afterwards.

    Raises `turngate.streams.log.LogError` where it cannot be used, `Impossible` where it has several partitions.
    """
    from turngate.streams.local_log import LocalLog

    # On the disk, not in memory: a long file must not need memory for every record that it holds.
    with (
        tempfile.TemporaryDirectory(prefix="turngate-") as folder,
        LocalLog(Path(folder) / "log" if path is None else path, clock=now_ms) as log,
    ):
        if log.partitions != 1:
            raise Impossible(f"{path}: has {log.partitions} partitions; this command works on a log of one")
        yield log
