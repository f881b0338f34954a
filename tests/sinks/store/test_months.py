"""A month is the calendar's, in UTC, as far as times go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from turngate.sinks.store.months import ahead, month_after, month_of, name_of


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("time", "start", "end", "name"),
    [
        (ms(2026, 12, 1), ms(2026, 12, 1), ms(2027, 1, 1), "2026_12"),
        (ms(2026, 12, 1) - 1, ms(2026, 11, 1), ms(2026, 12, 1), "2026_11"),
        (ms(2028, 2, 29), ms(2028, 2, 1), ms(2028, 3, 1), "2028_02"),
        (-1, ms(1969, 12, 1), 0, "1969_12"),
        (253_402_300_799_999, ms(9999, 12, 1), 253_402_300_800_000, "9999_12"),
    ],
)
def test_a_time_lies_in_its_month(time: int, start: int, end: int, name: str) -> None:
    assert month_of(time) == (start, end)
    assert month_after(time) == end
    assert name_of(end) == name


def test_the_months_ahead_end_with_the_calendar() -> None:
    assert [name_of(end) for end in ahead(ms(2026, 11, 30), 2)] == ["2026_11", "2026_12", "2027_01"]
    assert {name_of(end) for end in ahead(ms(9999, 11, 5), 3)} == {"9999_11", "9999_12"}
