"""Every code and verdict can be said in words."""

from __future__ import annotations

import pytest

from turngate.demo.words import VERDICTS, WORDS, first_of, words_of
from turngate.schemas.outputs import Verdict
from turngate.schemas.shapes import Code, Reason


def test_every_code_has_words_of_its_own() -> None:
    assert set(WORDS) == set(Code)
    assert len(set(WORDS.values())) == len(Code)


def test_every_verdict_has_a_word() -> None:
    assert set(VERDICTS) == set(Verdict)


@pytest.mark.parametrize("code", Code)
def test_words_follow_because(code: Code) -> None:
    assert words_of(code.value) == WORDS[code]
    assert WORDS[code][0].islower() or WORDS[code].startswith("I ")
    assert not WORDS[code].endswith(".")
    assert "_" not in WORDS[code]


def test_a_code_of_a_later_version_is_said_as_it_is() -> None:
    assert words_of("something_new") == "something_new"


def test_of_several_reasons_one_of_a_source_is_shown() -> None:
    room, source = Reason(code=Code.DESTINATION_UNKNOWN), Reason(code=Code.SOURCE_UNKNOWN)
    assert first_of((room, source)) == source
    assert first_of((room,)) == room
    assert first_of(()) is None
