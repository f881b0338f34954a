"""What a process says of itself is a line for each message, which no id in it can make look like two."""

from __future__ import annotations

import logging

from turngate.streams.stderr import OneLine


def test_an_id_with_a_line_break_begins_no_line() -> None:
    said = logging.LogRecord(
        "t", logging.INFO, "", 0, "turn %s: %s", ("t1: sent\n2026 turn t2\u2028\x1b[2J", "Grüße"), None
    )
    assert OneLine("%(message)s").format(said) == r"turn t1: sent\n2026 turn t2\u2028\x1b[2J: Grüße"
