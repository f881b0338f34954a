"""Decides how a run of the OpenAI Agents SDK goes through a turn: hooks of that run, and a verdict on its output.

    inference = await Inference.begin(turn, history)
    result = await Runner.run(agent, prompt(inference.context), hooks=Guard(inference))
    verdict = await say(inference, result)

A session hands the model what nobody has asked the gate for: give `history` instead, with its refs. Needs the extra
`openai-agents`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper, RunHooks, Tool, ToolCallItem
from agents.result import RunResultBase
from agents.tool_context import ToolContext

from turngate.client.inference import Inference
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Rendering

#: Calls that were carried out here, so that the hooks have recorded them; all others the provider carried out itself.
_HERE = frozenset({"function_call", "computer_call", "local_shell_call", "custom_tool_call"})


class Guard(RunHooks[Any]):
    """Records what each tool of one run returned before the model sees it, those of agents it hands over to, too."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._recalling: list[Tool] = []

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        """See `RunHooks`."""
        if not any(tool is recalling for recalling in self._recalling):
            await self._inference.returned(tool.name, result)

    def recalling(self, tool: FunctionTool) -> FunctionTool:
        """A tool that returns what is remembered, by ref, as one of which the model sees what the room may hear.

        Give it to the agent instead of the tool. What it returns otherwise, an error too, counts as any tool's result.
        """

        async def filtered(context: ToolContext[Any], arguments: str) -> Any:
            result = await tool.on_invoke_tool(context, arguments)
            if isinstance(result, Mapping):
                return await self._inference.recalled(result)
            return await self._inference.returned(tool.name, result)

        made = replace(tool, on_invoke_tool=filtered)
        self._recalling.append(made)
        return made


async def say(inference: Inference, result: RunResultBase, *others: str | Rendering) -> Verdict:
    """Ask whether the run's output may be said. What the model's provider ran itself counts as a tool, too.

    Raises `TypeError` where the agent's output is no text.
    """
    for item in result.new_items:
        if isinstance(item, ToolCallItem):
            raw = item.raw_item
            kind = str(raw.get("type") if isinstance(raw, dict) else raw.type)
            if kind not in _HERE:
                await inference.returned(kind.removesuffix("_call"), None)
    if not isinstance(result.final_output, str):
        raise TypeError("an output that is said must be a text: make one of it, and ask with `inference.say`")
    return await inference.say(result.final_output, *others)
