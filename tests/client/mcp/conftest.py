"""Decides how the tests put a proxy between a model's host and a shop: real MCP on both sides, and a real gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from tests.cli.conftest import turngate
from tests.client.mcp.shop import calls, shop
from tests.gateway.conftest import ALEX, ROOM, TRIGGER, Keyring, Running, day, embedded, gateway_on, on_log
from turngate.client.acting import META, Acting
from turngate.client.http import transport
from turngate.client.mcp.gateway import Asking
from turngate.client.mcp.proxy import Proxy
from turngate.client.mcp.serving import Upstream, serving
from turngate.gateway.guard import Limits
from turngate.gateway.tokens import Scope
from turngate.schemas.inputs import Record, ToolReturned, TurnDelivered
from turngate.schemas.outputs import DecisionTraced

__all__ = ["turngate"]  # a fixture

_READ = {"set_by": ["read"]}
POLICY: dict[str, Any] = {
    "tools": {
        "shop": {
            "audience": {"readers": [ALEX]},
            "fields": {"$.key": "secret", "$.customer.mail": "personal", "$.invoice": "public"},
            "mask": ["personal"],
            "health": ["$.customer.diagnosis"],
        },
    },
    "operations": {
        **{
            f"shop.{name}": {"access": "read", "audience": "internal"}
            for name in ("read", "story", "picture", "jam", "die")
        },
        **{f"shop.{name}": {"access": "write", "audience": "internal"} for name in ("refund", "hang")},
        "market.read": {"access": "read", "audience": "internal"},
    },
    "skills": {
        "refund": {
            "operation": "shop.refund",
            "params": {"invoice": {"type": "id", **_READ}, "amount": {"type": "price", **_READ}},
        },
        "hang": {"operation": "shop.hang", "params": {"invoice": {"type": "id", **_READ}}},
    },
}
#: What a runtime says of its turn.
TURN = {"room": ROOM, "turn": "t1", "trigger": TRIGGER, "exposed": []}


def text_of(result: CallToolResult) -> str:
    """What a model reads of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


class Desk:
    """A model's host that speaks to a proxy, and the log behind the gateway."""

    def __init__(self, host: Client, running: Running, counted: Path) -> None:
        self.host = host
        self.running = running
        self._counted = counted

    async def call(self, tool: str, turn: dict[str, Any] | None = None, **arguments: Any) -> CallToolResult:
        """A call as a runtime makes it that says which turn it is of."""
        meta: Any = {META: TURN if turn is None else turn}
        return await self.host.call_tool(tool, arguments, meta=meta)

    @property
    def calls(self) -> list[str]:
        """The calls that came to the shop."""
        return calls(self._counted)

    async def on(self, topic: str) -> list[Record]:
        return await on_log(self.running.feed, topic)

    async def results(self) -> list[ToolReturned]:
        return [r for r in await self.on("tool-results") if isinstance(r, ToolReturned)]

    async def deliveries(self) -> list[str]:
        return [r.status.value for r in await self.on("deliveries") if isinstance(r, TurnDelivered)]

    async def undrafted(self) -> list[str | None]:
        """The calls that the audit trail reports."""
        found = [r for r in await self.on("audit") if isinstance(r, DecisionTraced)]
        return [r.call for r in found if r.call is not None]


@asynccontextmanager
async def shop_gateway(folder: Path, limits: Limits | None = None, **policy: Any) -> AsyncIterator[Running]:
    """A gateway on a log on which Alex has written to mesh, under a policy that names the shop."""
    async with embedded(folder / "log") as feed, gateway_on(feed, Keyring(folder / "tokens.json"), limits) as made:
        await feed.append(day("acme", **(POLICY | policy)))
        yield made


def token(running: Running) -> str:
    return running.keyring.make(Scope.AGENT, Scope.EXECUTOR)


@asynccontextmanager
async def proxied(
    running: Running, counted: Path, server: str = "shop", fixed: Acting | None = None, **more: Any
) -> AsyncIterator[Desk]:
    """A host that reaches the shop through a proxy."""
    async with transport(running.url, token=token(running)) as carrier, Client(shop, cache=None) as client:
        upstream = Upstream(client)
        proxy = Proxy(server, Asking(carrier, server, 2.0), upstream, **more)
        async with Client(serving(proxy, upstream, server, fixed), cache=None) as host:
            yield Desk(host, running, counted)


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the shop counts its calls."""
    monkeypatch.setenv("SHOP_CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


@pytest.fixture
async def shopped(tmp_path: Path) -> AsyncIterator[Running]:
    async with shop_gateway(tmp_path) as running:
        yield running


@pytest.fixture
async def desk(shopped: Running, counted: Path) -> AsyncIterator[Desk]:
    """In a task of its own, since pytest ends a fixture in another one than it began it in."""
    ready: asyncio.Future[Desk] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def held() -> None:
        async with proxied(shopped, counted) as made:
            ready.set_result(made)
            await done.wait()

    task = asyncio.create_task(held())
    yield await ready
    done.set()
    await task


def shown(result: CallToolResult) -> Any:
    """The document that a model reads."""
    return json.loads(text_of(result))
