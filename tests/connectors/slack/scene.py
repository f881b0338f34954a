"""A workspace with a channel, and what its installation makes of the events that are told of it."""

from __future__ import annotations

from typing import Any

from tests.slack import Conversation, Workspace
from tests.slack.world import World
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.events import translate
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.listing import Listing
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MessageObserved, Record
from turngate.schemas.shapes import Member, RoomInfo

CODEC = Codec()
NOW = 1_800_000_000_000
C1 = "slack:T1/C1"


def installed(workspace: Workspace, agent: str = "mesh") -> Installation:
    return Installation(
        app=workspace.app,
        team=workspace.id,
        tenant="acme",
        agent=agent,
        bot_user=workspace.bot,
        token=workspace.token,
        enterprise=workspace.enterprise,
    )


class Scene:
    """A workspace with a channel, and what its installation makes of the events that are told."""

    def __init__(self, **more: Any) -> None:
        self.world = World()
        self.world.clock = lambda: NOW // 1000
        self.acme: Workspace = self.world.workspace("T1", bot="UBOT", **more)
        for user in ("UALEX", "UBO"):
            self.acme.user(user)
        self.acme.user("UAPP", bot=True)
        self.room: Conversation = self.world.channel("C1", self.acme, ["UBOT", "UALEX"])
        self.home: Installation = installed(self.acme)
        self.directory = Directory()

    def listed(self, *members: Member, room: str = "C1") -> None:
        for page in Listing(self.home, room, NOW, RoomInfo(), members).pages(NOW):
            self.directory.learn(page)

    def records(self) -> list[Record]:
        told, self.world.queue = self.world.queue, []
        return [record for envelope in told for record in translate(envelope, self.home, self.directory, NOW)]

    def one(self) -> Record:
        (record,) = self.records()
        return record

    def tell(self, event: dict[str, Any], **more: Any) -> list[Record]:
        self.world.tell(self.acme, event, **more)
        return self.records()


def said(record: Record) -> MessageObserved:
    assert isinstance(record, MessageObserved)
    return record
