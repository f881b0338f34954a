"""Decides the normal forms of a value, and which spans of a running text could be one (R-EGR-5).

A form begins with the letter of its kind, so that the digits of a date are not those of an amount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from turngate.processors.dates import dates
from turngate.processors.spelling import CURRENCIES, Number, numbers

#: A value with fewer letters and digits means nothing in running text (R-EGR-5).
SIGNIFICANT = 4
#: A longer phrase or id is remembered under its first characters too, so that ends are only tried where it begins.
HEAD = 32
#: Digits that are an amount are not looked for in other groups than an amount's (`47-11` is not 4711), unless an amount
#: would hardly have so many, as a card or a telephone has.
_LONG_ID = 7


class Kind(StrEnum):
    """What a form is of."""

    PHRASE = "p"
    """Words, or an id with letters: lower case, without what stands between them."""
    DIGITS = "i"
    """An id of digits alone, without what stands between them."""
    AMOUNT = "n"
    """A decimal without needless zeros."""
    DAY = "d"
    """`YYYY-MM-DD`."""
    ADDRESS = "@"
    """A mail address."""
    HEAD = "h"
    """The first characters of a long phrase or id. Alone it is not the value."""


#: Scripts that put no spaces between words (Thai, Lao, Burmese, Khmer, kana, Han) or add endings to names (Hangul):
#: every letter may begin and end a value.
_LETTER = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)
#: A word: letters and digits, with the signs inside a number. In ASCII alone it is the same, and found faster.
_WORD = re.compile(rf"{_LETTER}|(?:(?!{_LETTER})[^\W_]|(?<=[0-9])[.,'](?=[0-9]))+")
_ASCII_WORD = re.compile("[a-z0-9]+(?:(?<=[0-9])[.,'](?=[0-9])[a-z0-9]+)*")
_MAIL = re.compile(r"(?<![\w.+'-])[_.+'-]*([^\W_][\w.+'-]*@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W_]{2,})")
_MAILBOX = re.compile(r"[^<>@]*<([^<>]+)>")
#: What may stand between two groups of digits of one id: a telephone, card or social security number.
_BETWEEN = re.compile(r"[ /:.()-]{1,3}")
_BESIDE = re.compile(r"[^\W\d_]+|[^\w]")
#: Letters before a dollar sign: `US$`.
_DOLLARS = frozenset(["a", "au", "c", "ca", "hk", "mx", "nt", "nz", "r", "s", "sg", "us"])


def forms(folded: str) -> Iterator[str]:
    """The normal forms of a value, given folded; none where it is too short to mean anything."""
    folded = folded.strip()
    address = _address(folded)
    if address is not None:
        yield Kind.ADDRESS + address
        return
    days = {day for named in dates(folded) if named.end - named.start == len(folded) for day in named.days}
    yield from (Kind.DAY + day for day in sorted(days))
    found = list(numbers(folded))
    amount = found[0] if len(found) == 1 and _only_money(folded, found[0]) else None
    if amount is not None:
        yield from _amounts(amount)
    spoken = words(folded)
    if not "".join(spoken).isdecimal():
        if amount is None and not days:
            yield from _joined(Kind.PHRASE, spoken)
    elif amount is None or _is_id(amount):
        # Digits with more between them than one id has are found by the longest row.
        longest = max(
            ([number.digits for number in row] for row in rows(folded, found)), key=lambda row: sum(map(len, row))
        )
        yield from _joined(Kind.DIGITS, longest)


def exact(folded: str, found: list[Number]) -> list[str]:
    """The amounts, dates and mail addresses of a text with these numbers, as forms, each once and in a fixed order."""
    seen = {form for number in found for form in _amounts(number)}
    seen.update(Kind.DAY + day for named in dates(folded) for day in named.days)
    if "@" in folded:
        seen.update(Kind.ADDRESS + match[1] for match in _MAIL.finditer(folded))
    return sorted(seen)


def words(folded: str) -> list[str]:
    """The words of a text, without what stands between them and inside their numbers."""
    form = _ASCII_WORD if folded.isascii() else _WORD
    return [word if word.isalnum() else re.sub("[.,']", "", word) for word in form.findall(folded)]


def rows(folded: str, found: list[Number]) -> Iterator[list[Number]]:
    """Those numbers of a text that follow each other with no more between them than what parts the digits of one id."""
    row: list[Number] = []
    for number in found:
        if row and _BETWEEN.fullmatch(folded, row[-1].end, number.start) is None:
            yield row
            row = []
        row.append(number)
    if row:
        yield row


def integral(number: Number) -> bool:
    """Whether its digits can be read without a decimal sign among them."""
    return not number.readings or number.digits in number.readings


def _address(folded: str) -> str | None:
    """The mail address that a value is: `bob@example.com`, or `Bob <bob@example.com>`."""
    boxed = _MAILBOX.fullmatch(folded)
    match = _MAIL.fullmatch(boxed[1] if boxed else folded)
    return match[1] if match else None


def _amounts(number: Number) -> Iterator[str]:
    for reading in number.readings:
        if len(reading.replace(".", "").lstrip("0")) >= SIGNIFICANT:
            yield Kind.AMOUNT + reading


def _is_id(amount: Number) -> bool:
    return not amount.readings or (integral(amount) and len(amount.digits) >= _LONG_ID)


def _only_money(folded: str, number: Number) -> bool:
    """Whether a value is one number and nothing else but its currency and how prices end (`82.500,-`)."""
    rest = folded[: number.start] + " " + folded[number.end :]
    letters = [part for part in _BESIDE.findall(rest) if part.isalpha()]
    return not _BESIDE.sub("", rest) and all(part in CURRENCIES or part in _DOLLARS for part in letters)


def _joined(kind: Kind, groups: list[str]) -> Iterator[str]:
    joined = "".join(groups)
    if len(joined) >= SIGNIFICANT:
        yield kind + joined
    if len(joined) > HEAD:
        yield Kind.HEAD + kind + joined[:HEAD]
