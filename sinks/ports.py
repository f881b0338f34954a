"""Decides what a delivery asks of the place that it speaks in, and of the log that it is told by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from turngate.schemas.inputs import MembershipPage, Record
from turngate.schemas.shapes import Reason
from turngate.sinks.claims import Key, Place
from turngate.sinks.facts import Facts
from turngate.streams.log import Message


@dataclass(frozen=True, slots=True)
class Said:
    """A message: exactly these bytes, and what marks it in its metadata. `blocks` are the connector's own layout."""

    text: str
    mark: str
    name: str
    broadcast: bool = False
    blocks: tuple[dict[str, Any], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Posted:
    """It is there. `message` is its id; None where the answer named another room."""

    message: str | None


@dataclass(frozen=True, slots=True)
class NotPosted:
    """It is surely not there. `wait`: seconds after which it may be tried again, None where that would not help."""

    reason: Reason
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Unsure:
    """It may be there."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing's pages. `wait`: seconds after which a failed one may be tried again, None where that is no use."""

    pages: tuple[MembershipPage, ...] = ()
    wait: float | None = None

    @property
    def failed(self) -> bool:
        """Whether it says that it established nothing."""
        return not self.pages or any(page.error is not None for page in self.pages)


@dataclass(frozen=True, slots=True)
class Direct:
    """A direct room. `wait`: seconds after which one that was not found may be asked for again, None if in vain."""

    room: str | None = None
    wait: float | None = None


class Connector(Protocol):
    """Where rooms are. No method raises for what the other side answers, or does not."""

    def serves(self, room: str) -> bool:
        """Whether its rooms are this connector's; other rooms are somebody else's business."""

    def told(self, record: Record) -> None:
        """Take notice of what the log says of rooms and of who is in them."""

    async def listing(self, tenant: str, agent: str, room: str) -> Listed:
        """A room's members, live; begun after this was called."""

    async def post(self, tenant: str, place: Place, said: Said) -> Posted | NotPosted | Unsure:
        """Say something, once: nothing is tried again."""

    async def amend(self, tenant: str, place: Place, message: str, said: Said) -> float | None:
        """Put this in place of a message of the agent's own; seconds after which that may be tried again, if at all."""

    async def find(self, key: Key, place: Place, mark: str, since: int) -> str | None:
        """The message of the agent's own that is marked so, if it was said after `since` (ms); None if none is seen."""

    async def direct_room(self, tenant: str, agent: str, reader: str) -> Direct:
        """The room in which the agent speaks with one reader alone."""


class Journal(Protocol):
    """The log, for a sink: what it has said, and where results go."""

    @property
    def facts(self) -> Facts:
        """What was said up to where it has been read."""

    async def publish(self, topic: str, records: Sequence[Record]) -> None:
        """Write records; they are there when this returns."""

    async def reach_end(self, tenant: str) -> bool:
        """Read on, up to everything acknowledged before this was called; whether that was reached in time."""

    async def applied(self, tenant: str, topics: Sequence[str]) -> bool:
        """Whether the engine has applied, in time, what lay on these input topics; what came of that is then read."""

    async def look_back(self, tenant: str, topic: str, before: int, count: int) -> list[Message]:
        """At most `count` records of a tenant's partition, the last of them before this offset, in order."""
