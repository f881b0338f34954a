"""Decides what a process says of itself on standard error."""

from __future__ import annotations

import logging
import sys


def log_to_stderr(level: int = logging.INFO) -> None:
    """Turngate's own lines at `level`, everyone else's from WARNING on. No line holds anything of a record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("turngate").setLevel(level)
