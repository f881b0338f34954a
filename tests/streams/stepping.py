"""A process that applies what waits on the log at argv[1], a few records at a commit, and says each commit."""

from __future__ import annotations

import sys
from pathlib import Path

from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog


def main() -> None:
    """Apply everything, and end."""
    with LocalLog(Path(sys.argv[1])) as log:
        for outputs in LocalRuntime(log).steps(records=3):
            sys.stdout.write(f"{len(outputs)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
