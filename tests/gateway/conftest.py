"""Decides how the tests run a gateway: a real server on an embedded log, in this process, asked over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from turngate.gateway.guard import Limits
from turngate.gateway.service import Gateway
from turngate.gateway.token_file import TokenFile, write_tokens
from turngate.gateway.tokens import Scope, Token, fresh
from turngate.processors.keys import TEST_KEYS
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.streams.clock import now_ms
from turngate.streams.feed import Feed
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog

ROOM, ALEX = "slack:T1/D1", "slack:T1/UALEX"
TRIGGER = f"message:{ROOM}/1"
#: Waits for nothing.
AT_ONCE = {"wait": 0}
AGENTS: dict[str, Any] = {
    "mesh": {"accounts": ["slack:T1/UBOT"]},
    "scout": {"accounts": ["slack:T1/USCOUT"]},
}


class Keyring:
    """A file of tokens, and the tokens themselves."""

    def __init__(self, path: Path) -> None:
        self.path = path
        write_tokens(path, [])

    def make(
        self,
        *scopes: Scope,
        tenant: str = "acme",
        agent: str | None = "mesh",
        namespaces: Iterable[str] = (),
        **more: Any,
    ) -> str:
        """A token as whoever has it sends it."""
        token_id, shown, digest = fresh()
        made = Token(token_id, tenant, agent, frozenset(scopes), frozenset(namespaces), digest, now_ms(), **more)
        TokenFile(self.path).add(made)
        return shown

    def revoke(self, shown: str) -> None:
        """Revoke one."""
        assert TokenFile(self.path).revoke(shown.split("_")[1], now_ms())


class Running:
    """A gateway that answers, and who asks it."""

    def __init__(self, gateway: Gateway, keyring: Keyring, feed: Feed) -> None:
        self.gateway = gateway
        self.keyring = keyring
        self.feed = feed
        self.url = f"http://{gateway.place}"
        self._clients: list[httpx2.AsyncClient] = []

    def client(self, token: str | None) -> httpx2.AsyncClient:
        """Whoever sends this token."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        made = httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=30)
        self._clients.append(made)
        return made

    def agent(self, agent: str = "mesh", tenant: str = "acme") -> httpx2.AsyncClient:
        """The runtime of an agent, with a token of its own."""
        return self.client(self.keyring.make(Scope.AGENT, tenant=tenant, agent=agent))

    async def close(self) -> None:
        """Hang up."""
        for client in self._clients:
            await client.aclose()


@asynccontextmanager
async def gateway_on(feed: Feed, keyring: Keyring, limits: Limits | None = None) -> AsyncIterator[Running]:
    """A gateway on this log until the end of the block."""
    made = Gateway(feed, TokenFile(keyring.path), ("127.0.0.1", 0), limits)
    running = Running(made, keyring, feed)
    task = asyncio.create_task(made.run())
    try:
        async with httpx2.AsyncClient() as asking:
            while (await asking.get(f"{running.url}/openapi.json")).status_code != 200:
                task.result()
        yield running
    finally:
        await running.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "tokens.json")


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "log"


@asynccontextmanager
async def embedded(path: Path) -> AsyncIterator[LocalFeed]:
    """An embedded log on which the engine is."""
    with LocalLog(path) as log:
        yield LocalFeed(log, TEST_KEYS)


@pytest.fixture
async def running(log_file: Path, keyring: Keyring) -> AsyncIterator[Running]:
    """A gateway on an embedded log, where Alex has said something to the agents of two tenants in a direct room."""
    async with embedded(log_file) as feed, gateway_on(feed, keyring, Limits(behind=0.01)) as made:
        for tenant in ("acme", "globex"):
            await begin(feed, day(tenant))
        yield made


def day(tenant: str = "acme", agents: Sequence[str] = ("mesh", "scout"), **policy: Any) -> list[Record]:
    """A policy, a listing of the direct room for each agent, and a message in it."""
    document = json.dumps({"version": 1, "agents": AGENTS, "freshness": {"destination": "10m"}, **policy})
    made: list[Record] = [inputs.PolicyPublished(tenant=tenant, at=now_ms(), version="1", document=document)]
    for agent in agents:
        made += [listing(tenant, agent), message(tenant, agent)]
    return made


def listing(tenant: str = "acme", agent: str = "mesh", room: str = ROOM, refresh: str = "r1") -> Record:
    at = now_ms() - 1000
    return inputs.MembershipPage.model_validate(
        {"tenant": tenant, "at": at, "agent": agent, "room": room, "refresh": refresh, "page": 0, "last": True,
         "started_at": at, "info": {"kind": "direct", "visibility": "members"},
         "members": [{"reader": ALEX, "kind": "member"}]}
    )  # fmt: skip


def message(tenant: str = "acme", agent: str = "mesh", number: int = 1, room: str = ROOM) -> Record:
    return inputs.MessageObserved.model_validate(
        {"tenant": tenant, "at": now_ms(), "agent": agent, "room": room, "message": f"{room}/{number}",
         "author": ALEX, "author_kind": "person", "text": "good morning"}
    )  # fmt: skip


def draft(turn: str = "t1", text: str = "hello", **more: Any) -> dict[str, Any]:
    """A draft's body."""
    return {"turn": turn, "room": ROOM, "trigger": TRIGGER, "renderings": [{"text": text}]} | more


def request(name: str = "q1", turn: str = "t1", *candidates: str, **more: Any) -> dict[str, Any]:
    """A context request's body."""
    return {"request": name, "turn": turn, "room": ROOM, "trigger": TRIGGER, "candidates": list(candidates)} | more


async def begin(feed: Feed, records: Sequence[Record]) -> None:
    """Append a policy, then listings, then messages: on a broker each topic has an order of its own."""
    for kind in (inputs.PolicyPublished, inputs.MembershipPage, inputs.MessageObserved):
        await feed.append([record for record in records if isinstance(record, kind)])


async def on_log(feed: Feed, topic: str) -> list[Record]:
    """Everything on a topic."""
    return [record async for record in feed.follow(topic, 0, forever=False)]
