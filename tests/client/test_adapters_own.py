"""What is peculiar to one framework: tools that a model's provider ran, stores, and runs that belong to no turn."""

from __future__ import annotations

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from openai.types.responses import ResponseFunctionWebSearch
from openai.types.responses.response_function_web_search import ActionSearch
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.client.frameworks import State
from tests.client.places import ALEX, DIRECT
from turngate.client import Inference, Turn
from turngate.client.adapters import langgraph, openai_agents, pydantic_ai
from turngate.client.testing import Workplace
from turngate.schemas.inputs import ToolReturned
from turngate.schemas.shapes import Code


async def test_what_the_provider_of_a_model_ran_counts_pydantic_ai(staffed: Workplace, turn: Turn) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        ran = [
            NativeToolCallPart("web_search", {}, tool_call_id="1"),
            NativeToolReturnPart("web_search", "x", tool_call_id="1"),
        ]
        return ModelResponse(parts=[*ran, TextPart("it says so")])

    inference = await Inference.begin(turn)
    result = await PydanticAgent(FunctionModel(model)).run("hello", capabilities=[pydantic_ai.Guard(inference)])
    verdict = await pydantic_ai.say(inference, result)
    assert [(r.server, r.operation) for r in staffed.records(ToolReturned)] == [("web_search", "web_search")]
    assert {r.code for r in verdict.reasons} == {Code.SOURCE_UNKNOWN}


async def test_what_the_provider_of_a_model_ran_counts_openai_agents(staffed: Workplace, turn: Turn) -> None:
    search = ActionSearch(type="search", query="x")
    ran = ResponseFunctionWebSearch(id="1", action=search, status="completed", type="web_search_call")
    model = ScriptedModel([[ran, assistant_message("it says so")]])
    inference = await Inference.begin(turn)
    agent = Agent(name="mesh", model=model)
    quiet = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, "hello", hooks=openai_agents.Guard(inference), run_config=quiet)
    verdict = await openai_agents.say(inference, result)
    assert [(r.server, r.operation) for r in staffed.records(ToolReturned)] == [("web_search", "web_search")]
    assert {r.code for r in verdict.reasons} == {Code.SOURCE_UNKNOWN}


async def test_what_an_agent_that_is_a_tool_called_counts_where_its_run_is_hooked(
    staffed: Workplace, turn: Turn
) -> None:
    @function_tool
    def diary() -> str:
        """A tool."""
        return "from the 14th on"

    def asking(tool: str, arguments: dict[str, str]) -> ScriptedModel:
        return ScriptedModel([[function_call(tool, arguments, call_id="1")], [assistant_message("it says so")]])

    inference = await Inference.begin(turn)
    guard, quiet = openai_agents.Guard(inference), RunConfig(tracing_disabled=True)
    helper = Agent(name="helper", tools=[diary], model=asking("diary", {})).as_tool(
        "helper", "", hooks=guard, run_config=quiet
    )
    agent = Agent(name="mesh", tools=[helper], model=asking("helper", {"input": "when?"}))
    result = await Runner.run(agent, "hello", hooks=guard, run_config=quiet)
    verdict = await openai_agents.say(inference, result)
    assert [r.server for r in staffed.records(ToolReturned)] == ["diary", "helper"]
    assert {r.code for r in verdict.reasons} == {Code.AUDIENCE_NOT_SUBSET, Code.SOURCE_UNKNOWN}


async def test_what_the_provider_of_a_model_ran_counts_langgraph(staffed: Workplace, turn: Turn) -> None:
    ran = {"type": "server_tool_call", "name": "web_search", "args": {}, "id": "1"}
    inference = await Inference.begin(turn)
    verdict = await langgraph.say(inference, [AIMessage([ran, {"type": "text", "text": "it says so"}])])
    assert [(r.server, r.operation) for r in staffed.records(ToolReturned)] == [("web_search", "web_search")]
    assert {r.code for r in verdict.reasons} == {Code.SOURCE_UNKNOWN}


async def test_a_narrower_rendering_passes_where_the_run_is_refused(staffed: Workplace, turn: Turn) -> None:
    """R-TURN-2: it was made by a run of its own."""
    wide, narrow = await Inference.begin(turn), await turn.context([])
    await wide.returned("diary", "from the 14th on")
    messages = [AIMessage("from the 14th on")]
    verdict = await langgraph.say(wide, messages, narrow.rendering("I would rather not say"))
    assert verdict.text == "I would rather not say"


async def test_an_output_that_is_no_text_is_the_agent_s_own_mistake(staffed: Workplace, turn: Turn) -> None:
    class Answer(BaseModel):
        days: int

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"days": 3})])

    inference = await Inference.begin(turn)
    result = await PydanticAgent(FunctionModel(model), output_type=Answer).run("hello")
    with pytest.raises(TypeError, match="text"):
        await pydantic_ai.say(inference, result)
    with pytest.raises(TypeError, match="text"):
        await langgraph.say(inference, [HumanMessage("hello")])
    assert staffed.sent == []


async def test_a_store_shows_a_run_what_its_room_may_hear(staffed: Workplace, turn: Turn) -> None:
    """LangGraph's memory: an item's key is a revision."""
    private = staffed.said(DIRECT, "I fly on the 14th", by=ALEX)
    store = InMemoryStore()
    async with staffed.gate().turn(room=DIRECT, trigger=private) as before:
        kept = await before.remember("Alex flies on the 14th")
    assert kept.revision is not None
    await store.aput(("alex",), kept.revision, {"text": "Alex flies on the 14th"})
    shown: list[object] = []

    async def read(state: State) -> State:
        guarded = langgraph.GuardedStore(store)
        shown.append(await guarded.aget(("alex",), kept.revision or ""))
        shown.append(await guarded.asearch(("alex",)))
        shown.append(await guarded.aget(("alex",), "nothing"))
        return {"messages": [AIMessage("I saw it")]}

    graph = StateGraph(State)
    graph.add_node("read", read)
    graph.add_edge(START, "read")
    graph.add_edge("read", END)
    texts = []
    async with staffed.gate().turn(room=DIRECT, trigger=private) as there:
        for one in (turn, there):
            inference = await Inference.begin(one)
            state = await graph.compile().ainvoke({"messages": []}, langgraph.config(inference))
            texts.append((await langgraph.say(inference, state["messages"])).text)
    assert shown[:3] == [None, [], None]
    assert [getattr(shown[3], "key", None), len(shown[4]), shown[5]] == [kept.revision, 1, None]  # type: ignore[arg-type]
    assert texts == ["I saw it", "I saw it"]
    with pytest.raises(RuntimeError, match="aget"):
        langgraph.GuardedStore(store).get(("alex",), kept.revision)


async def test_a_run_that_belongs_to_no_turn_runs_no_tool(staffed: Workplace) -> None:
    ran = []

    def search() -> str:
        """A tool."""
        ran.append(1)
        return "x"

    graph = StateGraph(State)
    graph.add_node("tools", langgraph.guarded_tools([search], handle_tool_errors=False))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    asking = {"messages": [AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])]}
    with pytest.raises(RuntimeError, match="belongs to no turn"):
        await graph.compile().ainvoke(asking)
    with pytest.raises(RuntimeError, match="ainvoke"):
        graph.compile().invoke(asking)
    assert ran == []
