"""An agent of the OpenAI Agents SDK behind the gate: what changes are the lines with `inference` (docs/agents.md).

    pip install 'turngate[openai-agents]'
    python docs/examples/with_openai_agents.py

The model is the SDK's own stand-in; the gate is the real engine in this process.
"""

from __future__ import annotations

import asyncio

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from turngate.client import Gate, Inference
from turngate.client.adapters.openai_agents import Guard, say
from turngate.client.testing import Workplace

ALEX, BO = "slack:T1/UALEX", "slack:T1/UBO"
DIRECT, GENERAL = "slack:T1/D1", "slack:T1/C1"


@function_tool
def calendar() -> str:
    """Alex's calendar, which nobody but Alex may read."""
    return "14th: Lisbon"


def model() -> ScriptedModel:
    """Calls the tool, then answers."""
    return ScriptedModel(
        [[function_call("calendar", {}, call_id="1")], [assistant_message("You are away from the 14th on")]]
    )


async def answer(gate: Gate, room: str, asked: str) -> str | None:
    """What the agent says to a message."""
    agent = Agent(name="mesh", tools=[calendar], model=model())
    quiet = RunConfig(tracing_disabled=True)
    async with gate.turn(room=room, trigger=asked) as turn:
        inference = await Inference.begin(turn, {asked: "when am I away?"})
        question = "\n".join(inference.context.values())
        result = await Runner.run(agent, question, run_config=quiet, hooks=Guard(inference))
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
