"""What each framework's hooks do: tools are recorded, memories filtered, and the answer is asked for."""

from __future__ import annotations

import pytest

from tests.client.frameworks import Run, with_langgraph, with_openai_agents, with_pydantic_ai
from tests.client.places import ALEX, BO, DIRECT, GENERAL
from turngate.client import Turn
from turngate.client.testing import Workplace
from turngate.schemas.inputs import ToolReturned
from turngate.schemas.shapes import Code

FRAMEWORKS = [
    pytest.param(with_pydantic_ai, id="pydantic-ai"),
    pytest.param(with_openai_agents, id="openai-agents"),
    pytest.param(with_langgraph, id="langgraph"),
]
every_framework = pytest.mark.parametrize("run", FRAMEWORKS)


@every_framework
async def test_what_a_named_tool_returned_may_be_said_where_it_may_be_heard(
    run: Run, staffed: Workplace, turn: Turn
) -> None:
    verdict, seen = await run(turn, "search", lambda: "the office is closed")
    assert "the office is closed" in seen
    assert verdict.text is not None
    assert [s.text for s in staffed.sent] == [verdict.text]
    (recorded,) = staffed.records(ToolReturned)
    assert (recorded.server, recorded.operation, recorded.error) == ("wiki", "search", None)


@every_framework
@pytest.mark.parametrize(("name", "code"), [("diary", Code.AUDIENCE_NOT_SUBSET), ("shadow", Code.SOURCE_UNKNOWN)])
async def test_what_another_returned_may_not(run: Run, name: str, code: Code, staffed: Workplace, turn: Turn) -> None:
    verdict, _ = await run(turn, name, lambda: "from the 14th on")
    assert (verdict.text, {r.code for r in verdict.reasons}) == (None, {code})
    assert staffed.sent == []


@every_framework
async def test_a_model_sees_of_what_is_remembered_what_the_room_may_hear(
    run: Run, staffed: Workplace, turn: Turn
) -> None:
    private = staffed.said(DIRECT, "I fly on the 14th", by=ALEX)
    public = staffed.said(GENERAL, "the office is closed", by=BO)
    memories = {private: "Alex flies on the 14th", public: "the office is closed"}
    verdict, seen = await run(turn, "recall", lambda: memories)
    assert "the office is closed" in seen
    assert "14th" not in seen
    assert verdict.text is not None
    assert staffed.records(ToolReturned) == []


@every_framework
async def test_a_tool_for_memories_that_returns_something_else_is_a_tool(
    run: Run, staffed: Workplace, turn: Turn
) -> None:
    verdict, _ = await run(turn, "recall", lambda: "Alex flies on the 14th")
    assert (verdict.text, {r.code for r in verdict.reasons}) == (None, {Code.SOURCE_UNKNOWN})


@every_framework
async def test_a_tool_that_fails_is_recorded_if_the_model_goes_on(run: Run, staffed: Workplace, turn: Turn) -> None:
    def broken() -> str:
        raise RuntimeError("Alex flies on the 14th")

    try:
        verdict, _ = await run(turn, "diary", broken)
    except RuntimeError:
        pass  # a run that has ended says nothing
    else:
        assert (verdict.text, {r.code for r in verdict.reasons}) == (None, {Code.AUDIENCE_NOT_SUBSET})
    assert [(r.server, r.operation) for r in staffed.records(ToolReturned)] == [("diary", "diary")]
    assert staffed.sent == []
