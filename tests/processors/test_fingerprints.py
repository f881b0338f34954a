"""Values are remembered as keyed fingerprints and found in any ordinary spelling (R-EGR-1, R-EGR-5)."""

from __future__ import annotations

import hmac

import pytest

from turngate.processors.fingerprints import FINGERPRINT_BYTES, Finder, fingerprints, tags
from turngate.processors.spelling import MAX_TEXT

KEY = bytes(range(32))


def found(value: str, text: str) -> bool:
    return bool(Finder(KEY).find(text, set(fingerprints(value, KEY))))


FOUND = [
    # amounts, in every country's spelling, with any currency
    ("82500.00", "We offer EUR 82.500,00 a year"),
    ("82500.00", "The offer is 82 500"),
    ("82500.00", "about 82,500 EUR"),
    ("82500.00", "so 82500.00."),
    ("82500", "82500€, $82'500, EUR82500 or 82\u202f500"),
    ("EUR 82,500.00", "82500"),
    ("82.500,- €", "82500"),
    ("US$ 4,711", "4711"),
    ("-4711", "a loss of 4,711"),
    ("4711", "4,711 of them"),
    ("4.711", "4711"),
    ("4711", "４７１１, or ٤٧١١"),
    ("4711", "4711² as the note says"),
    ("4711", "№4711"),
    ("4711", "http://4711"),
    ("1,00,000", "100000"),
    ("0.04755", "a rate of 0,04755"),
    # words
    ("Red Rose", "the red-rose"),
    ("Red Rose", "the RED\n  rose's thorns"),
    ("Red Rose", "RedRose"),
    ("12 Elm Street", "so 12 ELM STREET."),
    ("Jean-Luc Müller", "JEAN LUC MU\u0308LLER"),
    ("O'Brien", "Ms O\u2019Brien"),
    ("AT&T Corp", "AT&amp;T corp"),
    ("山田太郎", "私は山田太郎です"),
    # ids, with or without what stands between their parts
    ("xk-42-ABCD", "It is xk 42 abcd"),
    ("xk42abcd", "token xk42-abcd"),
    ("xk42abcd", "http://xk42abcd"),
    ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
    ("4111 1111 1111 1111", "card 4111-1111-1111-1111"),
    ("4111111111111111", "card 4111 1111 1111 1111"),
    ("123-45-6789", "SSN 123 45 6789"),
    ("+49 170 1234567", "+49 (170) 123-4567"),
    ("0042", "room 0042"),
    ("550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000"),
    # mail addresses and dates
    ("bob@example.com", "write to Bob@Example.com."),
    ("Bob <bob@example.com>", "<mailto:bob@example.com|bob@example.com>"),
    ("1985-07-12", "born on July 12th, 1985"),
]
NOT_FOUND = [
    # too short to mean anything
    ("A-1 2", "100 a12"),
    ("100.00", "100 100.00 10000"),
    ("", ""),
    # on part of a word
    ("Red Rose", "colored roses"),
    ("Red Rose", "a red, red, pale rose"),
    ("12 Elm Street", "12 elm streets"),
    ("12 Elm Street", "12 Elm"),
    ("12 Elm Street", "1.12 Elm Street, 112 Elm Street"),
    ("xk42abcd", "xk42abcde"),
    ("82500", "x82500"),
    ("bob@example.com", "rob.bob@example.com, bob@example.com.evil.org"),
    # on a number inside a longer number
    ("4711", "order 24711 of colored roses, 4711.50 each, 4 711 000 in all"),
    ("4711", "124711 of them, 47110, 47.11"),
    ("4711", "47-11 or 47 11"),
    ("82500.00", "colored roses, 82500.50"),
    ("1234567", "1 234 567 890"),
    ("0042", "42, 0.0042, 10042"),
    ("123456789", "1234567.89"),
    ("04127", "4127"),
    ("4127", "04127"),
]


@pytest.mark.parametrize(("value", "text"), FOUND)
def test_a_value_is_found_in_any_ordinary_spelling(value: str, text: str) -> None:
    assert found(value, text)


@pytest.mark.parametrize(("value", "text"), NOT_FOUND)
def test_a_value_is_not_found_in_part_of_a_word_or_number(value: str, text: str) -> None:
    assert not found(value, text)


@pytest.mark.parametrize("value", ["", "abc", "A-1 2", "100.00", "1.20", "€ 999", "...!?", "1-2-3"])
def test_what_is_too_short_is_not_remembered(value: str) -> None:
    assert fingerprints(value, KEY) == ()


@pytest.mark.parametrize("words", [2, 6, 7, 8, 9, 50, 500])
def test_a_long_value_is_found_whole(words: int) -> None:
    value = " ".join(f"word{n}" for n in range(words))
    assert found(value, f"He said: {value.upper()}! So it is.")
    assert found(value, f"He said: {value.replace(' ', '-')} and {value.replace(' ', '')}.")
    assert not found(value, f"He said: {' '.join(value.split()[:-1])}!")
    assert not found(value, f"He said: {value}x!")


def test_a_long_id_of_digits_is_found_whole() -> None:
    value = "1234-5678 " * 8
    assert found(value, f"the key is {value.replace('-', ' ')}!")
    assert not found(value, f"the key is {value[:-6]}!")


def test_of_many_remembered_values_those_that_occur_are_named() -> None:
    remembered = {fingerprint: f"v{n}" for n in range(1000, 9000) for fingerprint in fingerprints(f"{n}", KEY)}
    text = "from 1,234 to 5678, and 5678 again; 91234 and 12345 are others"
    assert [remembered[f] for f in Finder(KEY).find(text, remembered)] == ["v1234", "v5678"]
    assert Finder(KEY).find(text, remembered, tags(remembered)) == Finder(KEY).find(text, remembered)


def test_only_beginnings_that_are_given_are_looked_at() -> None:
    """Tags are kept by the caller, so one that leaves some out finds less, and one that has more finds the same."""
    remembered = fingerprints("Red Rose", KEY)
    assert Finder(KEY).find("red rose", remembered, frozenset()) == ()
    everything = frozenset(bytes([a, b]) for a in range(256) for b in range(256))
    assert Finder(KEY).find("red rose", remembered, everything) == remembered


def test_a_fingerprint_is_a_truncated_hmac_of_the_normal_form() -> None:
    def mac(text: str) -> bytes:
        return hmac.digest(KEY, text.encode(), "sha256")

    assert fingerprints("EUR 82.500,00", KEY) == (mac("n82500")[:16],)
    assert fingerprints("Red Rose", KEY) == (mac("tagpredr")[:2] + mac("predrose")[:14],)
    long = "redrose" * 5
    assert fingerprints(long, KEY) == (mac("tagpredr")[:2] + mac("p" + long)[:14], mac("hp" + long[:32])[:16])
    assert fingerprints("bob@example.com", KEY) == (mac("@bob@example.com")[:16],)


def test_without_the_key_nothing_is_found() -> None:
    other = bytes(32)
    for value in ("82500", "Red Rose", "bob@example.com", "123-45-6789", "1985-07-12"):
        assert not set(fingerprints(value, KEY)) & set(fingerprints(value, other))
        assert all(len(fingerprint) == FINGERPRINT_BYTES for fingerprint in fingerprints(value, KEY))
        assert Finder(other).find(value, set(fingerprints(value, KEY))) == ()


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_length_is_an_error(key: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Finder(key)


@pytest.mark.parametrize("text", ["1 ", "a", "a b ", "1,", "a@", "\ud800", "é", "字", "may 1 ", "(", "&amp;"])
def test_a_text_of_the_greatest_size_is_looked_through(text: str) -> None:
    long = (text * MAX_TEXT)[: MAX_TEXT - 10] + " red rose"
    assert Finder(KEY).find(long, fingerprints("Red Rose", KEY))
