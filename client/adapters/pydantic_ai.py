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
from pydantic_ai.messages import ModelMessage, ModelResponse, NativeToolReturnPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import ToolDefinition

from turngate.client.inference import Inference
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Rendering


class Guard(AbstractCapability[Any]):
    """Records what each tool of one run returned before the model sees it, and filters what is remembered.

    Also what was brought in for a deferred call. A function that makes the output counts as a tool of its own name.
    """

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._recorded: set[str] = set()

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        """See `AbstractCapability`."""
        self._recorded.add(call.tool_call_id)
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
        self._recorded.add(call.tool_call_id)
        await self._inference.failed(call.tool_name, str(error) if isinstance(error, ModelRetry) else "error")
        raise error

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """See `AbstractCapability`. Results that no tool of this run returned were brought in from elsewhere."""
        output = {tool.name for tool in request_context.model_request_parameters.output_tools}
        for part in _newest(request_context.messages):
            if part.tool_name not in output and part.tool_call_id not in self._recorded:
                part.content = await self._inference.returned(part.tool_name, part.content)
        self._recorded.clear()  # ids are told apart within one response alone
        return request_context

    async def after_output_process(self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any) -> Any:
        """See `AbstractCapability`."""
        if output_context.has_function and not ctx.partial_output:
            tool = output_context.tool_def
            await self._inference.returned(output_context.function_name or (tool.name if tool else "output"), output)
        return output


def _newest(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    """What was returned since the model last answered."""
    found: list[ToolReturnPart] = []
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            break
        found += [part for part in message.parts if isinstance(part, ToolReturnPart)]
    return found


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
