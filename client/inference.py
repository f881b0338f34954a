"""Decides how one run of a model goes through a turn, whichever framework that is: what it sees and says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Self

from turngate.client.context import Context
from turngate.client.turn import Turn
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Rendering, ValueField

#: The classified values in what a tool returned, by the tool's name and its result.
Classify = Callable[[str, Any], Iterable[ValueField]]


def _none(tool: str, result: Any) -> Iterable[ValueField]:
    return ()


class Inference:
    """One run of a model, for one set of readers. Made by `begin`; an adapter hooks it into a framework.

    `context` is what the model may be handed before anything else.
    """

    def __init__(
        self, turn: Turn, context: Context[Any], servers: Mapping[str, str], memories: Collection[str], fields: Classify
    ) -> None:
        self.context = context
        self._turn = turn
        self._servers = servers
        self._memories = memories
        self._fields = fields

    @classmethod
    async def begin(
        cls,
        turn: Turn,
        candidates: Mapping[str, Any] | Iterable[str] = (),
        *,
        servers: Mapping[str, str] | None = None,
        memories: Collection[str] = (),
        fields: Classify = _none,
    ) -> Self:
        """Ask what this run may be handed of the candidates.

        `servers`: the policy's name of each tool's server, by the tool's name; a tool that it lacks is a server of its
        own name. `memories`: tools that return what is remembered, as a mapping by ref: of it, the model sees what the
        room may hear. `fields`: the classified values in a result.
        """
        return cls(turn, await turn.context(candidates), servers or {}, memories, fields)

    async def returned(self, tool: str, result: Any) -> Any:
        """A tool has returned something: what the model may see of it, once it is recorded."""
        if tool in self._memories and isinstance(result, Mapping):
            return await self.recalled(result)
        await self._record(tool, fields=self._fields(tool, result))
        return result

    async def failed(self, tool: str, error: str = "error") -> None:
        """A tool has failed, and the model sees something of that, which is foreign (R-TNT-2)."""
        await self._record(tool, error=error)

    async def recalled(self, memories: Mapping[str, Any]) -> dict[str, Any]:
        """What the model may see of memories, by ref."""
        permitted = await self._turn.context(memories)
        self.context.saw(*permitted, *permitted.seen)
        return dict(permitted)

    async def say(self, text: str, *others: str | Rendering) -> Verdict:
        """Ask whether what this run came to may be said, or else one of the others (`Turn.say`)."""
        return await self._turn.say(self.context.rendering(text), *others)

    async def _record(self, tool: str, *, fields: Iterable[ValueField] = (), error: str | None = None) -> None:
        server = self._servers.get(tool, tool)
        await self._turn.tool_returned(server, tool, fields=fields, context=self.context, error=error)
