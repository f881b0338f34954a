"""Decides which month a time lies in: where a row lies in Postgres, and until when an audience is named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The end of the year 9999, which is as far as a record's times go.
_LAST = 253_402_300_800_000


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


#: Times of the month found last, by which the next one is found without a calendar: (start, end).
_last = [(0, 0)]


def month_after(time: int) -> int:
    """When the month ends (in UTC) that a time lies in, both in milliseconds since 1970."""
    start, end = _last[0]
    if not start <= time < end:
        _last[0] = start, end = month_of(time)
    return end


def month_of(time: int) -> tuple[int, int]:
    """When a time's month begins and ends; there is none after that of the year 9999's last."""
    moment = _EPOCH + timedelta(milliseconds=min(time, _LAST - 1))
    at = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    last = (at.year, at.month) == (9999, 12)
    return _ms(at), _LAST if last else _ms((at + timedelta(days=32)).replace(day=1))


def ahead(time: int, count: int) -> Iterator[int]:
    """The ends of a time's month and of so many after it."""
    for _ in range(count + 1):
        time = month_after(time)
        yield time


def name_of(end: int) -> str:
    """The month that ends then: `2026_12`."""
    return (_EPOCH + timedelta(milliseconds=end - 1)).strftime("%Y_%m")
