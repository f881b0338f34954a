"""Decides whether a worker's state still fits into the memory that it may use, before the kernel decides it."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

import psutil

from turngate.streams.log import LogError

#: The share of the limit that may be in use; the rest is for what a commit and a fetch hold for a moment.
SHARE = 0.9
_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class StateTooLarge(LogError):
    """The state of this worker's partitions does not fit into its memory."""


class Memory:
    """The memory limit of this process, in bytes: given, or the container's, or the machine's."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit if limit is not None else found_limit()
        self._process = psutil.Process()

    def used(self) -> int:
        """Bytes of memory that this process holds now."""
        return int(self._process.memory_info().rss)

    def check(self, what: str) -> None:
        """Raise `StateTooLarge` where this process holds more than its share of the limit; `what` says for what.

        What is held and not used, as the state of a partition that was lost, is given back before that is said.
        """
        if self.used() > SHARE * self.limit:
            give_back()
        used = self.used()
        if used > SHARE * self.limit:
            raise StateTooLarge(
                f"{what} does not fit: {_mb(used)} in use, of {_mb(self.limit)} allowed;"
                " give the worker more memory (--memory-limit) or start more workers"
            )


def give_back() -> None:
    """Free what only a collection frees, and give what is free back to the system: glibc's allocator keeps it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other systems' allocators give back by themselves
    if trim is not None:
        trim(0)


def found_limit() -> int:
    """The least of the container's limit and the machine's memory, in bytes."""
    limits = [int(psutil.virtual_memory().total)]
    for name in _CGROUP_FILES:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def _mb(size: int) -> str:
    return f"{size / 1024 / 1024:.0f} MB"
