"""Decides how measurements are summed up and written down, and what is said of the machine they were made on."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from turngate.processors import engine


@dataclass(frozen=True, slots=True)
class Spread:
    """The same thing measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    def text(self, digits: int = 0) -> str:
        """The median, and in brackets the least and the greatest."""
        if len(self.values) == 1:
            return f"{self.values[0]:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({min(self.values):,.{digits}f}–{max(self.values):,.{digits}f})"


def ratios(of: Spread, to: Spread) -> Spread:
    """Round by round, one divided by the other: what disturbs a whole round falls out."""
    return Spread(tuple(a / b for a, b in zip(of.values, to.values, strict=True)))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of all values lies."""
    ascending = sorted(values)
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def machine() -> dict[str, str]:
    """What the numbers depend on that is not ours."""
    found = [line for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "processor": found[0].partition(": ")[2] if found else platform.processor(),
        "cores": str(cores()),
        "system": f"{platform.system()} {platform.release()}",
        "engine": "compiled" if Path(engine.__file__).suffix != ".py" else "interpreted",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": load(),
    }


def told(before: Mapping[str, str]) -> str:
    """What a report begins with: the machine as it was before, and its load now."""
    return "\n".join([*(f"{name}: {value}" for name, value in before.items()), f"load after: {load()}"])


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of `publish`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value there too")


def publish(report: str, values: object, file: Path | None) -> None:
    """Print the report; every value goes into the file where one is named."""
    print(report)
    if file is not None:
        file.write_text(json.dumps(values, indent=1), "utf-8")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> str:
    """The load averages of 1, 5 and 15 minutes: what runs or wants to, this benchmark included."""
    return ", ".join(f"{x:.2f}" for x in os.getloadavg())


def peak_rss() -> int:
    """The most bytes of memory that this process has had."""
    # not from `getrusage`, which on Linux begins with the parent's peak
    for line in _lines("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def rss() -> int:
    """The bytes of memory that this process has now; where that is not told, the most it has had."""
    for line in _lines("/proc/self/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return peak_rss()


def cpu_seconds() -> float:
    """The time that this process has computed, in all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text("utf-8", "replace").splitlines() if file.exists() else []
