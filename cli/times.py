"""Decides which times the commands understand."""

from __future__ import annotations

from datetime import UTC, datetime

from turngate.cli.errors import Impossible


def instant(flag: str, text: str, otherwise: str = "write a time such as 2026-01-31T12:00:00Z") -> int:
    """An ISO time in milliseconds since 1970; UTC where it names no zone. Raises `Impossible` for what is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Impossible(f"{flag} {text}: {otherwise}") from None
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)
