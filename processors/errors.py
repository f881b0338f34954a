"""Decides the ways in which a record can fail to be applied."""

from __future__ import annotations

from turngate.schemas.shapes import Code


class Refused(Exception):
    """A record that is not applied and goes to the dead letters (R-RUN-5). `detail` is for `policy_invalid` only."""

    def __init__(self, code: Code, detail: str | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.detail = detail


class TooLarge(Exception):
    """What came of a record is larger than what can be written, so nothing comes of it (R-RUN-6)."""


class StateVersionError(Exception):
    """State written by a newer engine than this one; an older one must not touch it. The message names both."""
