"""`turngate up`, killed at random moments while a thousand agents ask: nothing acknowledged is lost, nothing is let out
twice, and everybody who sends the same request again gets the verdict of it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from tests.gateway.conftest import Keyring, embedded, on_log
from tests.gateway.crowd import Crowd, unlimited
from tests.gateway.processes import running
from tests.jvm import free_port
from turngate.schemas.inputs import ToolReturned
from turngate.schemas.outputs import TurnAuthorized


async def test_killed_under_load_it_loses_nothing_acknowledged(
    log_file: Path, keyring: Keyring, tmp_path: Path
) -> None:
    crowd, chance, place = Crowd(keyring, 1000), random.Random(8), f"127.0.0.1:{free_port()}"
    async with embedded(log_file) as feed:
        await feed.append(crowd.day())
    answers: dict[str, dict[str, Any]] = {}

    async def ask(agent: str) -> None:
        await crowd.report(f"http://{place}", agent, session)
        answers[agent] = await crowd.speak(f"http://{place}", agent, session)

    async with unlimited() as session:
        asking = asyncio.gather(*(ask(agent) for agent in crowd.agents))
        for moment in sorted(chance.sample(range(1, 900), 3)):
            with running(tmp_path, "up", "--gateway", place, "--tokens-file", keyring.path, "--log", log_file):
                while len(answers) < moment:
                    assert not asking.done()
                    await asyncio.sleep(0.001)
        with running(tmp_path, "up", "--gateway", place, "--tokens-file", keyring.path, "--log", log_file) as (up, _):
            await asking
            up.stop()
    crowd.check(answers)
    async with embedded(log_file) as feed:
        results = [r.call for r in await on_log(feed, "tool-results") if isinstance(r, ToolReturned)]
        assert set(results) == {f"call-of-{agent}" for agent in crowd.agents}
        let_out = [r.turn for r in await on_log(feed, "outbound") if isinstance(r, TurnAuthorized)]
    assert sorted(let_out) == sorted(f"turn-of-{agent}" for agent in crowd.agents if not crowd.refused(agent))
