"""A turn that holds or asks is followed over server-sent events, or asked for again, until it is decided."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tests.gateway.conftest import (
    ALEX,
    AT_ONCE,
    ROOM,
    TRIGGER,
    Keyring,
    Running,
    begin,
    day,
    draft,
    embedded,
    gateway_on,
    listing,
)
from turngate.gateway.book import Book
from turngate.gateway.tokens import Scope
from turngate.schemas.inputs import ProofRevoked, TurnDrafted

FAR = "slack:T1/C7"
ASKING: dict[str, Any] = {
    "operations": {"crm.refund": {"access": "write", "audience": "internal"}},
    "skills": {
        "refund": {
            "operation": "crm.refund",
            "params": {"amount": {"type": "price", "set_by": ["llm"]}},
            "approval": "required",
        }
    },
}
REFUND = {"operation": "crm.refund", "skill": "refund", "params": [{"name": "amount", "value": "5"}]}


async def events(client: httpx2.AsyncClient, place: str, seen: asyncio.Event) -> list[tuple[str, Any]]:
    """Every event of a stream, to its end."""
    found, name = [], ""
    async with client.stream("GET", place, headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
                seen.set()
    return found


async def test_a_held_turn_is_told_as_it_goes_on(running: Running) -> None:
    agent, seen = running.agent(), asyncio.Event()
    held = await agent.post("/v1/drafts", params=AT_ONCE, json=draft(room=FAR))
    assert (held.status_code, held.json()["decided"]["verdict"]) == (202, "hold")
    following = asyncio.create_task(events(agent, held.json()["place"], seen))
    waiting = asyncio.create_task(agent.get(held.json()["place"]))
    await seen.wait()
    assert not waiting.done()
    await running.feed.append([listing(room=FAR)])
    told = await following
    assert [(name, event["verdict"]) for name, event in told] == [("TurnDecided", "hold"), ("TurnDecided", "deliver")]
    assert (await waiting).json() == told[-1][1]
    assert await events(agent, held.json()["place"], seen) == told  # it was all over before
    assert (await agent.post("/v1/drafts", json=draft(room=FAR))).json() == told[-1][1]


async def test_a_turn_that_asks_says_so_at_once_and_goes_out_when_somebody_says_yes(
    log_file: Any, keyring: Keyring
) -> None:
    async with embedded(log_file) as feed, gateway_on(feed, keyring) as running:
        await begin(feed, day(**ASKING))
        agent, connector = running.agent(), running.client(keyring.make(Scope.CONNECTOR, namespaces=["slack:T1"]))
        asks = await agent.post("/v1/drafts", json=draft(action=REFUND))
        assert (asks.status_code, asks.json()["status"]) == (202, "ask")
        approval = {"approval": "a1", "fingerprint": "0" * 64, "by": ALEX, "room": ROOM}
        assert (await connector.post("/v1/approvals", json=approval)).status_code == 200
        assert (await agent.get(asks.json()["place"], params=AT_ONCE)).json()["status"] == "ask"
        approval |= {"approval": "a2", "fingerprint": asks.json()["decided"]["fingerprint"]}
        waiting = asyncio.create_task(agent.get(asks.json()["place"]))
        assert (await connector.post("/v1/approvals", json=approval)).status_code == 200
        answer = await waiting
        assert (answer.status_code, answer.json()["verdict"]) == (200, "deliver")


async def test_whoever_hangs_up_makes_no_second_turn(running: Running) -> None:
    agent = running.agent()
    asked = asyncio.create_task(agent.post("/v1/drafts", json=draft(room=FAR)))
    async for _ in running.feed.follow("turn-drafts", 0):
        break  # it is on the log
    asked.cancel()
    await running.feed.append([listing(room=FAR)])
    assert (await agent.post("/v1/drafts", json=draft(room=FAR))).json()["verdict"] == "deliver"


def test_a_book_keeps_so_much_and_no_longer() -> None:
    now = 0.0
    book = Book(keep=10, clock=lambda: now, most=3)
    for number in range(5):
        book.learn(ProofRevoked(tenant="acme", at=0, proof=str(number)))
    assert len(book) == 3
    now = 100.0
    book.learn(ProofRevoked(tenant="acme", at=0, proof="6"))
    assert len(book) == 2
    book.learn(TurnDrafted(tenant="acme", at=0, agent="mesh", turn="t1", room=ROOM, trigger=TRIGGER))
    assert len(book) == 2


@pytest.mark.parametrize("wait", ["-1", "x", "nan"])
async def test_a_wait_that_is_none_is_refused(running: Running, wait: str) -> None:
    answer = await running.agent().post("/v1/drafts", params={"wait": wait}, json=draft())
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.wait")
