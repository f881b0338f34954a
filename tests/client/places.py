"""What the client's suite asks of a place: whatever happens there, and a gate to it. One for each way to a gate."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from turngate.client import Gate
from turngate.client.testing import Sent, Workplace
from turngate.client.verdict import Verdict
from turngate.schemas.catalog import RECORDS
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import TurnAuthorized, TurnDecided
from turngate.streams.feed import Feed

ALEX, BO = "slack:T1/UALEX", "slack:T1/UBO"
DIRECT, GENERAL, NOWHERE = "slack:T1/D1", "slack:T1/C1", "slack:T1/C9"
AGENTS = {"mesh": {"accounts": ["slack:T1/UMESH"]}, "scout": {"accounts": ["slack:T1/USCOUT"]}}
POLICY: dict[str, Any] = {
    "stale": {"hold": "1s"},
    "tools": {
        "wiki": {"adapter": "mcp", "audience": {"readers": [ALEX, BO]}},
        "diary": {"adapter": "mcp", "audience": {"readers": [ALEX]}},
        "web": {"adapter": "mcp", "audience": "public", "untrusted": True},
    },
    "interlock": {"mode": "ask"},
}


class Place(Protocol):
    """One tenant, in which `mesh` and `scout` are agents, under `POLICY`."""

    def gate(self, agent: str = "mesh", **more: Any) -> AbstractAsyncContextManager[Gate]:
        """The way to the gate."""

    async def put(self, record: str, **fields: Any) -> None:
        """A record of a connector or an operator; `tenant` and `at` are filled in."""

    async def publish(self, policy: dict[str, Any]) -> None:
        """The tenant's policy."""

    async def records(self, topic: str) -> list[Record]:
        """The tenant's records on a topic."""

    def now(self) -> int:
        """Milliseconds."""


class InProcessPlace:
    """A workplace."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    @asynccontextmanager
    async def gate(self, agent: str = "mesh", **more: Any) -> AsyncIterator[Gate]:
        yield self._workplace.gate(agent, **more)

    async def put(self, record: str, **fields: Any) -> None:
        self._workplace.put(record, **fields)

    async def publish(self, policy: dict[str, Any]) -> None:
        self._workplace.publish(policy)

    async def records(self, topic: str) -> list[Record]:
        return self._workplace.on(topic)

    def now(self) -> int:
        return self._workplace.now()


class LivePlace:
    """A log that somebody decides on, in real time."""

    def __init__(self, feed: Feed, tenant: str) -> None:
        self.feed = feed
        self.tenant = tenant

    def gate(self, agent: str = "mesh", **more: Any) -> AbstractAsyncContextManager[Gate]:
        raise NotImplementedError

    async def put(self, record: str, **fields: Any) -> None:
        made = RECORDS[record].model_validate({"tenant": self.tenant, "at": self.now(), **fields})
        await self.feed.append([made])

    async def publish(self, policy: dict[str, Any]) -> None:
        document = json.dumps({"version": 1, "agents": AGENTS, **policy})
        await self.put("PolicyPublished", version="1", document=document)

    async def records(self, topic: str) -> list[Record]:
        found = [record async for record in self.feed.follow(topic, 0, forever=False)]
        return [record for record in found if record.tenant == self.tenant]

    def now(self) -> int:
        return time.time_ns() // 1_000_000


class Office:
    """What happens at a place: two rooms, Alex alone in one, Alex and Bo in the other."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.gate = place.gate
        self._number = 0

    async def open(self) -> None:
        await self.place.publish(POLICY)
        await self.listed(DIRECT, ALEX, kind="direct")
        await self.listed(GENERAL, ALEX, BO)

    async def listed(self, room: str, *readers: str, kind: str = "channel", agents: Iterable[str] = AGENTS) -> None:
        info = {"kind": kind, "visibility": "members"}
        for agent in agents:
            self._number += 1
            listing = {"refresh": f"l{self._number}", "page": 0, "last": True, "started_at": self.place.now()}
            members = [{"reader": reader, "kind": "member"} for reader in readers]
            await self.place.put("MembershipPage", agent=agent, room=room, info=info, members=members, **listing)

    async def said(self, room: str, text: str, by: str = ALEX, agents: Iterable[str] = AGENTS) -> str:
        self._number += 1
        message = f"{room}/{self._number}"
        seen = {"room": room, "message": message, "author": by, "author_kind": "person", "text": text}
        for agent in agents:
            await self.place.put("MessageObserved", agent=agent, **seen)
        return f"message:{message}"

    async def approve(self, verdict: Verdict, room: str, by: str = BO) -> None:
        self._number += 1
        approval = {"approval": f"a{self._number}", "fingerprint": verdict.fingerprint, "by": by, "room": room}
        await self.place.put("ActionApproved", **approval)

    async def sent(self) -> list[Sent]:
        """What was authorized, in order."""
        found = await self.place.records("outbound")
        return [Sent(r.turn, r.agent, r.room, r.text, r.action) for r in found if isinstance(r, TurnAuthorized)]

    async def decided(self, turn: str) -> list[str]:
        """The verdicts of a turn, in order."""
        found = await self.place.records("turn-verdicts")
        return [r.verdict.value for r in found if isinstance(r, TurnDecided) and r.turn == turn]

    async def until_held(self, turn: str) -> None:
        """Until a draft waits for its room."""
        while await self.decided(turn) != ["hold"]:  # noqa: ASYNC110  # somebody else decides
            await asyncio.sleep(0)
