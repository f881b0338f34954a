"""Decides how a program without an event loop asks: the same gate, turn by turn, each call waiting for its answer.

with connect("http://127.0.0.1:8080", token=TOKEN) as gate:
    with gate.turn(room=room, trigger=ref) as turn:
        context = turn.context(history)
        verdict = turn.say(draft(context))
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from turngate.client import gate as asynchronous
from turngate.client import http
from turngate.client.context import Context
from turngate.client.gate import Mode
from turngate.client.turn import Turn

T = TypeVar("T")
P = ParamSpec("P")


class SyncTurn:
    """One turn (`turngate.client.Turn`): each method is called as that one's is, and returns what it comes to."""

    def __init__(self, turn: Turn, portal: BlockingPortal) -> None:
        self._turn = turn
        self._portal = portal
        self.name = turn.name
        self.saw = turn.saw
        self.meta = turn.meta
        self.tool_returned = self._waiting(turn.tool_returned)
        self.remember = self._waiting(turn.remember)
        self.forget = self._waiting(turn.forget)
        self.request_sharing = self._waiting(turn.request_sharing)
        self.say = self._waiting(turn.say)
        self.final = self._waiting(turn.final)

    @overload
    def context(self, candidates: Mapping[str, T]) -> Context[T]: ...  # type: ignore[overload-overlap]
    @overload
    def context(self, candidates: Iterable[str]) -> Context[None]: ...
    def context(self, candidates: Mapping[str, Any] | Iterable[str]) -> Context[Any]:
        """Which candidates a model may be handed."""
        return self._portal.call(self._turn.context, candidates)

    def _waiting(self, function: Callable[P, Awaitable[T]]) -> Callable[P, T]:
        @wraps(function)
        def called(*args: P.args, **more: P.kwargs) -> T:
            return self._portal.call(partial(function, *args, **more))

        return called


class SyncGate:
    """The gate (`turngate.client.Gate`), for any thread."""

    def __init__(self, gate: asynchronous.Gate, portal: BlockingPortal) -> None:
        self._gate = gate
        self._portal = portal

    @contextmanager
    def turn(
        self,
        *,
        room: str,
        trigger: str | None = None,
        thread: str | None = None,
        broadcast: bool = False,
        name: str | None = None,
    ) -> Iterator[SyncTurn]:
        """One turn, for `with`; see `turngate.client.Gate.turn`."""
        turn = self._gate.turn(room=room, trigger=trigger, thread=thread, broadcast=broadcast, name=name)
        with self._portal.wrap_async_context_manager(turn) as opened:
            yield SyncTurn(opened, self._portal)


@contextmanager
def blocking(gate: AbstractAsyncContextManager[asynchronous.Gate]) -> Iterator[SyncGate]:
    """A gate that was made for `async with`, for `with`; its event loop runs in a thread of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(gate) as opened:
        yield SyncGate(opened, portal)


@contextmanager
def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    mode: Mode | str = Mode.ENFORCE,
    patience: float | None = None,
    ssl_context: ssl.SSLContext | None = None,
    plain_http: bool = False,
) -> Iterator[SyncGate]:
    """A gate over HTTP, for `with`; see `turngate.client.connect`."""
    gate = http.connect(url, token=token, mode=mode, patience=patience, ssl_context=ssl_context, plain_http=plain_http)
    with blocking(gate) as opened:
        yield opened
