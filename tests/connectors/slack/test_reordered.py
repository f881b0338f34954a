"""In whatever order events come, and however late, nobody is told what was said in a private room after he had left."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.connectors.slack.conftest import APPS
from tests.connectors.slack.scene import installed
from tests.connectors.slack.test_roster import policy
from tests.slack.world import World
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.installations import Installations
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.listing import Listing
from turngate.schemas.outputs import EvidenceRecorded, EvidenceStatus
from turngate.schemas.shapes import Audience, Member, MemberKind, RoomInfo, RoomKind, Visibility
from turngate.streams.clock import now_ms
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import LocalLog

PEOPLE = [f"U{n}" for n in range(6)]


class Story:
    """A channel where people come, go and speak, and who may know what of it: there when it was said, or since then."""

    def __init__(self, seed: int, feed: LocalFeed) -> None:
        self.chance = random.Random(seed)
        self.feed = feed
        self.world = World()
        seconds, millis = itertools.count(now_ms() // 1000 - 300), itertools.count(now_ms() - 2_000, 2)
        self.world.clock = lambda: next(seconds)
        self.acme = self.world.workspace("T1", bot="UBOT")
        for user in PEOPLE:
            self.acme.user(user)
        self.room = self.world.channel("C1", self.acme, ["UBOT", *PEOPLE[:4]], private=True)
        self.home = installed(self.acme)
        self.tick = lambda: next(millis)
        self.taking = Intake(Installations(APPS, [self.home]), Directory(), feed.append, lambda: self.tick() / 1000)
        self.may_know: dict[str, set[str]] = {}

    async def listed(self) -> None:
        visibility = Visibility.MEMBERS if self.room.private else Visibility.WORKSPACE
        info = RoomInfo(kind=RoomKind.CHANNEL, visibility=visibility, workspaces=("slack:T1",))
        kinds = {"UBOT": MemberKind.SELF}
        members = (Member(reader=f"slack:T1/{u}", kind=kinds.get(u, MemberKind.MEMBER)) for u in self.room.members)
        await self.feed.append(Listing(self.home, "C1", self.tick(), info, tuple(members)).pages(self.tick()))

    async def goes_on(self) -> None:
        members = self.room.members
        match self.chance.choices(["say", "leave", "join", "convert", "list"], [10, 4, 3, 2, 2])[0]:
            case "say":
                ts = self.world.say(self.room, members[-1], "x")
                self.may_know[ts] = set(members)
            case "leave" if len(members) > 2:
                self.world.leave(self.room, self.chance.choice(members[1:]))
            case "join":
                self.world.join(self.room, self.chance.choice(PEOPLE))
            case "convert":
                self.world.convert(self.room, private=not self.room.private)
            case "list":
                await self.listed()
        for known in self.may_know.values():
            known.update(PEOPLE if not self.room.private else members)

    async def told(self) -> None:
        waiting: list[dict[str, object]] = []
        for _ in range(40):
            await self.goes_on()
            waiting += self.world.queue
            self.world.queue = []
            self.chance.shuffle(waiting)
            for _ in range(self.chance.randint(0, len(waiting))):
                await self.taking.take("A1", waiting.pop())
        for envelope in waiting:
            await self.taking.take("A1", envelope)


def permits(audience: Audience, user: str) -> bool:
    return f"slack:T1/{user}" in audience.readers or "slack:T1" in audience.workspaces


@pytest.mark.parametrize("first", range(0, 40, 10))
async def test_nobody_is_told_what_was_said_after_he_left(first: int) -> None:
    known = 0
    for seed in range(first, first + 10):
        with LocalLog(None, clock=now_ms) as log:
            feed = LocalFeed(log)
            story = Story(seed, feed)
            await feed.append([policy()])
            await story.listed()
            await story.told()
            records = [r async for r in feed.follow("source-evidence", 0, forever=False)]
        last = {r.ref.rpartition("/")[2]: r for r in records if isinstance(r, EvidenceRecorded)}
        for ts, may_know in story.may_know.items():
            if last[ts].status is EvidenceStatus.KNOWN:
                known += 1
                heard = {u for u in PEOPLE if all(permits(leaf.audience, u) for leaf in last[ts].leaves)}
                assert heard <= may_know, (seed, ts)
    assert known > 20  # and it is said to somebody
