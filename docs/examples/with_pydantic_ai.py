"""A Pydantic AI agent behind the gate: what changes are the lines with `inference` (docs/agents.md).

    pip install 'turngate[pydantic-ai]'
    python docs/examples/with_pydantic_ai.py

The model is Pydantic AI's own stand-in; the gate is the real engine in this process.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from turngate.client import Gate, Inference
from turngate.client.adapters.pydantic_ai import Guard, say
from turngate.client.testing import Workplace

ALEX, BO = "slack:T1/UALEX", "slack:T1/UBO"
DIRECT, GENERAL = "slack:T1/D1", "slack:T1/C1"

agent = Agent(TestModel(custom_output_text="You are away from the 14th on"))


@agent.tool_plain
def calendar() -> str:
    """Alex's calendar, which nobody but Alex may read."""
    return "14th: Lisbon"


async def answer(gate: Gate, room: str, asked: str) -> str | None:
    """What the agent says to a message."""
    async with gate.turn(room=room, trigger=asked) as turn:
        inference = await Inference.begin(turn, {asked: "when am I away?"})
        result = await agent.run(list(inference.context.values()), capabilities=[Guard(inference)])
        return (await say(inference, result)).text


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
