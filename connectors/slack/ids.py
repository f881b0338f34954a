"""Decides what is an id or a timestamp of Slack's, and what is done about a value that is none."""

from __future__ import annotations

import re

#: An id that Slack gave: of an account, a conversation, a workspace or a bot. Compared byte for byte.
SLACK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: A message's id in its conversation: seconds since the epoch, and a fraction that orders within the second.
TS = re.compile(r"([0-9]{1,11})\.([0-9]{1,6})")


class EntryError(ValueError):
    """Something that is not what Slack writes; the message names the field."""


def is_id(value: object) -> bool:
    """Whether this is text that can be an id of Slack's."""
    return isinstance(value, str) and SLACK_ID.fullmatch(value) is not None


def millis(ts: object, field: str = "ts") -> int:
    """The time of a Slack timestamp, in milliseconds. Raises `EntryError` where it is none."""
    match = TS.fullmatch(ts) if isinstance(ts, str) else None
    if match is None:
        raise EntryError(f"{field} is no timestamp of Slack's")
    return int(match[1]) * 1000 + int(match[2].ljust(3, "0")[:3])
