"""Contract section 8: times are offsets from 2026-01-01T00:00:00Z, or ISO; in an expectation, milliseconds."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from turngate.streams.scenarios.errors import Wrong
from turngate.streams.scenarios.times import EPOCH, instant, span


@pytest.mark.parametrize(
    ("written", "after"),
    [("0s", 0), ("1500ms", 1500), ("10s", 10_000), ("2h", 7_200_000), ("3d", 259_200_000)],
)
def test_an_offset_counts_from_the_epoch(written: str, after: int) -> None:
    assert instant(written) == EPOCH + after


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-01T00:00:12Z",
        "2026-01-01T01:00:12+01:00",
        "2026-01-01T00:00:12",
        datetime(2026, 1, 1, 0, 0, 12),  # as YAML reads it where it is not quoted
    ],
)
def test_an_iso_time_is_that_instant_and_utc_without_a_zone(written: object) -> None:
    assert instant(written) == EPOCH + 12_000


def test_a_date_is_its_midnight() -> None:
    assert instant(date(2026, 1, 2)) == EPOCH + 86_400_000


def test_milliseconds_stay_as_they_are() -> None:
    assert instant(1767225612000) == 1767225612000


def test_fractions_of_a_second_are_exact() -> None:
    assert instant("2026-01-01T00:00:00.123Z") == EPOCH + 123


@pytest.mark.parametrize("written", ["soon", "10", "-1s", "", True, None, 1.5, ["1s"]])
def test_anything_else_is_refused_with_what_to_write(written: object) -> None:
    with pytest.raises(Wrong, match="is no time: write an offset such as 1500ms, 10s or 2h"):
        instant(written)


def test_a_span_is_a_duration_and_nothing_else() -> None:
    assert span("90s") == 90_000
    with pytest.raises(Wrong, match="must be a duration"):
        span("2026-01-01T00:00:00Z")
