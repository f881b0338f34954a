"""What Pydantic AI lets a model see, or say, that no tool of the run returned: deferred results, output functions."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ExternalToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition

from tests.client.places import ALEX, BO, DIRECT, GENERAL
from turngate.client import Inference, Turn, Verdict
from turngate.client.adapters.pydantic_ai import Guard, say
from turngate.client.testing import Workplace
from turngate.schemas.inputs import ToolReturned
from turngate.schemas.shapes import Code


def returned(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    return [part for message in requests for part in message.parts if isinstance(part, ToolReturnPart)]


async def deferred(turn: Turn, name: str, result: object) -> tuple[Verdict, str]:
    """A run whose tool is carried out elsewhere, and its second half; what the model saw of it."""
    seen: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.extend(str(part.content) for part in returned(messages))
        return ModelResponse([TextPart("it says so")] if seen else [ToolCallPart(name, {}, tool_call_id="1")])

    outside: ExternalToolset[Any] = ExternalToolset([ToolDefinition(name=name)])
    agent = Agent(FunctionModel(model), output_type=[str, DeferredToolRequests], toolsets=[outside])
    inference = await Inference.begin(turn, servers={"search": "wiki"}, memories=["recall"])
    first = await agent.run("hello", capabilities=[Guard(inference)])
    assert isinstance(first.output, DeferredToolRequests)
    second = await agent.run(
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(calls={"1": result}),
        capabilities=[Guard(inference)],
    )
    return await say(inference, second), " ".join(seen)


@pytest.mark.parametrize(
    ("name", "server", "codes"),
    [
        ("search", "wiki", set()),
        ("diary", "diary", {Code.AUDIENCE_NOT_SUBSET}),
        ("shadow", "shadow", {Code.SOURCE_UNKNOWN}),
    ],
)
async def test_what_was_brought_in_for_a_deferred_call_counts(
    staffed: Workplace, turn: Turn, name: str, server: str, codes: set[Code]
) -> None:
    verdict, seen = await deferred(turn, name, "from the 14th on")
    assert "14th" in seen
    assert [r.server for r in staffed.records(ToolReturned)] == [server]
    assert (verdict.text, {r.code for r in verdict.reasons}) == (None if codes else "it says so", codes)


async def test_memories_that_were_brought_in_are_filtered_before_the_model_sees_them(
    staffed: Workplace, turn: Turn
) -> None:
    private = staffed.said(DIRECT, "I fly on the 14th", by=ALEX)
    public = staffed.said(GENERAL, "the office is closed", by=BO)
    verdict, seen = await deferred(turn, "recall", {private: "Alex flies on the 14th", public: "the office is closed"})
    assert "the office is closed" in seen
    assert "14th" not in seen
    assert verdict.text == "it says so"


@pytest.mark.parametrize(("server", "code"), [("wiki", None), ("diary", Code.AUDIENCE_NOT_SUBSET)])
async def test_a_function_that_makes_the_output_is_a_tool(
    staffed: Workplace, turn: Turn, server: str, code: Code | None
) -> None:
    def look(day: str) -> str:
        """What to say."""
        return f"away on {day}"

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"day": "the 14th"})])

    inference = await Inference.begin(turn, servers={"look": server})
    result = await Agent(FunctionModel(model), output_type=look).run("hello", capabilities=[Guard(inference)])
    verdict = await say(inference, result)
    assert [(r.server, r.operation) for r in staffed.records(ToolReturned)] == [(server, "look")]
    assert (verdict.text is None, [r.code for r in verdict.reasons]) == (code is not None, [code] if code else [])


async def test_an_output_that_no_function_makes_is_none(staffed: Workplace, turn: Turn) -> None:
    """Nor is the framework's own word for one, which stands in the history that it hands on."""

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"response": 3})])

    agent = Agent(FunctionModel(model), output_type=int)
    inference = await Inference.begin(turn)
    first = await agent.run("hello", capabilities=[Guard(inference)])
    await agent.run("again", message_history=first.all_messages(), capabilities=[Guard(inference)])
    assert (await inference.say("three")).text == "three"
    assert staffed.records(ToolReturned) == []
