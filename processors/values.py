"""Decides what a parameter's value is, by its type, and whether a running text contains it (R-ACT-1, R-ACT-2).

A parameter's own value is plain, so that whoever executes it reads what was checked: `500.01`, `2026-02-28`, `true`.
A person or a tool may have written it otherwise: `EUR 500,01`, `February 28, 2026`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

from turngate.processors.dates import dates, day
from turngate.processors.spelling import CURRENCIES, Number, fits_text, fold, numbers, unescape

#: The types of a parameter (contract section 5, `skills`).
Kind = Literal["price", "int", "number", "text", "email", "date", "bool", "id"]
#: What a value is: an exact decimal, a truth value, or text (an e-mail address in lower case, a date as `YYYY-MM-DD`).
Value = Decimal | bool | str

#: Ids are names of things; contract section 1 allows 512 characters for one that its writer chose.
MAX_ID = 512
#: RFC 5321: 64 octets, an at sign and 255 make 320, and a path with its brackets 256; in practice 254.
MAX_EMAIL = 254
#: No amount, count or measure needs more digits.
MAX_DIGITS = 40

_INT = re.compile("-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DATE = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_EMAIL = re.compile(rf"[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@(?:{_LABEL}\.)+{_LABEL}")
#: Everything that could belong to a mail address; quotes and the like at its edges do not.
_EMAIL_LIKE = re.compile(r"(?<![\w.!#$%&'*+/=?^`{|}~-])[\w.!#$%&'*+/=?^`{|}~-]+(?:@[\w.-]+)+")
_AROUND_EMAIL = "'\"*_~|=/?!#$%&^{}`.-"
_BLANK = re.compile(r"\s+")
#: A minus sign right before a number or before its currency: `-5`, `-€5`, `EUR -5`.
_MINUS = re.compile(r"(?:(?<![^\W_])|^)-(?:[^\w\s-]{1,3} ?|([a-z]{1,7})\.? ?)?$")
#: What makes a number a part of a longer token: an id (`INV-7`), a range, a time of day, a fraction, a version.
_JOINED_BEFORE = re.compile(r"(?:[^\W_][-_']|[0-9][:/.])$")
_JOINED_AFTER = re.compile(r"[-_'][^\W_]|[:/][0-9]")
#: Where one of these lies between two letters or digits, they are one token.
_BEFORE, _AFTER = frozenset("-_.@+'"), frozenset("-_.@+:/")


def parse(kind: Kind, text: str) -> Value | None:
    """The value of a parameter that was drafted as this text, or None: it is not of that type (`param_invalid`)."""
    if kind in {"price", "number", "int"}:
        form = _INT if kind == "int" else _DECIMAL
        return Decimal(text) if len(text) <= MAX_DIGITS and form.fullmatch(text) else None
    if kind == "text":
        return text if fits_text(text) else None
    if kind == "email":
        return text.lower() if len(text) <= MAX_EMAIL and text.isascii() and _EMAIL.fullmatch(text.lower()) else None
    if kind == "date":
        match = _DATE.fullmatch(text)
        return day(*map(int, match.groups())) if match else None
    if kind == "bool":
        return {"true": True, "false": False}.get(text)
    return text if 0 < len(text) <= MAX_ID and text.isprintable() and text == text.strip() else None


def over_max(value: Value, maximum: Decimal) -> bool:
    """Whether a value is over its limit (`param_over_max`). The limit holds for what is taken as for what is given:
    -600 is over 500. What is no number cannot be shown to keep a limit, so it does not.
    """
    return not isinstance(value, Decimal) or value.copy_abs() > maximum


def readings_in(kind: Kind, text: str) -> Iterator[str]:
    """What amounts, dates, addresses or truth values a text contains as whole tokens, under every reading."""
    if kind in {"price", "number", "int"}:
        folded = fold(text)
        for number in numbers(folded):
            if _alone(folded, number) and not (kind == "price" and _percent(folded, number)):
                sign = -1 if _negative(folded, number) else 1
                yield from (form_of(sign * Decimal(reading)) for reading in number.readings)
    elif kind == "date":
        for named in dates(fold(text)):
            yield from sorted(named.days)
    elif kind == "email":
        for match in _EMAIL_LIKE.finditer(loose(unescape(text))):
            yield match[0].lstrip(_AROUND_EMAIL).rstrip(".-_")
    elif kind == "bool":
        yield from dict.fromkeys(re.findall(r"\b(?:true|false)\b", fold(text)))


def form_of(value: Value) -> str:
    """A value as text, the same for equal values: amounts without needless zeros."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else format(value.normalize(), "f")


def _percent(folded: str, number: Number) -> bool:
    return folded[number.end : number.end + 2].lstrip().startswith("%")


def holds(kind: Kind, value: Value, text: str) -> bool:
    """Whether a text contains the value as a whole token, compared as that type (R-ACT-1). Too long a text never does.

    An amount or a date counts under every reading that a country gives it; ids are compared byte for byte
    (contract section 1), text without regard to case and spacing.
    """
    if not fits_text(text):
        return False
    if kind in {"price", "number", "int"}:
        folded = fold(text)
        return any(_amounts_to(folded, n, value, price=kind == "price") for n in numbers(folded))
    if kind == "date":
        return any(value in named.days for named in dates(fold(text)))
    if kind == "email":
        found = (m[0].lstrip(_AROUND_EMAIL).rstrip(".-_") for m in _EMAIL_LIKE.finditer(loose(unescape(text))))
        return any(address == value for address in found)
    if kind == "bool":
        return re.search(rf"\b{str(value).lower()}\b", fold(text)) is not None
    wanted, within = str(value), unescape(text)
    if kind == "text":
        wanted, within = loose(wanted), loose(within)
    return _token_in(wanted, within)


def _amounts_to(folded: str, number: Number, value: Value, *, price: bool) -> bool:
    if not isinstance(value, Decimal) or not _alone(folded, number):
        return False
    if price and folded[number.end : number.end + 2].lstrip().startswith("%"):
        return False
    wanted = value.copy_negate() if _negative(folded, number) else value
    return any(Decimal(reading) == wanted for reading in number.readings)


def _negative(folded: str, number: Number) -> bool:
    match = _MINUS.search(folded, max(0, number.start - 12), number.start)
    return match is not None and (match[1] is None or match[1] in CURRENCIES)


def _alone(folded: str, number: Number) -> bool:
    start, end = number.start, number.end
    return not (_JOINED_BEFORE.search(folded, max(0, start - 2), start) or _JOINED_AFTER.match(folded, end, end + 2))


def loose(text: str) -> str:
    """A text without regard to case, compatibility forms and spacing."""
    return _BLANK.sub(" ", unicodedata.normalize("NFKC", text)).casefold().strip()


def _token_in(wanted: str, within: str) -> bool:
    at = within.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not _joined(within[max(0, at - 2) : at][::-1], wanted[0], _BEFORE) and not _joined(
            within[end : end + 2], wanted[-1], _AFTER
        ):
            return True
        at = within.find(wanted, at + 1)
    return False


def _joined(beside: str, edge: str, joins: frozenset[str]) -> bool:
    """Whether what lies beside a token's edge (nearest first) makes it part of a longer one."""
    if not beside or not (edge.isalnum() or edge == "_"):
        return False
    if beside[0].isalnum() or beside[0] == "_":
        return True
    far = beside[1:]
    return far.isalnum() and (beside[0] in joins or (beside[0] == "," and far.isdigit() and edge.isdigit()))
