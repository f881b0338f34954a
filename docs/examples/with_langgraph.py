"""A LangGraph agent behind the gate: what changes are the lines with `inference` (docs/agents.md).

    pip install 'turngate[langgraph]'
    python docs/examples/with_langgraph.py

The model is LangChain's own stand-in; the gate is the real engine in this process.
"""

from __future__ import annotations

import asyncio

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from turngate.client import Gate, Inference
from turngate.client.adapters.langgraph import config, guarded_tools, say
from turngate.client.testing import Workplace

ALEX, BO = "slack:T1/UALEX", "slack:T1/UBO"
DIRECT, GENERAL = "slack:T1/D1", "slack:T1/C1"


def calendar() -> str:
    """Alex's calendar, which nobody but Alex may read."""
    return "14th: Lisbon"


def graph() -> StateGraph[MessagesState]:
    """A model and its tools: it calls the tool, then answers."""
    calls = AIMessage("", tool_calls=[{"name": "calendar", "args": {}, "id": "1"}])
    model = GenericFakeChatModel(messages=iter([calls, AIMessage("You are away from the 14th on")]))

    async def think(state: MessagesState) -> MessagesState:
        return {"messages": [await model.ainvoke(state["messages"])]}

    made = StateGraph(MessagesState)
    made.add_node("think", think)
    made.add_node("tools", guarded_tools([calendar]))
    made.add_edge(START, "think")
    made.add_conditional_edges("think", tools_condition)
    made.add_edge("tools", "think")
    return made


async def answer(gate: Gate, room: str, asked: str) -> str | None:
    """What the agent says to a message."""
    async with gate.turn(room=room, trigger=asked) as turn:
        inference = await Inference.begin(turn, {asked: "when am I away?"})
        messages = [("user", text) for text in inference.context.values()]
        state = await graph().compile().ainvoke({"messages": messages}, config(inference))
        return (await say(inference, state["messages"])).text


async def main() -> None:
    """The same question in private and where Bo reads along."""
    with Workplace(policy={"tools": {"calendar": {"adapter": "mcp", "audience": {"readers": [ALEX]}}}}) as workplace:
        workplace.room(DIRECT, ALEX, kind="direct")
        workplace.room(GENERAL, ALEX, BO)
        for room in (DIRECT, GENERAL):
            asked = workplace.said(room, "when am I away?", by=ALEX)
            print(room, await answer(workplace.gate(), room, asked))


if __name__ == "__main__":
    asyncio.run(main())
