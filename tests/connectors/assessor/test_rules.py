"""The rules find what can be found without understanding, and leave ordinary working talk alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.assessor.writes import a_write
from turngate.connectors.assessor.rules import MAX_CHARACTERS, assess_by_rules, assess_text
from turngate.schemas.inputs import Label

SENSITIVE = {
    "the card is 4111 1111 1111 1111, valid till May": "payment card",
    "pay to DE89 3704 0044 0532 0130 00 please": "bank account",
    "his SSN is 078-05-1120": "national id",
    "the password is hunter2": "credential",
    "API_KEY=abcd": "credential",
    "use AKIAIOSFODNN7EXAMPLE for it": "credential",
    "Kim was diagnosed last week": "health",
    "she is on sick leave until June": "health",
    "he joined the trade union": "belief or origin",
    "her salary goes up to 90k": "employment",
    "they filed for bankruptcy": "money or law",
}
ORDINARY = [
    "",
    "the launch moves to Thursday, Kim brings the slides",
    "order 4111 1111 1111 1112 has been shipped",  # no card's check digit
    "0000 0000 0000 0000",
    "version 2026.10.04-1234567 is out",
    "ticket DE89370400440532013001 is open",  # no account's check digits
    "call the office at 020 7946 0958",
    "reset your password at the portal",
    "let us discuss the plan in more detail",
]


@pytest.mark.parametrize(("text", "rule"), SENSITIVE.items())
def test_what_is_sensitive_is_said_to_be_by_which_rule(text: str, rule: str) -> None:
    found = assess_text(text)
    assert (found.label, found.note) == (Label.SENSITIVE, rule)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_talk_is_ordinary(text: str) -> None:
    assert assess_text(text).label is Label.ORDINARY


def test_several_rules_are_all_named_and_no_word_of_the_text() -> None:
    found = assess_text("her salary and her diagnosis; the passcode is 1234")
    assert found.note == "credential, employment, health"


@pytest.mark.parametrize("text", ["план на четверг", "目标是星期四", "x" * (MAX_CHARACTERS + 1)])
def test_what_cannot_be_read_is_uncertain(text: str) -> None:
    assert assess_text(text).label is Label.UNCERTAIN


@given(st.text())
def test_any_text_has_a_label(text: str) -> None:
    assert assess_text(text).label in Label


async def test_a_write_without_a_text_is_ordinary() -> None:
    assert (await assess_by_rules(a_write(None), 0)).label is Label.ORDINARY
