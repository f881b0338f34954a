"""What a text proves is found in its marks alone, and never what the text does not hold (R-ACT-1)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.processors import origins
from turngate.processors.origins import _in_order, _mark, _proofs
from turngate.processors.values import Kind, form_of, holds, loose, parse

KEY = b"k" * 32
KINDS: tuple[Kind, ...] = ("price", "int", "number", "text", "email", "date", "bool", "id")


def proves(kind: Kind, text: str, drafted: str) -> bool:
    """As `contains`, of the marks of one text."""
    value = parse(kind, drafted)
    assert value is not None
    marks = set(_proofs(KEY, frozenset({kind}), text))
    if kind != "text":
        return _mark(KEY, kind, form_of(value)) in marks
    wanted = loose(str(value))
    sequences: Iterable[str] = (mark for mark in marks if mark.startswith("text:"))
    return _mark(KEY, "signed", wanted) in marks or any(_in_order(KEY, wanted, mark) for mark in sequences)


@pytest.mark.parametrize(
    ("kind", "text", "drafted"),
    [
        ("id", "please refund INV-7, and INV-8", "INV-7"),
        ("id", "invoice:INV-7", "INV-7"),
        ("id", "see crm/INV-7.", "crm/INV-7"),
        ("id", "join #general", "#general"),
        ("text", "fill my personal/address information", "address"),
        ("text", "Leave the #ProjectAlpha channel", "#projectalpha"),
        ("text", "send it to  Kim Lee, please", "kim lee"),
        ("email", "write to Bob@Example.com", "bob@example.com"),
        ("price", "pay EUR 1.200,50 now", "1200.50"),
        ("date", "on February 22, 2026", "2026-02-22"),
        ("int", "four or 4 of them", "4"),
        ("bool", "it is true", "true"),
    ],
)
def test_a_text_proves_what_it_holds(kind: Kind, text: str, drafted: str) -> None:
    assert proves(kind, text, drafted)


@pytest.mark.parametrize(
    ("kind", "text", "drafted"),
    [
        ("id", "please refund INV-77", "INV-7"),
        ("id", "INV-7.pdf", "INV-7"),
        ("id", "INV-7/2", "INV-7"),
        ("id", "inv-7", "INV-7"),
        ("text", "Kim, Lee", "kim lee"),
        ("text", "lee kim", "kim lee"),
        ("text", "kimono", "kim"),
        ("text", "kim:lee", "kim"),
        ("price", "1200.50", "200.50"),
        ("date", "22 February", "2026-02-22"),
    ],
)
def test_a_text_does_not_prove_what_it_does_not_hold(kind: Kind, text: str, drafted: str) -> None:
    assert not proves(kind, text, drafted)


WORDS = st.sampled_from(
    [
        "INV-7",
        "INV-8",
        "7",
        "8",
        "1.200,50",
        "2026-02-22",
        "kim",
        "Lee",
        "#a",
        "a/b",
        "a:b",
        "true",
        "bob@x.com",
        ",",
        ".",
        "'",
        "-",
        "/",
        "(",
        ")",
    ]
)


@given(st.sampled_from(KINDS), st.lists(WORDS, max_size=8), st.lists(WORDS, min_size=1, max_size=3), st.booleans())
def test_nothing_is_proven_that_is_not_held(kind: Kind, said: list[str], drafted: list[str], apart: bool) -> None:
    text, wanted = (" " if apart else "").join(said), " ".join(drafted)
    value = parse(kind, wanted)
    if value is not None and proves(kind, text, wanted):
        assert holds(kind, value, text)


def test_marks_do_not_hold_the_text() -> None:
    marks = "".join(_proofs(KEY, frozenset(KINDS), "refund INV-7 to Kim"))
    assert "INV" not in marks
    assert "kim" not in marks.lower()
    assert origins._BYTES * 8 == 48
