"""Decides how a run of a LangGraph graph goes through a turn: its tools and its store, and a verdict on its answer.

    graph = build(tools=guarded_tools([search, read]), store=GuardedStore(store))    # once

    inference = await Inference.begin(turn, history)
    state = await graph.ainvoke({"messages": prompt(inference.context)}, config(inference))
    verdict = await say(inference, state["messages"])

A checkpointer hands the model what nobody has asked the gate for: give `history` instead, with its refs. Needs the
extra `langgraph`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NoReturn

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore, GetOp, Item, Op, Result, SearchOp
from langgraph.types import Command

from turngate.client.inference import Inference
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Rendering

_NAME = "turngate"


def config(inference: Inference) -> RunnableConfig:
    """The configuration of a run that belongs to this inference."""
    return {"configurable": {_NAME: inference}}


def _inference() -> Inference:
    found = get_config().get("configurable", {}).get(_NAME)
    if not isinstance(found, Inference):
        raise RuntimeError("this run belongs to no turn: invoke the graph with `config(inference)`")
    return found


def guarded_tools(tools: Sequence[BaseTool | Callable[..., Any]], **more: Any) -> ToolNode:
    """A `ToolNode` whose results are recorded before the model sees them; `more` is passed on. For `ainvoke` alone."""

    async def recorded(
        request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        inference, tool = _inference(), request.tool_call["name"]
        try:
            answer = await execute(request)
        except Exception:
            await inference.failed(tool)
            raise
        if isinstance(answer, ToolMessage) and answer.status == "error":
            await inference.failed(tool)
        elif isinstance(answer, ToolMessage):
            result = _parsed(answer.content)
            seen = await inference.returned(tool, result)
            if seen is not result:
                return answer.model_copy(update={"content": json.dumps(seen, ensure_ascii=False)})
        else:
            await inference.returned(tool, None)
        return answer

    return ToolNode(tools, wrap_tool_call=_not_awaited, awrap_tool_call=recorded, **more)


def _not_awaited(request: ToolCallRequest, execute: Callable[..., Any]) -> NoReturn:
    raise RuntimeError("the gate is asked asynchronously: run the graph with `ainvoke` or `astream`")


def _parsed(content: Any) -> Any:
    """What the tool returned, as far as that is JSON."""
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content


class GuardedStore(BaseStore):
    """A store of which a run sees what its room may hear. `ref` says what an item is evidence of.

    By default an item's key is a revision that `Turn.remember` returned. Namespaces are not filtered.
    """

    def __init__(self, store: BaseStore, ref: Callable[[Item], str] = lambda item: f"revision:{item.key}") -> None:
        self._store = store
        self._ref = ref

    def batch(self, ops: Iterable[Op]) -> NoReturn:
        """Nothing is read without asking the gate, which takes an `await`. Raises `RuntimeError`."""
        raise RuntimeError("the gate is asked asynchronously: use the store's `aget` and `asearch`")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See `BaseStore`."""
        asked = list(ops)
        results = await self._store.abatch(asked)
        refs = {self._ref(item): item for result in results for item in _items(result)}
        seen = await _inference().recalled(refs) if refs else {}
        return [
            self._of(result, seen) if isinstance(op, GetOp | SearchOp) else result
            for op, result in zip(asked, results, strict=True)
        ]

    def _of(self, result: Result, seen: dict[str, Any]) -> Any:
        shown = [item for item in _items(result) if self._ref(item) in seen]
        return shown if isinstance(result, list) else next(iter(shown), None)


def _items(result: Result) -> list[Item]:
    return [item for item in (result if isinstance(result, list) else [result]) if isinstance(item, Item)]


async def say(inference: Inference, messages: Sequence[AnyMessage], *others: str | Rendering) -> Verdict:
    """Ask whether the last message may be said. What the model's provider ran itself counts as a tool, too.

    Raises `TypeError` where the last message is no text of the model's.
    """
    for message in messages:
        blocks = message.content_blocks if isinstance(message, AIMessage) else []
        for block in blocks:
            if block["type"] == "server_tool_call":
                await inference.returned(str(block.get("name")), None)
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage) or not last.text:
        raise TypeError("a run that is said ends with a text of the model's")
    return await inference.say(str(last.text), *others)
