"""Running text is read whatever its spelling: letters in one form, numbers and dates under every reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.dates import dates, day
from turngate.processors.spelling import MAX_TEXT, MAX_VALUE, fits_text, fits_value, fold, numbers


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Red ROSE", "red rose"),
        ("Müller, José, Łódź", "muller, jose, łodz"),
        ("STRASSE straße", "strasse strasse"),
        ("Mu\u0308ller", "muller"),
        ("ＦＵＬＬ１２", "full12"),
        ("٤٧١١", "4711"),
        ("a\u2013b\u2014c\u2212d\u2011e", "a-b-c-d-e"),
        ("O\u2019Brien", "o'brien"),
        ("1\u202f000\u00a0000\u2009000", "1 000 000 000"),
        ("47\u200b1\u00ad1 4\ufe0f\u20e37", "4711 47"),
        ("A&amp;B &lt;c&gt; &amp;lt;", "a&b <c> &lt;"),
    ],
)
def test_spellings_of_the_same_letters_are_one(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("55,000.00 €", ["55000"]),
        ("EUR 55000", ["55000"]),
        ("55 000,00", ["55000"]),
        ("1.200,50", ["1200.5"]),
        ("82.500,- €", ["82500", "82.5"]),
        ("CHF 1'234.50 and 1’234", ["1234.5", "1234"]),
        ("12\u202f345\u2009678", ["12345678"]),
        ("1,00,000 and 12,34,567.50", ["100000", "1234567.5"]),  # India
        ("82_500", ["82500"]),
        # nobody knows the country, so both readings count
        ("4,711", ["4711", "4.711"]),
        ("4.711", ["4711", "4.711"]),
        # and these have one
        ("0,475", ["0.475"]),
        ("4711.50", ["4711.5"]),
        ("4711.000", ["4711"]),
        ("1,234.5", ["1234.5"]),
        # a longer number is one number
        ("4 711 000", ["4711000"]),
        ("24711", ["24711"]),
        ("04711 007 00.50 0.5 0", ["0.5", "0"]),
        # what no country writes is no number: a date, a version, an address
        ("22.02.2026", []),
        ("10.0.0.12", []),
        ("1.234,567,8", []),
        # a list without spaces is several, and a sentence goes on after its comma
        ("4711,4712,4713", ["4711", "4712", "4713"]),
        ("in 2025, 100 people", ["2025", "100"]),
        ("3 4711", ["3", "4711"]),
        # a currency may touch it, a word may not
        ("EUR82500 82500eur $82500 82500€ US$82,500.00", ["82500"] * 5),
        ("x82500 82500x xk42abcd", []),
        ("4711² 4711™ №4711", ["4711", "2", "4711", "4711"]),
        ("(4711) -4711 4711. #4711: '4711' *4711* _4711_ a-4711", ["4711"] * 8),
    ],
)
def test_a_number_has_every_reading_that_some_country_gives_it(text: str, readings: list[str]) -> None:
    assert [reading for number in numbers(fold(text)) for reading in number.readings] == readings


@given(st.integers(0, 10**15), st.sampled_from([",", ".", " ", "'", "_", "\u00a0", "\u2009", "\u202f", "\u2019"]))
def test_grouping_does_not_change_a_whole_number(number: int, sign: str) -> None:
    (found,) = numbers(fold(f"{number:,}".replace(",", sign)))
    assert str(number) in found.readings


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-22",
        "2026/2/22",
        "20260222",
        "2026-02-22T10:00:00Z",
        "22.02.2026",
        "22. 2. 2026",
        "22/02/2026",
        "02/22/2026",
        "22-02-26",
        "February 22, 2026",
        "Sunday, Feb. 22nd 2026.",
        "the 22nd of February 2026",
        "22 Feb 2026",
        "22-Feb-2026",
        "22FEB2026",
        "Feb 22, '26",
        "22. Februar 2026",
        "22 février 2026",
        "22 de febrero de 2026",
        "22 febbraio 2026",
        "22 de fevereiro de 2026",
        "22 februari 2026",
        "2026年2月22日",
        "２０２６-０２-２２",
    ],
)
def test_a_date_is_read_however_it_is_written(text: str) -> None:
    assert "2026-02-22" in {d for named in dates(fold(f"until {text}")) for d in named.days}


@pytest.mark.parametrize(
    "text",
    [
        "12026-02-22",
        "2026-02-221",
        "A-2026-02-22",
        "2026-02-22-7",
        "x22.02.2026",
        "22.02.20261",
        "February 22",
        "22.02.",
        "tomorrow",
        "22 Febtober 2026",
        "February 30, 2026",
        "2026-13-01",
    ],
)
def test_part_of_a_longer_token_or_of_a_date_is_no_date(text: str) -> None:
    assert not list(dates(fold(text)))


def test_where_countries_differ_a_date_is_one_of_two_days() -> None:
    days = [sorted(named.days) for named in dates("02/03/2026 and 02.03.2026")]
    assert days == [["2026-02-03", "2026-03-02"], ["2026-03-02"]]


@pytest.mark.parametrize(
    ("year", "month", "of_month", "is_day"),
    [
        (2024, 2, 29, True),
        (2026, 2, 29, False),
        (2000, 2, 29, True),
        (2100, 2, 29, False),
        (2026, 4, 31, False),
        (2026, 12, 31, True),
        (2026, 0, 1, False),
        (2026, 13, 1, False),
        (2026, 1, 0, False),
        (0, 1, 1, False),
    ],
)
def test_the_calendar(year: int, month: int, of_month: int, is_day: bool) -> None:
    assert (day(year, month, of_month) is not None) is is_day


def test_sizes_have_a_limit() -> None:
    assert fits_text("x" * MAX_TEXT)
    assert not fits_text("x" * (MAX_TEXT + 1))
    assert fits_value("x" * MAX_VALUE)
    assert not fits_value("x" * (MAX_VALUE + 1))
