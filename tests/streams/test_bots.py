"""What bots that read along cost, and what trusting them would let out (R-ROOM-7): as the engine itself decides it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from turngate.schemas.catalog import RECORDS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.streams.bots import TOPICS, BotCosts, Cost
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog

AT = 1_767_225_600_000
LOUD, BOT = "slack:T1/LOUD", "slack:T1/UAPP"


class World:
    """Two public channels, LOUD with a bot in it, on an engine of its own; a second passes with each record."""

    def __init__(self, trusted: tuple[str, ...] = ()) -> None:
        self._log = LocalLog()
        self._codec = Codec()
        self._runtime = LocalRuntime(self._log, self._codec)
        self._at = AT
        agents = {"mesh": {"accounts": ["slack:T1/UBOT"]}}
        document = {"version": 1, "agents": agents, "trusted_bots": list(trusted)}
        self.send("PolicyPublished", version="1", document=json.dumps(document))

    def send(self, name: str, **fields: Any) -> None:
        self._at += 1000
        value = {"tenant": "acme", "at": self._at, **fields}
        record = RECORDS[name].model_validate(value)
        self._runtime.feed(topic_of(name, value), b"acme", self._codec.encode(record), self._at)
        self._runtime.flush()

    def listed(self, room: str, **members: str) -> None:
        named = [{"reader": f"slack:T1/{user}", "kind": kind} for user, kind in members.items()]
        info = {"kind": "channel", "visibility": "workspace", "workspaces": ["slack:T1"]}
        page = {"agent": "mesh", "room": room, "refresh": f"r{self._at}", "page": 0, "last": True}
        self.send("MembershipPage", **page, started_at=self._at + 1000, info=info, members=named)

    def says(self, room: str, number: int) -> str:
        said = {"room": room, "message": f"{room}/{number}", "author": "slack:T1/UALEX", "author_kind": "person"}
        self.send("MessageObserved", agent="mesh", **said, text="hello")
        return f"message:{room}/{number}"

    def drafts(self, turn: str, room: str, trigger: str, *exposed: str) -> None:
        said = [{"text": "so it is", "request": None}]
        self.send("TurnDrafted", agent="mesh", turn=turn, room=room, trigger=trigger, exposed=exposed, renderings=said)

    def records(self) -> Iterator[Record]:
        for topic in TOPICS:
            for message in self._log.scan(topic):
                yield self._codec.decode(message.value)

    def costs(self) -> list[Cost]:
        found = BotCosts()
        for record in self.records():
            found.learn(record)
        return list(found.costs())

    def delivered(self) -> int:
        return sum(1 for _ in self._log.scan("outbound"))


def told(world: World) -> World:
    """A turn about the workspace's words, and one about a guest's room, both in the channel with the bot."""
    quiet, guests = "slack:T1/QUIET", "slack:T1/GUESTS"
    world.listed(LOUD, UALEX="member", UAPP="bot")
    world.listed(quiet, UALEX="member")
    trigger, words = world.says(LOUD, 1), world.says(quiet, 1)
    page = {"agent": "mesh", "room": guests, "refresh": "r0", "page": 0, "last": True, "started_at": AT + 9000}
    info = {"kind": "group", "visibility": "members"}
    members = [{"reader": "slack:T1/UALEX", "kind": "member"}, {"reader": "slack:T1/UGUEST", "kind": "guest"}]
    world.send("MembershipPage", **page, info=info, members=members)
    secret = world.says(guests, 1)
    world.drafts("t1", LOUD, trigger, words)
    world.drafts("t2", LOUD, trigger, secret)
    world.drafts("t3", quiet, words)
    return world


def test_what_a_bot_costs_and_what_trusting_it_lets_out() -> None:
    assert told(World()).costs() == [Cost("acme", "mesh", LOUD, 2, (BOT,), 1)]


def test_the_engine_says_the_same_once_it_is_trusted() -> None:
    before, after = told(World()), told(World(trusted=(BOT,)))
    (cost,) = before.costs()
    assert after.delivered() - before.delivered() == cost.would_pass == 1
    assert after.costs() == []


@pytest.mark.parametrize("kind", ["member", "guest"])
def test_a_room_without_a_bot_is_not_named(kind: str) -> None:
    world = World()
    world.listed(LOUD, UALEX="member", UAPP=kind)
    world.listed("slack:T1/QUIET", UALEX="member")
    world.drafts("t1", LOUD, world.says(LOUD, 1), world.says("slack:T1/QUIET", 1))
    assert world.costs() == []
