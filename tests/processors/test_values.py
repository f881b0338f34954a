"""A parameter's value is plain and of its type (R-ACT-2); a source holds it however it is written (R-ACT-1)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.spelling import MAX_TEXT
from turngate.processors.values import MAX_DIGITS, Kind, holds, over_max, parse

VALID: list[tuple[Kind, str, object]] = [
    ("price", "500.01", Decimal("500.01")),
    ("price", "120", Decimal("120.00")),
    ("price", "-5", Decimal(-5)),
    ("price", "0", Decimal(0)),
    ("number", "0.000001", Decimal("0.000001")),
    ("int", "-3", Decimal(-3)),
    ("text", "", ""),
    ("text", "two\nlines", "two\nlines"),
    ("email", "Bob@Example.com", "bob@example.com"),
    ("email", "first.last+tag@mail.example.co.uk", "first.last+tag@mail.example.co.uk"),
    ("date", "2024-02-29", "2024-02-29"),
    ("bool", "true", True),
    ("bool", "false", False),
    ("id", "INV-7", "INV-7"),
    ("id", "slack:T1/C1 x", "slack:T1/C1 x"),
]
INVALID: list[tuple[Kind, str]] = [
    *(("price", text) for text in ["", " 5", "5 ", "+5", "007", ".5", "5.", "1,000", "1e3", "NaN", "Infinity", "0x1f"]),
    *(("price", text) for text in ["EUR 5", "５", "5\n", "1_000", "--5", "9" * (MAX_DIGITS + 1)]),
    ("int", "5.0"),
    ("text", "x" * (MAX_TEXT + 1)),
    *(("email", text) for text in ["bob", "bob@localhost", "a@b.c,d@e.f", "Bob <bob@example.com>", "a..b@example.com"]),
    *(("email", text) for text in ["bob@example.com\n", "bób@example.com", "bob@-example.com", "a@b@example.com"]),
    *(
        ("date", text)
        for text in ["2026-02-30", "tomorrow", "22.02.2026", "2026-2-1", "2026-02-01T00:00", "0000-01-01"]
    ),
    *(("bool", text) for text in ["True", "yes", "1", ""]),
    *(("id", text) for text in ["", " INV-7", "INV\n7", "x" * 513]),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALID)
def test_a_plain_value_is_of_its_type(kind: Kind, text: str, value: object) -> None:
    assert parse(kind, text) == value


@pytest.mark.parametrize(("kind", "text"), INVALID)
def test_a_value_that_could_be_read_otherwise_is_invalid(kind: Kind, text: str) -> None:
    assert parse(kind, text) is None


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("500", False),
        ("500.00", False),
        ("500.0000000000000000000000000000000001", True),
        ("500.01", True),
        # a limit is not passed by taking in the place of giving
        ("-500", False),
        ("-500.01", True),
    ],
)
def test_a_limit_is_exact_and_holds_in_both_directions(text: str, over: bool) -> None:
    value = parse("price", text)
    assert value is not None
    assert over_max(value, Decimal(500)) is over


def test_what_is_no_number_keeps_no_limit() -> None:
    assert over_max("400", Decimal(500))
    assert over_max(True, Decimal(500))


HELD: list[tuple[Kind, str, str]] = [
    ("price", "1200.50", "book EUR 1.200,50 for February 22, 2026"),
    ("price", "120", "refund $120.00 for INV-8, due Feb 1, 2026"),
    ("price", "120.00", "refund EUR 120,00 for INV-9"),
    ("price", "4711", "4.711 EUR"),
    ("price", "4.711", "4.711 EUR"),
    ("price", "55000", "55\u202f000 €"),
    ("price", "-5", "a refund of -€5"),
    ("price", "5", "the follow-up cost 5 EUR"),
    ("price", "5", "it is *5*, _5_ or (5)."),
    ("number", "12", "12 %"),
    ("int", "120", "120.00"),
    ("date", "2026-02-22", "until Feb. 22nd, 2026."),
    ("date", "2026-02-01", "due 01.02.2026"),
    ("email", "bob@example.com", "mail Bob@Example.COM."),
    ("email", "bob@example.com", "<mailto:bob@example.com|bob@example.com>"),
    ("email", "bob@example.com", "'bob@example.com', \"x\""),
    ("bool", "true", "express: True"),
    ("id", "INV-7", "refund INV-7."),
    ("id", "INV-7", "invoice:INV-7, INV-8"),
    ("id", "INV-7", "INV-7's total, see https://crm.example.com/INV-7"),
    ("id", "A&B", "it is A&amp;B"),
    ("text", "12 Elm Street", "at 12  elm\nstreet."),
    ("text", "Hello, world!", "hello,  WORLD! he said"),
]
NOT_HELD: list[tuple[Kind, str, str]] = [
    ("price", "200.50", "EUR 1.200,50"),
    ("price", "130", "120.00"),
    ("price", "711", "4 711 000"),
    ("price", "7", "refund INV-7"),
    ("price", "10", "10-20 EUR, 10/20, 10:20"),
    ("price", "12", "12 %"),
    ("price", "5", "a refund of -5"),
    ("price", "5", "x5 5x 5_5"),
    ("date", "2026-02-22", "Feb 22"),
    ("date", "2026-02-01", "due today"),
    ("email", "bob@example.com", "rob.bob@example.com"),
    ("email", "bob@example.com", "bob@example.com.evil.org"),
    ("email", "bob@example.com", "bob@example.com@evil.org"),
    ("email", "bob@example.com", "bób@example.com"),
    ("bool", "true", "untrue, falsehood"),
    ("id", "INV-7", "INV-70 XINV-7 A-INV-7 INV-7-B INV-7.pdf inv-7"),
    ("id", "711", "4,711"),
    ("id", "bob", "bob@example.com"),
    ("text", "12 Elm Street", "12 elm streets"),
    ("text", "", ""),
    ("price", "5", "5" + " " * MAX_TEXT),
]


@pytest.mark.parametrize(("kind", "text", "source"), HELD)
def test_a_source_holds_a_value_however_it_is_written(kind: Kind, text: str, source: str) -> None:
    value = parse(kind, text)
    assert value is not None
    assert holds(kind, value, source)


@pytest.mark.parametrize(("kind", "text", "source"), NOT_HELD)
def test_a_source_does_not_hold_what_is_part_of_a_longer_token(kind: Kind, text: str, source: str) -> None:
    value = parse(kind, text)
    assert value is not None
    assert not holds(kind, value, source)


PLAIN = st.decimals(0, 10**9, places=2)


@given(
    PLAIN, st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), ("", ".")]), st.sampled_from(["€", "EUR "])
)
def test_an_amount_in_any_countrys_spelling_is_held(amount: Decimal, signs: tuple[str, str], currency: str) -> None:
    whole, fraction = f"{amount:,}".split(".")
    written = f"please pay {currency}{whole.replace(',', signs[0])}{signs[1]}{fraction} today"
    value = parse("price", str(amount))
    assert value is not None
    assert holds("price", value, written)


@given(PLAIN, PLAIN)
def test_another_amount_is_not_held(amount: Decimal, other: Decimal) -> None:
    value = parse("price", str(amount))
    assert value is not None
    assert holds("price", value, f"please pay {other:,} EUR") is (amount == other)
