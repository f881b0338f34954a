"""A process that commits to the log at argv[1] and says each commit's number once it is acknowledged.

It goes on for ever, or, with argv[2], until the file has grown to so many bytes and can grow no more.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Commit, Outgoing

PADDING = b"." * 3_000


def commit(log: LocalLog, n: int) -> None:
    """Commit number `n`: an input, an output and a state entry, each of which says `n`, and the position after it."""
    with log.transaction():
        log.append_many([Append("ticks", None, b"%d" % n + PADDING, n)])
        outputs = [Outgoing("turn-verdicts", b"acme", b"%d" % n + PADDING)]
        entries: list[tuple[bytes, bytes | None]] = [(b"last", b"%d" % n), (b"padding", b"%d" % n + PADDING)]
        log.commit(0, [Commit(outputs, entries, {"ticks": n}, "e")], n)


def main() -> None:
    """Go on where the log stands."""
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
    with LocalLog(Path(sys.argv[1])) as log:
        n = log.positions(0)["ticks"]
        while True:
            n += 1
            commit(log, n)
            sys.stdout.write(f"{n}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
