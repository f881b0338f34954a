"""Two hundred rooms and a thousand drafts while everything fails: nothing twice, nothing to a stranger, nothing lost.

Each life is `turngate up --slack` without its command line, and is ended wherever it is. What Slack tells comes out of
order and more than once; a member joins unseen between authorization and sending; every call may fail in every way.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.connectors.slack.conftest import APPS
from tests.connectors.slack.scene import installed
from tests.sinks.chaos import ASKED, AUTHORS, ROOMS, Chaos, Seen, marked, split, unfound
from tests.sinks.engine import ASK_TTL, ASKING, TOOL
from tests.sinks.records import POLICY, made
from tests.sinks.stage import CODEC, once
from tests.slack import Slack
from turngate.cli.slack_parts import How, hearing
from turngate.cli.up import both_ways
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.installations import Installations
from turngate.processors.keys import TEST_KEYS
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.metadata import NOTE, TURN
from turngate.sinks.errands import Patience
from turngate.streams.clock import now_ms
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog

DRAFTS, LIVES = 1_000, 2
#: Seconds for which a listing may serve (`freshness.delivery`).
FRESH = 5.0
PATIENCE = Patience(looks=(0.1, 1, 5), claims=0.05, retry=0.02, sending=0.01)
TERMS: dict[str, Any] = {
    "freshness": {"destination": "10m", "clock_skew": "50ms"},
    "stale": {"hold": "30s"},
    "notice": None,
}
MEMORY = Path("/dev/shm")


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a file system: each turn is several commits, and no machine is switched off."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as made_at:
        yield Path(made_at) / "log"


@asynccontextmanager
async def life(path: Path, chaos: Chaos, ahead: int = 0) -> AsyncIterator[LocalFeed]:
    """One process; at the end of the block everything that it was doing is broken off, wherever it is.

    `ahead`: milliseconds by which the log's clock is.
    """
    before = asyncio.all_tasks()
    with LocalLog(path, clock=now_ms) as log:
        feed = LocalFeed(log, TEST_KEYS, lambda: now_ms() + ahead)
        installations = Installations(APPS[:1], [installed(chaos.home)])
        async with (
            SlackApi(chaos.slack.url, patience=0.5) as api,
            hearing(How(None), feed, api, installations, None) as heard,
        ):
            work = (feed.tick(), *heard, *both_ways(log, feed, api, installations, PATIENCE), chaos.tell())
            running = [asyncio.create_task(one) for one in work]
            try:
                yield feed
            finally:
                assert not any(task.done() for task in running), running
                rest = asyncio.all_tasks() - before
                for task in rest:
                    task.cancel()
                ended = await asyncio.gather(*rest, return_exceptions=True)
                assert not any(isinstance(end, Exception) for end in ended), ended


def drafts(number: range, chaos: Chaos, seen: dict[str, str]) -> list[Record]:
    """Drafts in rooms by chance; the first ask for a yes, and some say what somebody has shared."""
    found: list[Record] = []
    for n in number:
        turn, asking = f"t{n}", n < ASKED
        room = chaos.rooms[n if asking else chaos.chance.randrange(ASKED, ROOMS)].id
        fields = {"agent": "mesh", "room": f"slack:T1/{room}", "turn": turn, "at": now_ms()}
        if asking:
            found.append(made(inputs.ToolReturned, call=f"c{n}", server="mail", operation="list", **fields))
        text = f"see https://x.example/{turn}" if asking else turn
        exposed = [f"revision:m{n % AUTHORS}@1"] if n % 25 == 24 else []
        found.append(
            made(inputs.TurnDrafted, trigger=seen[room], exposed=exposed, renderings=[{"text": text}], **fields)
        )
    return found


async def share(feed: LocalFeed, seen: Seen, chaos: Chaos, own: dict[str, str]) -> None:
    """Each author is offered to share what was made of his words with the workspace, and types the code.

    One whose offer was lost on the way, which is never shown again, knows it all the same.
    """
    for n, room in enumerate(own):
        fields = {"agent": "mesh", "room": f"slack:T1/{room}", "at": now_ms()}
        memory = {"write": f"w{n}", "memory": f"m{n}", "revision": f"m{n}@1", "op": "create", "by": "distill"}
        await feed.append([made(inputs.MemoryWrite, kind="note", sources=[own[room]], text=room, **memory, **fields)])
        audience = {"workspace": "slack:T1"}
        await feed.append(
            [made(inputs.SharingRequested, request=f"s{n}", revision=f"m{n}@1", audience=audience, **fields)]
        )
    await until(lambda: len(seen.look().offers) == len(own) and any(p.room in own for p in chaos.slack.posts))
    for offer in seen.offers:
        room = chaos.slack.rooms[offer.room.partition("/")[2]]
        chaos.slack.say(room, room.members[1], f"share {offer.code}")
    await until(lambda: len(seen.look().shared) == len(own))


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.05)


def most_ended(seen: Seen, numbers: range) -> bool:
    """Most of these drafts have ended, and some that needed a yes are said; the rest is in every state there is."""
    ended = seen.look().ended()
    answered = sum(ended.get(f"t{n}") == "sent" for n in range(ASKED))
    return len(ended) >= numbers[-1] - len(numbers) // 4 and answered > ASKED // 3


async def test_a_thousand_drafts_under_every_fault(path: Path) -> None:
    with LocalLog(path) as log:
        document = json.dumps(POLICY | ASKING | TERMS | {"tools": TOOL})
        policy = made(inputs.PolicyPublished, at=now_ms(), version="1", document=document)
        log.append("policies", b"acme", CODEC.encode(policy), timestamp=now_ms())
    with Slack() as slack:
        chaos, seen = Chaos(slack), Seen(path)
        said = {r.id: f"message:slack:T1/{r.id}/{slack.say(r, 'UALEX', r.id)}" for r in chaos.rooms}
        own = {r.id: f"message:slack:T1/{r.id}/{slack.say(r, r.members[1], r.id)}" for r in chaos.directs}
        slack.faults = chaos.fault
        for part in range(LIVES):
            async with life(path, chaos) as feed:
                if part == 0:
                    await until(lambda: {*said.values(), *own.values()} <= seen.look().known)
                    await share(feed, seen, chaos, own)
                    chaos.open_to_eve = True
                numbers = range(part * DRAFTS // LIVES, (part + 1) * DRAFTS // LIVES)
                await feed.append(drafts(numbers, chaos, said))
                await until(partial(most_ended, seen, numbers))
        slack.faults = lambda call: None
        asked, others = split(DRAFTS)
        async with life(path, chaos):
            await until(lambda: others <= seen.look().ended().keys() and not unfound(seen, slack))
        async with life(path, chaos, ahead=ASK_TTL):  # for whoever was not asked, or has not answered, time runs out
            await until(lambda: asked <= seen.look().ended().keys())

    assert once(marked(slack, TURN))
    assert once(marked(slack, NOTE))
    # Each draft has one decision, and what was authorized a final record.
    assert seen.decided == dict.fromkeys(asked | others, 1)
    assert seen.delivered.keys() == seen.authorized.keys() == (asked | others) - seen.dropped.keys()
    ended = seen.ended()
    assert {turn for turn, status in ended.items() if status == "sent"} == set(marked(slack, TURN))
    for post in slack.posts:
        if post.args["metadata"]["event_type"] == TURN:
            turn = seen.authorized[post.args["metadata"]["event_payload"]["id"]]
            assert (post.args["text"], f"slack:T1/{post.room}") == (turn.text, turn.room)
    assert len(chaos.joined) > 5
    assert {room for room, when in chaos.heard if when - chaos.joined[room] >= FRESH} == set()
    assert chaos.acknowledged() <= seen.observed
    # It was not by saying nothing, and all of it happened.
    counts = Counter(ended.values())
    assert counts["sent"] > 0.7 * DRAFTS, counts
    assert counts["uncertain"] < 0.1 * DRAFTS, counts
    reasons = Counter(reason.code for record in seen.delivered.values() for reason in record.reasons)
    assert reasons["destination_enlarged"], reasons
    assert Counter(seen.dropped.values())["trigger_not_subset",]
    assert any(turn.grants and ended[name] == "sent" for name, turn in seen.authorized.items())
