"""Decides how a run of Pydantic AI goes through a turn: a capability of that run, and a verdict on its output.

    inference = await Inference.begin(turn, history)
    result = await agent.run(prompt(inference.context), capabilities=[Guard(inference)])
    verdict = await say(inference, result)

Needs the extra `pydantic-ai`.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import AgentRunResult, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import NativeToolReturnPart, ToolCallPart
from pydantic_ai.tools import ToolDefinition

from turngate.client.inference import Inference
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Rendering


class Guard(AbstractCapability[Any]):
    """Records what each tool of one run returned before the model sees it, and filters what is remembered."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        """See `AbstractCapability`."""
        return await self._inference.returned(call.tool_name, result)

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        error: Exception,
    ) -> Any:
        """See `AbstractCapability`. What a tool asks the model to do again counts as what it returned."""
        await self._inference.failed(call.tool_name, str(error) if isinstance(error, ModelRetry) else "error")
        raise error


async def say(inference: Inference, result: AgentRunResult[Any], *others: str | Rendering) -> Verdict:
    """Ask whether the run's output may be said. What the model's provider ran itself counts as a tool, too.

    Raises `TypeError` where the run's output is no text.
    """
    for message in result.new_messages():
        for part in message.parts:
            if isinstance(part, NativeToolReturnPart):
                await inference.returned(part.tool_name, part.content)
    if not isinstance(result.output, str):
        raise TypeError("an output that is said must be a text: make one of it, and ask with `inference.say`")
    return await inference.say(result.output, *others)
