"""A first guarded agent, and a stand-in for the connector that brings its room in (docs/agents.md).

`TURNGATE_URL` says where the gateway is, `TURNGATE_TOKEN` is the agent's token, `CONNECTOR_TOKEN` the connector's.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping

import httpx2

from turngate.client import Gate, connect

ROOM, ALEX, BO = "slack:T1/C1", "slack:T1/UALEX", "slack:T1/UBO"
ASKED, ELSEWHERE = f"message:{ROOM}/1", "message:slack:T1/D1/1"


async def answer(gate: Gate, room: str, asked: str, history: Mapping[str, str]) -> str | None:
    """What may be said to a message; None: nothing."""
    async with gate.turn(room=room, trigger=asked) as turn:
        context = await turn.context(history)  # what this room may hear, and nothing else
        text = f"You asked: {' '.join(context.values())}"  # here a model makes its answer
        verdict = await turn.say(text)
        return verdict.text


async def connector() -> None:
    """What Slack's connector does: who reads the room, and what is said there."""
    now = int(time.time() * 1000)
    listing = {"room": ROOM, "refresh": f"l{now}", "page": 0, "last": True, "at": now, "started_at": now}
    members = [{"reader": reader, "kind": "member"} for reader in (ALEX, BO)]
    listing |= {"info": {"kind": "channel", "visibility": "members"}, "members": members}
    said = {"room": ROOM, "message": f"{ROOM}/1", "at": now, "author": ALEX, "author_kind": "person", "text": "hello?"}
    async with httpx2.AsyncClient(
        base_url=os.environ["TURNGATE_URL"],
        headers={"Authorization": f"Bearer {os.environ['CONNECTOR_TOKEN']}"},
        transport=httpx2.AsyncHTTPTransport(retries=6),  # the gateway may still be starting
    ) as http:
        for path, body in (("/v1/listings", listing), ("/v1/observations", said)):
            (await http.post(path, json=body)).raise_for_status()


async def main() -> None:
    """Somebody asks something in a room, and the agent answers."""
    await connector()
    async with connect() as gate:
        print(await answer(gate, ROOM, ASKED, {ASKED: "hello?", ELSEWHERE: "something from another room"}))


if __name__ == "__main__":
    asyncio.run(main())
