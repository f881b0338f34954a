"""Of answers that nobody asked for, the turns of late are kept, and no more than that."""

from __future__ import annotations

from typing import Any

from turngate.client.answers import Answers
from turngate.schemas.catalog import RECORDS
from turngate.schemas.inputs import Record


def a(record: str, **fields: Any) -> Record:
    return RECORDS[record].model_validate({"tenant": "acme", "at": 0, "agent": "mesh", **fields})


def decided(turn: str, **fields: Any) -> Record:
    named = {"room": "slack:T1/C1", "verdict": "deliver", "leaves_digest": "", "policy": "1", "decision": ""}
    return a("TurnDecided", turn=turn, **named | fields)


async def appended(record: Record) -> None:
    """Nobody decides it here."""


async def first(answers: Answers, record: Record, *, fresh: bool = True) -> Record | None:
    """The first answer that has come, None: none has."""

    async def wait() -> None:
        raise TimeoutError

    try:
        return await anext(answers.to(record, appended, wait, fresh=fresh))
    except TimeoutError:
        return None


def draft(turn: str, text: str = "hello") -> Record:
    return a("TurnDrafted", turn=turn, room="slack:T1/C1", renderings=[{"text": text}])


async def test_an_answer_that_came_before_it_was_asked_for_is_its_answer() -> None:
    answers = Answers("acme", "mesh")
    answers.take(decided("t1"))
    assert await first(answers, draft("t1")) == decided("t1")
    assert await first(answers, draft("t2")) is None


async def test_answers_of_others_are_none_of_its_business() -> None:
    answers = Answers("acme", "mesh")
    answers.take(decided("t1", agent="scout"))
    answers.take(decided("t1", tenant="bolt"))
    assert await first(answers, draft("t1")) is None


async def test_what_is_kept_is_bounded() -> None:
    answers = Answers("acme", "mesh")
    for number in range(3_000):
        answers.take(decided(f"t{number}"))
        answers.take(a("ContextDecided", request=f"q{number}", turn="t"))
        asked = draft(f"u{number}")
        assert await first(answers, asked) is None
        answers.forget(asked)
    assert await first(answers, draft("t0")) is None
    assert await first(answers, draft("t2999")) == decided("t2999")
    assert len(answers) < 1_100


async def test_of_a_name_used_before_only_the_decision_of_this_content_counts() -> None:
    """R-TURN-8: another text under the same name was let out, and this one was not."""
    answers = Answers("acme", "mesh")
    answers.take(decided("t1", decision="of another text"))
    assert await first(answers, draft("t1"), fresh=False) is None
    assert await first(answers, draft("t1"), fresh=True) is not None
