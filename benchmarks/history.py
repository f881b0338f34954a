"""Decides what a tenant has gone through when its memory is measured: rooms, what was said in them, and turns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from turngate.schemas.inputs import (
    ContextRequested,
    MembershipPage,
    MemoryKind,
    MemoryWrite,
    MessageObserved,
    PolicyPublished,
    Record,
    Tick,
    TurnDrafted,
    WriteBy,
    WriteOp,
)
from turngate.schemas.shapes import AuthorKind, Member, MemberKind, Rendering, RoomInfo, RoomKind, Visibility

TENANT, AGENT, WORKSPACE = "acme", "mesh", "slack:T1"
#: People of the workspace; members of a room, of whom some speak often and most seldom.
PEOPLE, MEMBERS = 5_000, 25
#: Messages of a room between two changes of who is in it, and between two turns of the agent anywhere.
A_CHANGE, A_TURN = 200, 20
#: Messages between two ticks, which are a second apart.
A_TICK = 95
#: Refs that a turn asks for, or a draft has seen beside its trigger.
SOURCES = 8
#: Freshness is long, so that what is measured is not how often rooms are listed.
_POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}}
freshness: {destination: 400d, observation: 400d}
"""


@dataclass(slots=True)
class _Room:
    id: str
    members: list[str]
    private: bool
    said: int = 0
    last: str = ""


class History:
    """One tenant's past, drawn from a seed: a message every hundredth of a second.

    Three rooms of four are the workspace's, the fourth is its members' alone. Every twentieth message the agent takes a
    turn: it asks for context, drafts, and its answer is observed.
    """

    def __init__(self, rooms: int, *, now: int, seed: int = 1) -> None:
        self.now = now
        self._random = random.Random(seed)
        self._people = [f"{WORKSPACE}/U{n:08}" for n in range(PEOPLE)]
        self._rooms = [
            _Room(f"{WORKSPACE}/C{n:08}", self._random.sample(self._people, MEMBERS), n % 4 == 3) for n in range(rooms)
        ]
        self._public = [room for room in self._rooms if not room.private]
        self._counts = {"messages": 0, "turns": 0, "listings": 0}

    @property
    def messages(self) -> int:
        """How many messages were recorded."""
        return self._counts["messages"]

    def beginning(self) -> Iterator[Record]:
        """The policy, and a listing of every room with a first message."""
        yield PolicyPublished(tenant=TENANT, at=self._tick(), version="1", document=_POLICY)
        for room in self._rooms:
            yield self._listing(room)
            yield self._message(room, room.members[0])

    def more(self, messages: int) -> Iterator[Record]:
        """What happens while so many more messages are said."""
        for _ in range(messages):
            room = self._random.choice(self._rooms)
            if room.said % A_CHANGE == A_CHANGE - 1:
                room.members[self._random.randrange(1, MEMBERS)] = self._random.choice(self._people)
                yield self._listing(room)
            if self.messages % A_TICK == 0:
                yield Tick(tenant="0", at=self._tick())
            # The first few say most of it.
            yield self._message(room, room.members[int(MEMBERS * self._random.random() ** 3)])
            if self.messages % A_TURN == 0:
                yield from self._turn(self._random.choice(self._public))

    def draft(self, exposed: tuple[str, ...] | None = None) -> TurnDrafted:
        """A draft for a public room: an answer that saw refs of the whole history, or words that saw these."""
        room, turn = self._random.choice(self._public), f"turn-{self._count('turns')}"
        if exposed is not None:
            return self._drafted(room, turn, exposed, trigger=None)
        return self._drafted(room, turn, tuple(self.anywhere() for _ in range(SOURCES)), room.last)

    def anywhere(self) -> str:
        """The ref of a message of a public room, of any age."""
        room = self._random.choice(self._public)
        return f"message:{_message_id(room.id, self._random.randrange(room.said))}"

    def by_everybody(self, count: int) -> Iterator[MessageObserved]:
        """So many messages in one public room, each by somebody else."""
        for n in range(count):
            yield self._message(self._public[0], f"{WORKSPACE}/V{n:08}")

    def last_of(self, count: int) -> tuple[str, ...]:
        """The refs of the last messages of that room."""
        room = self._public[0]
        return tuple(f"message:{_message_id(room.id, room.said - 1 - n)}" for n in range(count))

    def write(self, memory: str, revision: str, sources: tuple[str, ...], base: str | None = None) -> MemoryWrite:
        """A note that a background process made."""
        return MemoryWrite(
            tenant=TENANT,
            at=self._tick(),
            agent=AGENT,
            write=f"write-{revision}",
            memory=memory,
            revision=revision,
            op=WriteOp.CREATE if base is None else WriteOp.AMEND,
            by=WriteBy.DISTILL,
            kind=MemoryKind.NOTE,
            base=base,
            text="what is remembered of it " * 8,
            sources=sources,
            room=self._public[0].id,
        )

    # -- parts --

    def _turn(self, room: _Room) -> Iterator[Record]:
        turn = f"turn-{self._count('turns')}"
        candidates = tuple(self.anywhere() for _ in range(SOURCES))
        yield ContextRequested(
            tenant=TENANT,
            at=self._tick(),
            agent=AGENT,
            request=f"context-{turn}",
            turn=turn,
            room=room.id,
            trigger=room.last,
            candidates=candidates,
        )
        yield self._drafted(room, turn, (), room.last)
        yield self._message(room, f"{WORKSPACE}/UBOT", turn)

    def _drafted(self, room: _Room, turn: str, exposed: tuple[str, ...], trigger: str | None) -> TurnDrafted:
        return TurnDrafted(
            tenant=TENANT,
            at=self._tick(),
            agent=AGENT,
            turn=turn,
            room=room.id,
            trigger=trigger,
            exposed=exposed,
            renderings=(Rendering(text="what is answered " * 8),),
        )

    def _listing(self, room: _Room) -> MembershipPage:
        at = self._tick()
        visibility = Visibility.MEMBERS if room.private else Visibility.WORKSPACE
        return MembershipPage(
            tenant=TENANT,
            at=at,
            agent=AGENT,
            room=room.id,
            refresh=f"listing-{self._count('listings')}",
            page=0,
            last=True,
            started_at=at,
            info=RoomInfo(kind=RoomKind.CHANNEL, visibility=visibility, workspaces=(WORKSPACE,)),
            members=tuple(Member(reader=reader, kind=MemberKind.MEMBER) for reader in room.members),
        )

    def _message(self, room: _Room, author: str, turn: str | None = None) -> MessageObserved:
        message = _message_id(room.id, room.said)
        room.said += 1
        room.last = f"message:{message}"
        self._count("messages")
        return MessageObserved(
            tenant=TENANT,
            at=self._tick(),
            agent=AGENT,
            room=room.id,
            message=message,
            author=author,
            author_kind=AuthorKind.PERSON if turn is None else AuthorKind.SELF,
            text=f"{message} " + "what is said " * 8,
            turn=turn,
        )

    def _count(self, what: str) -> int:
        self._counts[what] += 1
        return self._counts[what]

    def _tick(self) -> int:
        self.now += 10
        return self.now


def _message_id(room: str, number: int) -> str:
    return f"{room}/{1_767_225_600 + number}.000100"
