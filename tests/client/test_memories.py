"""What a turn remembered counts in what it says from the moment that it may be recorded (R-TURN-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from tests.client.places import ALEX, BO, DIRECT, GENERAL, POLICY
from turngate.client import Reason, Turn
from turngate.client.testing import Workplace
from turngate.schemas.inputs import MemoryWrite
from turngate.schemas.shapes import Code

SLOW = {"sensitivity": {"enabled": True, "deadline": "1m"}}  # each write waits for somebody who says nothing


def codes(reasons: Iterable[Reason]) -> set[str]:
    return {reason.code for reason in reasons}


def office(**policy: object) -> Workplace:
    made = Workplace(policy=POLICY | policy)
    made.room(DIRECT, ALEX, kind="direct")
    made.room(GENERAL, ALEX, BO)
    return made


async def cut_short(workplace: Workplace, turn: Turn) -> None:
    """A write that is on the log, of which the agent never hears."""
    writing = asyncio.create_task(turn.remember("Alex flies on the 14th"))
    while not any(record.turn == turn.name for record in workplace.records(MemoryWrite)):  # noqa: ASYNC110  # time is told by whoever waits
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing


@pytest.mark.parametrize(("seconds", "code"), [(0, Code.SOURCE_MISSING), (61, Code.AUDIENCE_NOT_SUBSET)])
async def test_a_write_that_may_be_recorded_counts_whether_its_answer_came_or_not(seconds: int, code: Code) -> None:
    """Not recorded yet, or recorded meanwhile; its twin does not tell of it."""
    verdicts = []
    with office(**SLOW) as workplace:
        asked = workplace.said(GENERAL, "what do you know?", by=ALEX)
        for acknowledges in (True, False):
            async with workplace.gate().turn(room=GENERAL, trigger=asked) as turn:
                wide, narrow = await turn.context([asked]), await turn.context([asked])
                await turn.tool_returned("diary", "read", context=wide)
                await cut_short(workplace, turn)
                workplace.wait(seconds)
                verdicts.append(await turn.say(narrow.rendering("I noted it"), acknowledges=acknowledges))
    assert [(v.text, codes(v.reasons)) for v in verdicts] == [(None, {code}), ("I noted it", set())]


async def test_a_write_that_was_surely_refused_does_not() -> None:
    """Nor one that no record can hold; what it would have replaced is still there."""
    with office() as workplace:
        asked = workplace.said(DIRECT, "hello?", by=ALEX)
        async with workplace.gate().turn(room=DIRECT, trigger=asked) as turn:
            refused = await turn.remember("as before", memory="plan", amends="plan@never")
            forgotten = await turn.forget("plan", "plan@never")
            unusable = await turn.remember("\ud800" * 2, memory="m" * 600)
            verdict = await turn.say("I know nothing of that")
    assert codes(refused.reasons) == codes(forgotten.reasons) == {Code.BASE_NOT_CURRENT}
    assert (unusable.revision, unusable.reasons) == (None, ())
    assert verdict.text == "I know nothing of that"


async def test_whoever_observes_is_handed_what_no_record_can_name_and_is_told_what_that_costs() -> None:
    """The twin without it passes."""
    texts = []
    with office() as workplace:
        asked = workplace.said(GENERAL, "hello?", by=ALEX)
        for bad in (["x", "message:" + "x" * 2_000], []):
            async with workplace.gate(mode="observe").turn(room=GENERAL, trigger=asked) as turn:
                context = await turn.context([asked, *bad])
                assert list(context) == [asked, *bad]
                verdict = await turn.say(context.rendering("hello"))
                texts.append((verdict.text, verdict.passed, codes(verdict.reasons)))
    assert texts == [("hello", False, {Code.SOURCE_MISSING}), ("hello", True, set())]
