"""Decides which requests are let in: with a live token, of the right scope, and not too many of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.routing import APIRoute
from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter

from turngate.gateway.asking import Asking
from turngate.gateway.bodies import read_json
from turngate.gateway.policies import Policies
from turngate.gateway.problems import Problem
from turngate.gateway.refreshes import Refreshes
from turngate.gateway.stops import Stops
from turngate.gateway.tokens import Scope, Token, Tokens, TokensUnavailable, presented
from turngate.streams.clock import now_ms

Wait = Annotated[float | None, Query(ge=0, description="Seconds to wait for an answer, at most.")]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, and one token, may ask for at most."""

    #: Bytes of a body, and seconds in which it must have come.
    body: int = 1 << 20
    body_patience: float = 10.0
    #: Refs of one context request.
    candidates: int = 1_000
    #: Requests of one token in a second.
    rate: int = 200
    #: Seconds for which an answer is waited for, unless the request says less, and the most that it may say.
    wait: float = 20.0
    longest_wait: float = 60.0
    #: Seconds by which a gateway's knowledge of the log may be behind another's.
    behind: float = 2.0
    #: Seconds after which an event stream without events says that it is alive.
    pulse: float = 15.0


@dataclass(slots=True)
class Gate:
    """All that a request needs of the gateway."""

    asking: Asking
    tokens: Tokens
    limits: Limits = field(default_factory=Limits)
    refreshes: Refreshes = field(default_factory=Refreshes)
    policies: Policies = field(default_factory=Policies)
    stops: Stops = field(default_factory=Stops)
    _limiter: FixedWindowRateLimiter = field(init=False, repr=False)
    _rate: RateLimitItemPerSecond = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._limiter = FixedWindowRateLimiter(MemoryStorage())
        self._rate = RateLimitItemPerSecond(self.limits.rate)

    def patience(self, wait: float | None) -> float:
        """Seconds for which an answer is waited for, where a request asked for so many."""
        return self.limits.wait if wait is None else min(wait, self.limits.longest_wait)

    def token_of(self, request: Request) -> Token:
        """The live token of a request. Raises `Problem`, the same whatever is wrong with it."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            token = presented(self.tokens, text.strip(), now_ms()) if kind.lower() == "bearer" else None
        except TokensUnavailable:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "it cannot be looked up now who has a token: send the same request again",
                headers={"Retry-After": "1"},
            ) from None
        if token is None:
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "send a live token, as Authorization: Bearer tg_…; `turngate token create` makes one",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return token

    async def count(self, token: Token) -> None:
        """Count a request. Raises `Problem` where the token has made too many in this second."""
        if not await self._limiter.hit(self._rate, token.id):
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"a token may make {self.limits.rate} requests in a second",
                headers={"Retry-After": "1"},
            )


def gate_of(request: Request) -> Gate:
    """The gateway that a request came to."""
    gate: Gate = request.app.state.gate
    return gate


class Guarded(APIRoute):
    """A route that looks at the token before anything else, and at the body only then."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """See `APIRoute`."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            gate = gate_of(request)
            request.state.token = gate.token_of(request)
            await gate.count(request.state.token)
            return await handler(request)

        return guarded


def scoped(scope: Scope) -> Callable[[Request], Awaitable[Token]]:
    """A dependency: the request's token, which must have this scope."""

    async def token_with(request: Request) -> Token:  # or it would run in a thread
        token: Token = request.state.token
        if scope not in token.scopes:
            raise Problem(HTTPStatus.FORBIDDEN, f"this needs a token of the scope {scope}")
        return token

    return token_with


async def fields_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request's body. Raises `Problem` where that is none, or too large, or too slow."""
    limits = gate_of(request).limits
    return await read_json(request, limits.body, limits.body_patience)
