"""Decides how running text is read whatever its spelling: its letters in one form, and its numbers under every reading.

Nothing here looks at a locale: `4.711` is 4711 in one country and 4.711 in another, so both readings count (R-EGR-5).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

#: Slack cuts a message off at 40,000 characters; no connector says more in one piece. Beyond it the caller refuses.
MAX_TEXT = 40_000
#: A field's value: names, addresses, keys and short notes. What is longer is a document and belongs into a tool's text.
MAX_VALUE = 4_000

#: Stands where a character ends a word or number and is no part of any: between `4711` and a footnote's `²`.
_BREAK = "\x00"
#: U+2212 is no dash to Unicode, and the Arabic signs are no comma and point to it.
_SIGNS = {"\u2212": "-", "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2032": "'", "\u066b": ".", "\u066c": ","}
#: Letters to Unicode that nobody sees.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))

#: What may touch a number without being part of a word: ISO 4217 codes in everyday use, and what people write for them.
_CURRENCIES = """
aed ars aud bdt bgn bhd brl cad chf clp cny cop czk dkk dzd egp eur gbp ghs hkd huf idr ils inr isk jod jpy kes krw kwd
kzt lkr mad mxn myr ngn nok nzd omr pen php pkr pln qar ron rsd rub sar sek sgd thb tnd try twd uah usd uyu vnd zar
kr rs fr kc zl lei rmb euro euros dollar dollars pound pounds franc francs franken yen yuan rupee rupees cent cents
"""
CURRENCIES = frozenset(_CURRENCIES.split())

_NUMBER = re.compile(
    # Groups parted by a space are one number; so are digits parted by points, commas, apostrophes and underscores.
    r"(?<![0-9])(?<![0-9][.,'_])(?>[0-9]{1,3}(?: [0-9]{3}(?![0-9]))+(?:[.,][0-9]+)?|[0-9]+(?:[.,'_][0-9]+)*)"
)
_MARK = re.compile(r"[ .,'_]")


def fits_text(text: str) -> bool:
    """Whether a text is short enough to be looked through."""
    return len(text) <= MAX_TEXT


def fits_value(value: str) -> bool:
    """Whether a field's value is short enough to be remembered."""
    return len(value) <= MAX_VALUE


def unescape(text: str) -> str:
    """The text as it is shown: the connector's three entities are `&`, `<` and `>`."""
    if "&" in text:
        for entity, sign in _ENTITIES:
            text = text.replace(entity, sign)
    return text


def fold(text: str) -> str:
    """One form for all spellings of the same letters and digits.

    Lower case; compatibility forms, digits of every script, dashes, apostrophes and spaces as in ASCII; without accents
    and invisible characters. Positions are not kept.
    """
    text = unescape(text)
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFC", text)
    return text.translate({ord(sign): _folded(sign) for sign in set(text) if sign > "\x7f"}).lower()


def _folded(sign: str) -> str:
    known = _SIGNS.get(sign)
    if known is not None:
        return known
    category = unicodedata.category(sign)
    if category in {"Cf", "Me"} or sign in _INVISIBLE:
        return ""
    if category == "Pd":
        return "-"
    if category == "Nd":
        return str(unicodedata.decimal(sign))
    if category[0] == "Z":
        return " " if category == "Zs" else "\n"
    if category == "So":  # `Rose™` is the word Rose, `№4711` the number
        return _BREAK
    plain = "".join(c for c in unicodedata.normalize("NFKD", sign) if unicodedata.category(c) != "Mn")
    if category == "No":  # `4711²` is 4711 with a footnote, and `2½` is not 21/2
        return f"{_BREAK}{plain}{_BREAK}"
    return unicodedata.normalize("NFC", plain).casefold()


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number in a folded text, from `start` to `end` (currency not included).

    `digits`: all of its digits. `readings`: what it can mean, as plain decimals without needless zeros, without sign;
    none where no country writes a number so (a date, a version).
    """

    start: int
    end: int
    digits: str
    readings: tuple[str, ...]


def numbers(folded: str) -> Iterator[Number]:
    """Every number of a folded text that is no part of a word or of a longer number, in order."""
    for match in _NUMBER.finditer(folded):
        raw = match[0]
        start, end = match.span()
        if not _apart(folded, start, end):
            continue
        meant = readings(raw)
        if not meant and set(_MARK.findall(raw)) == {","}:  # a list without spaces: `4711,4712,4713`
            for part in re.finditer("[0-9]+", raw):
                yield Number(start + part.start(), start + part.end(), part[0], readings(part[0]))
        else:
            yield Number(start, end, _MARK.sub("", raw), meant)


def readings(raw: str) -> tuple[str, ...]:
    """What digits with signs between them can mean, as plain decimals: `4,711` is 4711 or 4.711.

    None where a zero leads: `04711` is the name of something.
    """
    marks = _MARK.findall(raw)
    parts = _MARK.split(raw)
    meant = []
    if len(set(marks)) < 2 and (not marks or _grouped(parts)):
        meant.append(("".join(parts), ""))
    if marks and marks[-1] in ".," and (len(marks) == 1 or (_one_other(marks) and _grouped(parts[:-1]))):
        meant.append(("".join(parts[:-1]), parts[-1]))
    return tuple(dict.fromkeys(_plain(*parts) for parts in meant if parts[0] == "0" or parts[0][0] != "0"))


def _plain(whole: str, fraction: str) -> str:
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _one_other(marks: list[str]) -> bool:
    return len(set(marks[:-1])) == 1 and marks[-2] != marks[-1]


def _grouped(parts: list[str]) -> bool:
    """Whether these are the groups of one number: in threes, or Indian, in twos before the last three."""
    first, *middle, last = parts
    if len(last) != 3:
        return False
    threes = len(first) <= 3 and all(len(part) == 3 for part in middle)
    return threes or (len(first) <= 2 and all(len(part) == 2 for part in middle))


def _apart(folded: str, start: int, end: int) -> bool:
    """Whether nothing but a currency touches the number at `start` to `end`."""
    if start > 0 and folded[start - 1].isalnum():
        at = start - 1
        while at > 0 and folded[at - 1].isalpha() and start - at < 8:
            at -= 1
        if folded[at:start] not in CURRENCIES or (at > 0 and folded[at - 1].isalnum()):
            return False
    if end < len(folded) and folded[end].isalnum():
        at = end + 1
        while at < len(folded) and folded[at].isalpha() and at - end < 8:
            at += 1
        if folded[end:at] not in CURRENCIES or (at < len(folded) and folded[at].isalnum()):
            return False
    return True
