"""Two hundred rooms and a thousand turns while everything fails: nothing twice, nothing to a stranger, nothing lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.kafka.cluster import until
from tests.sinks.records import authorized
from tests.sinks.stage import BOTH, Stage, once
from tests.slack import Call, Fault, Slack
from turngate.sinks.delivery import Patience, now_ms

ROOMS, TURNS = 200, 1_000
#: Seconds for which a listing may serve (`freshness.delivery`).
FRESH = 5.0
PATIENCE = Patience(looks=(), claims=0.05, retry=0.02, sending=0.01)
#: Of what Slack is asked, this share goes wrong in one way or another.
SHARE = 0.04
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a file system: each turn is several commits, and no machine is switched off."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as made:
        yield Path(made)


async def test_a_thousand_turns_under_every_fault(folder: Path) -> None:
    chance = random.Random(6)
    with Slack() as slack:
        stage = Stage(folder / "log", slack)
        slack.retry_after = 0.05
        rooms = [
            slack.channel(f"R{number}", stage.acme, ["UBOT", "UALEX", "UKIM"], private=True) for number in range(ROOMS)
        ]
        joined: dict[str, float] = {}
        seen: list[tuple[str, float]] = []

        def fault(call: Call) -> Fault | None:
            if call.method == "conversations.info" and chance.random() < 0.004:
                room = slack.rooms[call.args["channel"]]
                if room.id not in joined:
                    joined[room.id] = time.monotonic()
                    slack.join(room, "UEVE", told=False)
            return chance.choice(list(Fault)) if chance.random() < SHARE else None

        def before_post(call: Call) -> None:
            if call.args["channel"] in joined:
                seen.append((call.args["channel"], time.monotonic()))

        at = now_ms()
        fields = {"destination": BOTH, "at": at, "valid_until": at + 600_000}
        turns = {f"t{n}": rooms[chance.randrange(ROOMS)].id for n in range(TURNS)}
        stage.write(*(authorized(turn=t, text=t, room=f"slack:T1/{room}", **fields) for t, room in turns.items()))
        for room in rooms[:10]:  # Eve is there before anything is sent
            joined[room.id] = 0.0
            slack.join(room, "UEVE", told=False)
        slack.faults, slack.before["chat.postMessage"] = fault, before_post
        for part in range(1, 5):  # whatever is under way is broken off, and taken up again

            async def far_enough(target: int = part * TURNS // 5) -> bool:
                return stage.log.end("deliveries", 0) >= target

            async with stage.delivery(patience=PATIENCE, call=1) as running:
                looking = asyncio.create_task(running.look())
                await until(far_enough, 60)
                looking.cancel()
            stage.restarted()
        slack.faults = lambda call: None

        async def all_found() -> bool:
            sent = {turn for turn, outcome in stage.outcomes().items() if outcome == ("sent",)}
            return sent == set(stage.said())

        async with stage.delivery(patience=replace(PATIENCE, looks=(0.1, 1, 5)), call=2) as running:
            await running.look()
            await running.finish()
            await until(all_found)
        outcomes = {turn: outcome[0] for turn, outcome in stage.outcomes().items()}
        said = set(stage.said())
        stage.log.close()

    assert once(stage.said())
    assert outcomes.keys() == turns.keys()  # each has a final record
    assert {turn for turn, status in outcomes.items() if status == "sent"} == said
    assert {turn for turn, status in outcomes.items() if status in ("withheld", "failed")}.isdisjoint(said)
    heard = {room for room, when in seen if when - joined[room] >= FRESH}
    assert heard == set()  # nobody but who came after the listing has read a turn
    assert all(outcomes[turn] != "sent" for turn, room in turns.items() if room in {r.id for r in rooms[:10]})
    counts = Counter(outcomes.values())
    assert counts["sent"] > 0.7 * TURNS, counts
    assert counts["uncertain"] < 0.1 * TURNS, counts
