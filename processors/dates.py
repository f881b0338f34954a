"""Decides which calendar dates a running text names, however they are written.

A date without a year names none: nothing here knows what day it is. Years of two digits are of this century.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

#: Months in the languages of the first workspaces, folded (no accents): English, German, French, Spanish, Italian,
#: Portuguese, Dutch, one month a line. What is not here is not read as a date, so it proves nothing.
_MONTHS = """
january jan januar janner janvier janv enero ene gennaio gen janeiro januari
february feb februar feber fevrier fevr fev febrero febbraio fevereiro februari
march mar marz mrz mars marzo marco maart mrt
april apr avril avr abril abr aprile
may mai mayo maggio mag maio mei
june jun juni juin junio giugno giu junho
july jul juli juillet juil julio luglio lug julho
august aug aout agosto ago augustus
september sep sept septembre septiembre settembre set setembro
october oct oktober okt octobre octubre ottobre ott outubro out
november nov novembre noviembre novembro
december dec dezember dez decembre diciembre dic dicembre dezembro
"""
_MONTH_OF = {name: at for at, names in enumerate(_MONTHS.strip().splitlines(), 1) for name in names.split()}

_NAME = r"(?<![a-z])(?P<name>" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + r")(?![a-z])\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th|er|o|a|\.)?(?![0-9])"
_YEAR = r"(?P<year>[0-9]{4}|'?[0-9]{2})(?![0-9])"
_OF = r"[ \n,/-]{0,2}(?:(?:of|de|del|di|van) )?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>[0-9]{4})(?P<sign>[-/.])(?P<month>[0-9]{1,2})(?P=sign)(?P<day>[0-9]{1,2})(?![0-9])",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})(?![0-9])",
        r"(?P<year>[0-9]{4})年 ?(?P<month>[0-9]{1,2})月 ?(?P<day>[0-9]{1,2})日",
        r"(?P<first>[0-9]{1,2})(?P<sign>[-/]|\. ?)(?P<second>[0-9]{1,2})(?P=sign)(?P<year>[0-9]{4}|[0-9]{2})(?![0-9])",
        f"{_DAY}{_OF}{_NAME}{_OF}{_YEAR}",
        f"{_NAME}{_OF}{_DAY}{_OF}{_YEAR}",
        rf"(?P<year>[0-9]{{4}}){_OF}{_NAME}{_OF}{_DAY}",
    )
)
_NAMED, _DIGIT = re.compile(_NAME), re.compile("[0-9]")
#: A time of day after a date belongs to it: `2026-02-22T10:00:00Z`.
_TIME = re.compile("t[0-9]{2}:[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Named:
    """A date in a folded text, from `start` to `end`; `days`: what it can mean, as `YYYY-MM-DD`."""

    start: int
    end: int
    days: frozenset[str]


def day(year: int, month: int, of_month: int) -> str | None:
    """`YYYY-MM-DD` if the (Gregorian) calendar has that day, else None."""
    if not (1 <= year <= 9999 and 1 <= month <= 12):
        return None
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return f"{year:04}-{month:02}-{of_month:02}" if 1 <= of_month <= _DAYS[month - 1] + leap else None


def dates(folded: str) -> Iterator[Named]:
    """Every date of a folded text that is no part of a longer word or number; `02/03/2026` is one of two days."""
    if _DIGIT.search(folded) is None:
        return
    named = _NAMED.search(folded) is not None
    for form in _FORMS if named else _FORMS[:4]:
        for match in form.finditer(folded):
            if not _whole(folded, *match.span()):
                continue
            days = frozenset(d for d in _days(match) if d is not None)
            if days:
                yield Named(match.start(), match.end(), days)


def _days(match: re.Match[str]) -> Iterator[str | None]:
    part = match.groupdict()
    year = int(part["year"].lstrip("'"))
    if len(part["year"].lstrip("'")) == 2:
        year += 2000
    if "first" in part:
        first, second = int(part["first"]), int(part["second"])
        yield day(year, second, first)
        if "." not in part["sign"]:  # with points the day comes first; with others it depends on the country
            yield day(year, first, second)
    else:
        month = _MONTH_OF[part["name"]] if "name" in part else int(part["month"])
        yield day(year, month, int(part["day"]))


def _whole(folded: str, start: int, end: int) -> bool:
    """Whether what is around the date is not joined to it: no word or number touches it, not even by a dash."""
    before, after = folded[max(0, start - 2) : start], folded[end : end + 2]
    if before and (before[-1].isalnum() or (before[-1] in "-/." and before[:-1].isalnum())):
        return False
    if after and after[0].isalnum():
        return _TIME.match(folded, end) is not None
    return not (len(after) == 2 and after[0] in "-/." and after[1].isalnum())
