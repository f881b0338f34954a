"""Measures the embedded log: durable records a second by size of commit, and records read a second.

    python -m benchmarks.local_log [FOLDER]

FOLDER is where the log is written (default: a temporary folder; name one on the disk that you mean).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Headers

VALUE = os.urandom(300)
#: As every output has them (contract section 7).
HEADERS: Headers = (
    ("ce_id", b"observed-messages/0/1234567/0"),
    ("ce_source", b"turngate/0"),
    ("ce_type", b"turngate.v1.EvidenceRecorded"),
    ("ce_specversion", b"1.0"),
    ("ce_time", b"2026-01-01T00:00:00.000Z"),
    ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"),
)
TOPICS = ("membership-refreshes", "observed-messages", "turn-drafts", "ticks")


def batch(size: int, headers: Headers) -> Iterator[Append]:
    """Records of a size that is usual, for several topics in turn."""
    return (Append(TOPICS[n % 4], b"acme", VALUE, 1_767_225_600_000 + n, headers=headers) for n in range(size))


def measure(folder: Path, size: int, count: int, headers: Headers) -> tuple[float, float]:
    """Records a second written in commits of `size`, and read."""
    with LocalLog(folder / f"{size}-{len(headers)}.log") as log:
        began = time.perf_counter()
        for _ in range(count // size):
            log.append_many(batch(size, headers))
        written = time.perf_counter() - began
        began = time.perf_counter()
        read = sum(1 for topic in TOPICS for _ in log.scan(topic))
        return count / written, read / (time.perf_counter() - began)


def main() -> None:
    """Print one line for each size of commit, without headers and with them."""
    print("records of 300 bytes; a second:")
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for headers in ((), HEADERS):
            for size, count in ((1, 500), (100, 50_000), (1_000, 100_000)):
                written, read = measure(Path(folder), size, count, headers)
                print(f"{len(headers)} headers, commits of {size:5}: {written:8,.0f} written, {read:8,.0f} read")


if __name__ == "__main__":
    main()
