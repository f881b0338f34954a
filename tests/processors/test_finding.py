"""A value in a random ordinary spelling in random prose is found, and an ordinary text raises no alarm (R-EGR-5).

The ordinary text is the reference manual that Python ships with itself (`pydoc_data.topics`), 460,000 characters.
"""

from __future__ import annotations

import random
import re
import unicodedata
from functools import cache
from pydoc_data.topics import topics  # type: ignore[import-untyped]

from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.fingerprints import Finder, fingerprints, tags
from turngate.processors.spelling import fold

KEY = bytes(range(32))
FINDER = Finder(KEY)

WORDS = [
    "so",
    "it",
    "said,",
    "that",
    "we",
    "(all",
    "of",
    "us)",
    "–",
    "as",
    "ever",
    "no",
    "to",
    "say\nthan",
    "this:",
    "“",
]
PROSE = st.lists(st.sampled_from(WORDS))
LETTERS = "abcdefghijklmnopqrstuvwxyzäöüéñçßøåαβγδабвгд"
NAMES = st.text(LETTERS, min_size=2, max_size=9)


def found(value: str, text: str) -> bool:
    return bool(FINDER.find(text, set(fingerprints(value, KEY))))


@st.composite
def within(draw: st.DrawFn, spelled: str) -> str:
    """A spelling in random prose, where a sentence may begin or end with it, in brackets, quoted or emphasized."""
    opening, closing = draw(
        st.sampled_from([("", ""), ("(", ")"), ('"', '"'), ("*", "*"), ("_", "_"), ("`", "`"), ("„", "“")])
    )
    end = draw(st.sampled_from(["", ".", ",", "!", "?", ":", ";", " –", "…", ".\n"]))
    return " ".join([*draw(PROSE), opening + spelled + closing + end, *draw(PROSE)])


@st.composite
def amounts(draw: st.DrawFn) -> tuple[str, str]:
    """An amount as a tool returns it, and the same in running text."""
    whole, cents = draw(st.integers(1000, 10**10)), draw(st.sampled_from(["", "", "50", "05", "00"]))
    group, point = draw(st.sampled_from([",.", ".,", " ,", "\u00a0,", "\u202f.", "\u2009,", "'.", "’.", "_."]))
    grouped = f"{whole:,}".replace(",", group) if draw(st.booleans()) else str(whole)
    spelled = grouped + (point + cents if cents else draw(st.sampled_from(["", "", point + "00", ",-"])))
    before, after = draw(
        st.sampled_from(
            [
                ("", ""),
                ("€", ""),
                ("EUR ", ""),
                ("$ ", ""),
                ("US$", ""),
                ("CHF", ""),
                ("", " €"),
                ("", "EUR"),
                ("-", ""),
            ]
        )
    )
    if draw(st.integers(0, 9)) == 0:
        spelled = "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in spelled)
    value = draw(st.sampled_from([f"{whole}.{cents}" if cents else str(whole), f"EUR {whole:,}.{cents or '00'}"]))
    return value, before + spelled + after


@given(amounts(), st.data())
def test_an_amount_in_any_spelling_is_found(amount: tuple[str, str], data: st.DataObject) -> None:
    value, spelled = amount
    assert found(value, data.draw(within(spelled)))


SPACES = [" ", "  ", "\n", "\u00a0", "-", "\u2013", "\u2011", "_", ", ", ". ", "/", ""]


@st.composite
def spelled_otherwise(draw: st.DrawFn, parts: list[str]) -> str:
    """The parts of a name or an id in another case and Unicode form, with other signs or none between them."""
    text = parts[0]
    for part in parts[1:]:
        text += draw(st.sampled_from(SPACES)) + part
    text = draw(st.sampled_from([str.upper, str.lower, str.title, str.swapcase]))(text)
    return unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])), text)


@given(st.lists(NAMES, min_size=2, max_size=6), st.data())
def test_a_name_in_any_spelling_is_found(parts: list[str], data: st.DataObject) -> None:
    spelled = data.draw(spelled_otherwise(parts))
    assert found(" ".join(parts), data.draw(within(spelled)))


@given(st.lists(st.from_regex(r"[a-z]{2,4}|[0-9]{2,4}", fullmatch=True), min_size=2, max_size=5), st.data())
def test_an_id_in_any_spelling_is_found(parts: list[str], data: st.DataObject) -> None:
    parts = ["xk", *parts]
    between = data.draw(st.sampled_from(["-", " ", ""]))
    spelled = data.draw(st.sampled_from(["-", " ", "", "\u2013", "_"])).join(parts)
    assert found(between.join(parts), data.draw(within(data.draw(st.sampled_from([str.upper, str.title]))(spelled))))


@given(st.lists(st.from_regex(r"[1-9][0-9]{1,3}", fullmatch=True), min_size=4, max_size=6), st.data())
def test_an_id_of_digits_in_any_spelling_is_found(parts: list[str], data: st.DataObject) -> None:
    between, other = data.draw(st.tuples(*[st.sampled_from(["-", " ", "/", ""])] * 2))
    assert found(between.join(parts), data.draw(within(other.join(parts))))


@given(st.text(max_size=60), st.sampled_from([" ", "\n", " – "]))
def test_whatever_is_remembered_is_found_verbatim(value: str, space: str) -> None:
    remembered = fingerprints(value, KEY)
    assert bool(FINDER.find(f"so{space}{value}{space}so", remembered)) is bool(remembered)


@given(st.integers(1000, 10**8), st.data())
def test_a_number_inside_a_longer_one_is_not_found(number: int, data: st.DataObject) -> None:
    digit = data.draw(st.sampled_from("123456789"))
    longer = data.draw(
        st.sampled_from(
            [f"{digit}{number}", f"{number}{digit}", f"{number}.{digit}", f"{number},5{digit}", f"{digit}.{number:07}1"]
        )
    )
    assert not found(str(number), data.draw(within(longer)))
    letter = data.draw(st.sampled_from("xqé字"))
    assert not found(
        str(number), data.draw(within(data.draw(st.sampled_from([f"{letter}{number}", f"{number}{letter}"]))))
    )


@given(st.lists(NAMES, min_size=2, max_size=3), st.sampled_from(LETTERS), st.data())
def test_a_name_that_is_part_of_a_word_is_not_found(parts: list[str], letter: str, data: st.DataObject) -> None:
    name = " ".join(parts)
    longer = data.draw(st.sampled_from([f"{name}{letter}", f"{letter}{name}"]))
    assert not found(name, f"so – {longer} – so")


@cache
def manual() -> list[str]:
    """The reference manual in pieces of 4,000 characters, about what a long message has."""
    text = "\n".join(topics[name] for name in sorted(topics))
    return [text[at : at + 4000] for at in range(0, len(text), 4000)]


def alarms(values: list[str]) -> set[str]:
    """Which of these values are said to be in the manual, piece by piece."""
    remembered = {fingerprint: value for value in values for fingerprint in fingerprints(value, KEY)}
    assert len(remembered) >= len(values) * 0.9
    beginnings = tags(remembered)
    return {remembered[print_] for piece in manual() for print_ in FINDER.find(piece, remembered, beginnings)}


def test_words_of_an_ordinary_text_that_are_nearly_a_value_raise_no_alarm() -> None:
    """Every long word of the manual with a letter less or more is remembered, if that is no word of it too.

    Nor may it be two to four words that stand side by side: `methodx` is found in `method(x)`, whatever its spacing.
    """
    words = re.findall(r"[^\W_]+", fold(" ".join(manual())))
    there = {"".join(words[at : at + size]) for size in (1, 2, 3, 4) for at in range(len(words))}
    nearly = {near for word in words if len(word) > 5 and word.isalpha() for near in (word[:-1], word[1:], f"{word}x")}
    assert len(nearly - there) > 5000
    assert len(nearly & there) < len(nearly) * 0.25
    assert alarms(sorted(nearly - there)) == set()


def test_numbers_of_an_ordinary_text_that_are_nearly_a_value_raise_no_alarm() -> None:
    text = " ".join(manual())
    there = set(re.findall("[0-9]+", f"{text} {re.sub(r'(?<=[0-9])[ ,._](?=[0-9])', '', text)}"))
    long = [number for number in there if len(number) > 3]
    nearly = {near for number in long for near in (f"{number}7", f"7{number}", number[:-1], str(int(number) + 3))}
    assert alarms(sorted(near for near in nearly - there if len(near.lstrip("0")) > 3)) == set()


def test_values_of_a_company_raise_no_alarm_in_an_ordinary_text() -> None:
    """Ten thousand names, salaries, addresses, tokens and mail addresses that the manual knows nothing of."""
    chance = random.Random(5)
    names = ["".join(chance.choices("aeioulnrst", k=chance.randint(4, 8))).capitalize() for _ in range(2000)]
    values = [f"{chance.choice(names)} {chance.choice(names)}" for _ in range(3000)]
    values += [str(chance.randint(20_000, 200_000)) for _ in range(3000)]
    values += [f"{chance.randint(2, 99)} {chance.choice(names)} Street" for _ in range(2000)]
    values += [f"xk-{chance.randint(10, 99)}-{chance.choice(names)[:4]}" for _ in range(1000)]
    values += [f"{chance.choice(names)}@example.com".lower() for _ in range(1000)]
    assert alarms(values) == set()
