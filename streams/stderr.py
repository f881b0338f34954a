"""Decides what a process says of itself on standard error."""

from __future__ import annotations

import logging
import sys


class OneLine(logging.Formatter):
    """A message is one line, whatever characters the ids in it have, which agents choose."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message without its traceback, in characters that are seen."""
        line = super().formatMessage(record)
        return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Turngate's own lines at `level`, everyone else's from WARNING on. No line holds anything of a record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("turngate").setLevel(level)
