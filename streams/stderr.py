"""Decides what a process says of itself on standard error."""

from __future__ import annotations

import logging
import sys


def one_line(line: str) -> str:
    """The same in characters that are seen, whatever ids in it have, which agents choose."""
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class OneLine(logging.Formatter):
    """A message is one line, whatever characters the ids in it have."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message without its traceback, in characters that are seen."""
        return one_line(super().formatMessage(record))


def log_to_stderr(level: int = logging.INFO) -> None:
    """Turngate's own lines at `level`, everyone else's from WARNING on. No line holds anything of a record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("turngate").setLevel(level)
