"""Decides what a text is by a few rules about its form and words: the assessor where no endpoint is configured.

It finds what can be found without understanding: numbers with a checksum, secrets in their usual form, and English
words for what the law calls special categories. It misses what is put in other words, so an organisation that relies on
labels gives an endpoint of its own.
"""

from __future__ import annotations

import re
from itertools import cycle

from turngate.connectors.assessor.assessment import UNCERTAIN, Assessment
from turngate.schemas.inputs import Label, MemoryWrite

#: A longer text is not read.
MAX_CHARACTERS = 200_000
#: The rules are about English words; a text with a smaller share of ASCII among its letters is not understood.
_LEAST_ASCII = 0.8

_CARD = re.compile(r"(?<![\w-])(?:\d[ -]?){12,18}\d(?![\w-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?!\w)")
#: By the name that the note gives: a form, or words at whose beginning the rule looks.
_FORMS = {
    "credential": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----|(?<!\w)(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{30,}|xox[abprs]-[\w-]{10,})"
        r"|\b(?:pass(?:word|phrase|code)|api[ _-]?key|secret[ _-]?key|access[ _-]?token|pin(?: code)?)\b"
        r"\s*(?:is|=|:)\s*\S",
        re.IGNORECASE,
    ),
    "national id": re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
    "health": re.compile(
        r"\b(?:diagnos|pregnan|miscarr|therap(?:y|ist)|chemo|cancer|tumou?r|hiv\b|depress(?:ed|ion)|anxiety|medicat|"
        r"prescri|surger|psychiat|sick (?:leave|note)|disabilit|addict|rehab\b)",
        re.IGNORECASE,
    ),
    "belief or origin": re.compile(
        r"\b(?:religio|muslim|jewish|christian\b|atheis|ethnic|trade union|union member|political part|sexual|gay\b|"
        r"lesbian|transgender|asylum|immigration status)",
        re.IGNORECASE,
    ),
    "employment": re.compile(
        r"\b(?:salar(?:y|ies)|payslip|bonus of|severance|laid off|layoffs?\b|dismiss(?:al|ed)|performance review|"
        r"disciplinary|harass|complaint against|resign(?:ing|ation)\b)",
        re.IGNORECASE,
    ),
    "money or law": re.compile(
        r"\b(?:bankrupt|in debt|criminal|convict(?:ed|ion)|lawsuit|custody|divorc)", re.IGNORECASE
    ),
}


async def assess_by_rules(write: MemoryWrite, seconds: float) -> Assessment:
    """The label of a write's text; no time is needed."""
    return assess_text(write.text or "")


def assess_text(text: str) -> Assessment:
    """`sensitive` with the names of the rules that found something, `uncertain` of what cannot be read, or `ordinary`.

    The note names rules and never repeats the text.
    """
    if len(text) > MAX_CHARACTERS:
        return UNCERTAIN
    found = [name for name, form in _FORMS.items() if form.search(text)]
    found += ["payment card"] * any(_is_card(match[0]) for match in _CARD.finditer(text))
    found += ["bank account"] * any(_is_iban(match[0]) for match in _IBAN.finditer(text))
    if found:
        return Assessment(Label.SENSITIVE, ", ".join(sorted(found)))
    letters = [c for c in text if c.isalpha()]
    if sum(c.isascii() for c in letters) < _LEAST_ASCII * len(letters):
        return UNCERTAIN
    return Assessment(Label.ORDINARY)


def _is_card(text: str) -> bool:
    """The check digit of ISO/IEC 7812 (Luhn)."""
    digits = [int(c) for c in reversed(text) if c.isdigit()]
    doubled = (d * weight for d, weight in zip(digits, cycle((1, 2)), strict=False))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0 and len(set(digits)) > 1


def _is_iban(text: str) -> bool:
    """The check digits of ISO 13616."""
    plain = text.replace(" ", "")
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1
