"""Decides what time it is to a program beside the engine, which reads no clock (R-RUN-1)."""

from __future__ import annotations

import time


def now_ms() -> int:
    """The wall clock of this machine, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
