"""Decides how a program without an event loop asks: the same gate, turn by turn, each call waiting for its answer.

with connect("http://127.0.0.1:8080", token=TOKEN) as gate:
    with gate.turn(room=room, trigger=ref) as turn:
        context = turn.context(history)
        verdict = turn.say(draft(context))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from turngate.client import gate as asynchronous
from turngate.client import http
from turngate.client.context import Context
from turngate.client.memories import Remembered
from turngate.client.turn import Turn
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Audience, Reason, Rendering

T = TypeVar("T")
P = ParamSpec("P")


class SyncTurn:
    """One turn (`turngate.client.Turn`); its methods return what those return when awaited."""

    def __init__(self, turn: Turn, portal: BlockingPortal) -> None:
        self._turn = turn
        self._portal = portal
        self.name = turn.name
        self.saw = turn.saw
        self.meta = turn.meta

    @overload
    def context(self, candidates: Mapping[str, T]) -> Context[T]: ...  # type: ignore[overload-overlap]
    @overload
    def context(self, candidates: Iterable[str]) -> Context[None]: ...
    def context(self, candidates: Mapping[str, Any] | Iterable[str]) -> Context[Any]:
        """Which candidates a model may be handed."""
        return self._call(self._turn.context, candidates)

    def tool_returned(self, server: str, operation: str, **more: Any) -> str:
        """Record what a tool returned, before a model sees it."""
        return self._call(self._turn.tool_returned, server, operation, **more)

    def remember(self, text: str, **more: Any) -> Remembered:
        """Write a memory."""
        return self._call(self._turn.remember, text, **more)

    def forget(self, memory: str, revision: str, **more: Any) -> Remembered:
        """End a memory's current revision."""
        return self._call(self._turn.forget, memory, revision, **more)

    def request_sharing(self, revision: str, audience: Audience) -> tuple[Reason, ...] | None:
        """Ask whether a memory may be shared."""
        return self._call(self._turn.request_sharing, revision, audience)

    def say(self, *renderings: str | Rendering, **more: Any) -> Verdict:
        """Ask whether one of these may be said."""
        return self._call(self._turn.say, *renderings, **more)

    def final(self, *, patience: float | None = None) -> Verdict:
        """What became of the turn in the end."""
        return self._call(self._turn.final, patience=patience)

    def _call(self, function: Callable[P, Awaitable[T]], *args: P.args, **more: P.kwargs) -> T:
        return self._portal.call(partial(function, *args, **more))


class SyncGate:
    """The gate (`turngate.client.Gate`), for any thread."""

    def __init__(self, gate: asynchronous.Gate, portal: BlockingPortal) -> None:
        self._gate = gate
        self._portal = portal

    @contextmanager
    def turn(self, *, room: str, **more: Any) -> Iterator[SyncTurn]:
        """One turn, for `with`."""
        with self._portal.wrap_async_context_manager(self._gate.turn(room=room, **more)) as turn:
            yield SyncTurn(turn, self._portal)


@contextmanager
def blocking(gate: AbstractAsyncContextManager[asynchronous.Gate]) -> Iterator[SyncGate]:
    """A gate that was made for `async with`, for `with`; its event loop runs in a thread of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(gate) as opened:
        yield SyncGate(opened, portal)


@contextmanager
def connect(url: str | None = None, *, token: str | None = None, **more: Any) -> Iterator[SyncGate]:
    """A gate over HTTP (`turngate.client.connect`), for `with`."""
    with blocking(http.connect(url, token=token, **more)) as gate:
        yield gate
