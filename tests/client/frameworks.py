"""One agent in each framework, on that framework's own fake model: it calls one tool, then says what it saw of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from turngate.client import Inference, Turn, Verdict
from turngate.client.adapters import langgraph, openai_agents, pydantic_ai

#: What a tool does: it returns something, or raises.
Tool = Callable[[], Any]
#: Runs an agent with this one tool in a turn; the verdict, and what the model saw of the tool.
Run = Callable[[Turn, str, Tool], Awaitable[tuple[Verdict, str]]]
SERVERS = {"search": "wiki"}
MEMORIES = ("recall",)


async def with_pydantic_ai(turn: Turn, name: str, tool: Tool) -> tuple[Verdict, str]:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen = [p.model_response_str() for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(f"I saw {seen[0]}") if seen else ToolCallPart(name, {})])

    agent = PydanticAgent(FunctionModel(model))
    agent.tool_plain(tool, name=name)
    inference = await Inference.begin(turn, servers=SERVERS, memories=MEMORIES)
    result = await agent.run("hello", capabilities=[pydantic_ai.Guard(inference)])
    return await pydantic_ai.say(inference, result), result.output


async def with_openai_agents(turn: Turn, name: str, tool: Tool) -> tuple[Verdict, str]:
    inference = await Inference.begin(turn, servers=SERVERS)
    guard = openai_agents.Guard(inference)
    made = function_tool(tool, name_override=name)
    model = ScriptedModel([[function_call(name, {}, call_id="call-1")], [assistant_message("I saw it")]])
    agent = Agent(name="mesh", model=model, tools=[guard.recalling(made) if name in MEMORIES else made])
    result = await Runner.run(agent, "hello", hooks=guard, run_config=RunConfig(tracing_disabled=True))
    assert model.last_call is not None
    return await openai_agents.say(inference, result), json.dumps(model.last_call.input, default=str)


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]


async def with_langgraph(turn: Turn, name: str, tool: Tool) -> tuple[Verdict, str]:
    call = {"name": name, "args": {}, "id": "call-1"}
    model = GenericFakeChatModel(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("I saw it")]))
    tool.__name__, tool.__doc__ = name, "A tool."

    async def think(state: State) -> State:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(State)
    graph.add_node("think", think)
    graph.add_node("tools", langgraph.guarded_tools([tool]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda s: "tools" if s["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "think")
    inference = await Inference.begin(turn, servers=SERVERS, memories=MEMORIES)
    compiled = graph.compile()
    state = await compiled.ainvoke({"messages": [("user", "hello")]}, langgraph.config(inference))
    return await langgraph.say(inference, state["messages"]), str(state["messages"])
