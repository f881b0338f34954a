"""What goes wrong with a call: limits for each method, workspace and app, and faults on demand."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """How a call fails."""

    RATE_LIMITED = "429 with Retry-After, nothing done"
    UNAVAILABLE = "503 without JSON, nothing done"
    FATAL = "fatal_error, done all the same: Slack says that it may have partially succeeded"
    BROKEN = "500 without JSON, done all the same"
    REFUSED = "the connection is reset before anything is done"
    RESET = "the connection is reset after it was done"
    SILENT = "done, and never answered"
    LOST = "never answered, and not done"
    HALF = "done, and the answer ends in its middle"


#: After these the call has had its effect.
DONE = frozenset({Fault.FATAL, Fault.BROKEN, Fault.RESET, Fault.SILENT, Fault.HALF})


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the method, the workspace of its token (empty where it has none), the app, and the arguments."""

    method: str
    team: str
    app: str
    args: dict[str, Any]


@dataclass(slots=True)
class _Planned:
    method: str
    fault: Fault | str
    times: int
    after: int


@dataclass(slots=True)
class Limit:
    """So many calls in so many seconds."""

    calls: int
    seconds: float


@dataclass
class Faults:
    """Which call fails, and how. A text instead of a fault is an error code with `ok: false`, nothing done."""

    limits: dict[str, Limit] = field(default_factory=dict)
    by_chance: Callable[[Call], Fault | str | None] = lambda call: None
    retry_after: float = 1
    _planned: list[_Planned] = field(default_factory=list)
    _came: defaultdict[tuple[str, str, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def plan(self, method: str, fault: Fault | str, times: int, after: int) -> None:
        self._planned.append(_Planned(method, fault, times, after))

    def of(self, call: Call) -> Fault | str | None:
        for planned in self._planned:
            if planned.method != call.method or planned.times == 0:
                continue
            if planned.after > 0:
                planned.after -= 1
                continue
            planned.times -= 1
            return planned.fault
        return self.by_chance(call)

    def wait(self, call: Call) -> int | None:
        """Whole seconds until this call is allowed again, None where it is allowed now."""
        limit = self.limits.get(call.method)
        if limit is None:
            return None
        came, now = self._came[call.method, call.team, call.app], time.monotonic()
        while came and came[0] <= now - limit.seconds:
            came.popleft()
        if len(came) < limit.calls:
            came.append(now)
            return None
        return max(1, math.ceil(came[0] + limit.seconds - now))
