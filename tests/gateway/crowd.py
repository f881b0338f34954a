"""Decides what a thousand agents ask at once: each its own turn, every third one of which may not be said."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from tests.gateway.conftest import ROOM, Keyring, draft, listing, message
from turngate.gateway.token_file import write_tokens
from turngate.gateway.tokens import Scope, Token, fresh
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.streams.clock import now_ms

#: Seconds until a request that came to nothing is sent again.
_AGAIN = 0.3


class Crowd:
    """Agents of one tenant, each with a token of its own."""

    def __init__(self, keyring: Keyring, count: int) -> None:
        self.agents = [f"agent-{number}" for number in range(count)]
        made = [(agent, *fresh()) for agent in self.agents]
        scopes = frozenset({Scope.AGENT})
        kept = [Token(i, "acme", agent, scopes, frozenset(), digest, now_ms()) for agent, i, _, digest in made]
        write_tokens(keyring.path, kept)
        self._tokens = {agent: shown for agent, _, shown, _ in made}

    def day(self) -> list[Record]:
        """Each agent is alone with Alex in the same room, and has heard what Alex said."""
        accounts = {agent: {"accounts": [f"slack:T1/U{agent}"]} for agent in self.agents}
        document = json.dumps({"version": 1, "agents": accounts, "freshness": {"destination": "10m"}})
        made: list[Record] = [inputs.PolicyPublished(tenant="acme", at=now_ms(), version="1", document=document)]
        for agent in self.agents:
            made += [listing(agent=agent), message(agent=agent)]
        return made

    async def speak(self, url: str, agent: str, session: aiohttp.ClientSession) -> dict[str, Any]:
        """Draft this agent's turn until that is answered, and read the answer to its end."""
        body = draft(f"turn-of-{agent}", f"{agent} says hello")
        if self.refused(agent):
            body["renderings"] = []
        return await self._answered(f"{url}/v1/drafts", body, agent, session)

    async def report(self, url: str, agent: str, session: aiohttp.ClientSession) -> None:
        """Report what a tool returned outside any turn, until that is acknowledged."""
        body = {"room": ROOM, "call": f"call-of-{agent}", "server": "wiki", "operation": "read"}
        await self._answered(f"{url}/v1/tool-results", body, agent, session)

    async def _answered(
        self, url: str, body: dict[str, Any], agent: str, session: aiohttp.ClientSession
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._tokens[agent]}"}
        while True:
            try:
                async with session.post(url, json=body, headers=headers) as answer:
                    if answer.status == 200:
                        found: dict[str, Any] = await answer.json()
                        return found
                    assert answer.status in (202, 503), await answer.text()
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(_AGAIN)  # it was killed: the same request again

    def refused(self, agent: str) -> bool:
        """Whether what an agent asks may not be said."""
        return self.agents.index(agent) % 3 == 2

    def check(self, answers: dict[str, dict[str, Any]]) -> None:
        """Every agent has the verdict of its own turn."""
        assert answers.keys() == set(self.agents)
        for agent, answer in answers.items():
            codes = [reason["code"] for reason in answer["reasons"]]
            expected = ("drop", ["no_rendering"]) if self.refused(agent) else ("deliver", [])
            assert (answer["turn"], answer["verdict"], codes) == (f"turn-of-{agent}", *expected), answer


def unlimited() -> aiohttp.ClientSession:
    """A client that opens as many connections as there are requests."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=60))
