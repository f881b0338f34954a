"""Decides what the benchmarks decide about: rooms, their members, what was said in them, and drafts that quote it.

All rooms of one world have about the same number of members. Every source room has an audience of its own and several
authors, so that no two sources are the same question. Spare people are in every source room and join and leave the
destinations, so that a destination's audience changes without all of its drafts being refused. Narrow source rooms lack
one person that every destination has: what was said there may not be repeated.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from turngate.schemas.inputs import (
    Change,
    ContextRequested,
    MembershipChanged,
    MembershipPage,
    MessageObserved,
    PolicyPublished,
    Record,
    TurnDrafted,
)
from turngate.schemas.shapes import AuthorKind, Member, MemberKind, Rendering, RoomInfo, RoomKind, Visibility

AGENT = "mesh"
#: Members of one page of a listing: the most that Slack's `conversations.members` gives at once.
PAGE = 1_000
#: Messages of each source room, every one by another author.
AUTHORS = 4
#: People who are in every source room that is not narrow, and come to a destination and go.
SPARES = 4
#: One draft of so many quotes something from a narrow room.
ONE_NARROW_IN = 5
#: Characters of a draft's text.
TEXT = 240

#: The tenant's policy. Listings stay fresh for the length of a run, whatever that is on a slow machine.
POLICY = json.dumps(
    {
        "version": 1,
        "agents": {AGENT: {"accounts": ["slack:T1/UBOT"]}},
        "freshness": {"destination": "12h", "observation": "24h"},
    }
)
_INFO = RoomInfo(kind=RoomKind.CHANNEL, visibility=Visibility.MEMBERS)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a world is: members of a room, and rooms of each kind."""

    members: int
    destinations: int = 4
    sources: int = 40
    narrow: int = 4


#: An event, and what comes of it later.
Changed = tuple[MembershipChanged, Callable[[], list[Record]]]


class _Kind(Enum):
    DESTINATION = auto()
    SOURCE = auto()
    NARROW = auto()


@dataclass(slots=True)
class _Room:
    id: str
    kind: _Kind
    members: list[str]
    said: int = 0
    listed: int = 0


class World:
    """One tenant's rooms. Everything is drawn from `seed`; times start at `now`, a millisecond for each record."""

    def __init__(self, size: Size, *, tenant: str = "acme", now: int, seed: int = 1) -> None:
        self.tenant = tenant
        self.now = now
        self._random = random.Random(seed)
        self._members: dict[str, Member] = {}
        self._people = 0
        self._turns = 0
        self._changes = 0
        core = self._some(size.members - 1)
        own = self._some(size.destinations)
        self._spares = self._some(SPARES)
        everyone = core + own + self._spares
        self._destinations = [
            _Room(f"slack:T1/CD{i}", _Kind.DESTINATION, [*core, own[i]]) for i in range(size.destinations)
        ]
        self._sources = [_Room(f"slack:T1/CS{i}", _Kind.SOURCE, everyone + self._some(1)) for i in range(size.sources)]
        self._narrow = [
            _Room(f"slack:T1/CN{i}", _Kind.NARROW, everyone[1:] + self._some(1)) for i in range(size.narrow)
        ]
        self._refs: list[str] = []
        self._narrow_refs: list[str] = []
        self._triggers: dict[str, str] = {}

    def beginning(self) -> Iterator[Record]:
        """The policy, a listing of every room, and what was said: `AUTHORS` messages in each."""
        yield PolicyPublished(tenant=self.tenant, at=self._tick(), version="1", document=POLICY)
        for room in (*self._destinations, *self._sources, *self._narrow):
            yield from self._listing(room)
            for _ in range(AUTHORS):
                yield self._message(room)

    def draft(self, sources: int) -> TurnDrafted:
        """A draft for a random destination that answers the last message there and quotes `sources` other ones."""
        room = self._random.choice(self._destinations)
        return self._drafted(room, self._triggers[room.id], tuple(self._pick(sources)))

    def every_pair(self) -> Iterator[TurnDrafted]:
        """Drafts that together ask of every source for every destination."""
        refs = [*self._refs, *self._narrow_refs]
        for room in self._destinations:
            for start in range(0, len(refs), 32):
                yield self._drafted(room, self._triggers[room.id], tuple(refs[start : start + 32]))

    def turn(self, sources: int) -> Iterator[Record]:
        """A whole turn: somebody says something, the agent asks for context, and drafts with what it may see."""
        room = self._random.choice(self._destinations)
        yield self._message(room)
        trigger, candidates = self._triggers[room.id], tuple(self._pick(sources))
        yield ContextRequested(
            tenant=self.tenant,
            at=self._tick(),
            agent=AGENT,
            request=f"context-{self._turns + 1:08}",
            turn=f"turn-{self._turns + 1:08}",
            room=room.id,
            trigger=trigger,
            candidates=candidates,
        )
        yield self._drafted(room, trigger, ())

    def change(self) -> Changed:
        """The next membership that changes, and what comes of it later: a listing of the room and a new message there.

        In turn somebody new joins a source room, a spare joins a destination, somebody leaves a source room, the spare
        leaves. The message's leaf is new; so is the audience, unless the room was as it is now before.
        """
        number, kind = divmod(self._changes, 4)
        self._changes += 1
        source = self._sources[number % len(self._sources)]
        destination = self._destinations[number % len(self._destinations)]
        match kind:
            case 0:
                return self._joins(source, self._some(1)[0])
            case 1:
                return self._joins(destination, self._spares[number % SPARES])
            case 2:
                return self._leaves(source, source.members[-2])
            case _:
                return self._leaves(destination, self._spares[number % SPARES])

    # -- parts --

    def _joins(self, room: _Room, reader: str) -> Changed:
        room.members.append(reader)
        return self._happens(room, reader, Change.JOINED)

    def _leaves(self, room: _Room, reader: str) -> Changed:
        room.members.remove(reader)
        return self._happens(room, reader, Change.LEFT)

    def _happens(self, room: _Room, reader: str, change: Change) -> Changed:
        event = MembershipChanged(
            tenant=self.tenant, at=self._tick(), room=room.id, reader=reader, kind=MemberKind.MEMBER, change=change
        )
        return event, lambda: [*self._listing(room), self._message(room)]

    def _some(self, count: int) -> list[str]:
        """So many people who were nowhere before."""
        made = [f"slack:T1/U{self._people + i:010}" for i in range(count)]
        self._people += count
        return made

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _member(self, reader: str) -> Member:
        found = self._members.get(reader)
        if found is None:
            found = self._members[reader] = Member(reader=reader, kind=MemberKind.MEMBER)
        return found

    def _listing(self, room: _Room) -> Iterator[MembershipPage]:
        room.listed += 1
        started_at = self._tick()
        starts = range(0, len(room.members), PAGE)
        for page, start in enumerate(starts):
            yield MembershipPage(
                tenant=self.tenant,
                at=self._tick(),
                agent=AGENT,
                room=room.id,
                refresh=f"{room.id}/{room.listed}",
                page=page,
                last=page == len(starts) - 1,
                started_at=started_at,
                info=_INFO if page == 0 else None,
                members=tuple(map(self._member, room.members[start : start + PAGE])),
            )

    def _message(self, room: _Room) -> MessageObserved:
        """The next message of a room; it may be quoted from now on, in the place of the room's oldest one."""
        message = f"{room.id}/{1_767_225_600 + room.said}.000100"
        ref = f"message:{message}"
        if room.kind is _Kind.DESTINATION:
            self._triggers[room.id] = ref
        else:
            refs = self._refs if room.kind is _Kind.SOURCE else self._narrow_refs
            if room.said >= AUTHORS:
                oldest = f"message:{room.id}/{1_767_225_600 + room.said - AUTHORS}.000100"
                refs.remove(oldest)
            refs.append(ref)
        author = room.members[room.said % AUTHORS]
        room.said += 1
        return MessageObserved(
            tenant=self.tenant,
            at=self._tick(),
            agent=AGENT,
            room=room.id,
            message=message,
            author=author,
            author_kind=AuthorKind.PERSON,
            text=f"{message} " + "said " * 20,
        )

    def _pick(self, count: int) -> list[str]:
        """Distinct sources; of one draft in `ONE_NARROW_IN`, one of them is from a narrow room."""
        picked = self._random.sample(self._refs, count)
        if self._random.randrange(ONE_NARROW_IN) == 0:
            picked[self._random.randrange(count)] = self._random.choice(self._narrow_refs)
        return picked

    def _drafted(self, room: _Room, trigger: str, exposed: tuple[str, ...]) -> TurnDrafted:
        self._turns += 1
        turn = f"turn-{self._turns:08}"
        return TurnDrafted(
            tenant=self.tenant,
            at=self._tick(),
            agent=AGENT,
            turn=turn,
            room=room.id,
            trigger=trigger,
            exposed=exposed,
            renderings=(Rendering(text=f"{turn} ".ljust(TEXT, "x")),),
        )
