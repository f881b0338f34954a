"""Decides which instant a time in a scenario file names (contract section 8)."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from turngate.schemas.policy import duration_ms
from turngate.streams.scenarios.errors import Wrong

#: 2026-01-01T00:00:00Z in milliseconds, from which a scenario's offsets count.
EPOCH = 1_767_225_600_000


def instant(value: object) -> int:
    """Milliseconds since 1970 of an offset from the scenarios' epoch (`10s`), an ISO time, or milliseconds as they are.

    An ISO time without a zone is UTC. Raises `Wrong` for anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, date):  # YAML reads an unquoted ISO time by itself
        whole = value if isinstance(value, datetime) else datetime.combine(value, time())
        return _millis(whole)
    if isinstance(value, str):
        try:
            return EPOCH + duration_ms(value)
        except ValueError:
            pass
        try:
            return _millis(datetime.fromisoformat(value))
        except ValueError:
            pass
    raise Wrong(f"{value!r} is no time: write an offset such as 1500ms, 10s or 2h, or an ISO time")


def span(value: object) -> int:
    """Milliseconds of a length of time such as `10s`. Raises `Wrong` for anything else."""
    try:
        return duration_ms(value)
    except ValueError as error:
        raise Wrong(f"{value!r}: {error}") from None


def _millis(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    seconds = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // datetime.resolution
    return seconds // 1000
