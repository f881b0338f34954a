"""Decides what is remembered: the rows of a partition's tables, all of them immutable."""

from __future__ import annotations

from dataclasses import dataclass, field

from turngate.processors.state import State, Table
from turngate.schemas.inputs import ContextRequested, TurnDrafted
from turngate.schemas.shapes import Audience, MemberKind, RoomKind, Visibility


@dataclass(frozen=True, slots=True)
class Policies:
    """The versions that a tenant has published, oldest first, as (version, document)."""

    documents: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """A room started when so many policies had been published; that count less one is its pinned version (R-POL-1)."""

    policies: int


@dataclass(frozen=True, slots=True)
class Roster:
    """Whom a listing named, by what they are. Who of them is a reader depends on the policy in force (R-ROOM-7)."""

    members: tuple[str, ...]
    guests: tuple[str, ...]
    bots: tuple[str, ...]
    selves: tuple[str, ...]
    memberships: dict[str, tuple[str, ...]]
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete listing. `arrived`: the arrival that completed it; `refreshes`: those complete that began with it."""

    started_at: int
    arrived: int
    refreshes: tuple[str, ...]
    kind: RoomKind
    visibility: Visibility
    workspaces: tuple[str, ...]
    roster: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A leaf that the next listing may settle (R-AUD-9): its ref, its place among the ref's leaves, when it was said.

    `before` is the listing known then, and `audience` the digest of whom that made readers; both null where none was.
    """

    ref: str
    leaf: int
    at: int
    before: Listing | None = None
    audience: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A room as one agent knows it (R-ROOM-1).

    `unusable`: listings from the future by refresh and start, never to be used; `skewed`: none came since (R-TIME-2).
    """

    listing: Listing | None = None
    unusable: tuple[tuple[str, int], ...] = ()
    skewed: bool = False
    asked_at: int | None = None
    pending: tuple[Pending, ...] = ()
    open_refreshes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """A join or a leave. `first` and `latest`: the arrivals at which it was told first and last."""

    agent: str | None
    reader: str
    kind: MemberKind
    workspaces: tuple[str, ...]
    joined: bool
    at: int
    first: int
    latest: int


@dataclass(frozen=True, slots=True)
class RoomLog:
    """What happened to a room: events, and when it last became something else, for whom (null: all agents)."""

    events: tuple[Event, ...] = ()
    changed: tuple[tuple[str | None, int], ...] = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing under way."""

    digest: str
    last: bool
    failed: bool
    kind: RoomKind | None
    visibility: Visibility | None
    workspaces: tuple[str, ...] | None
    members: tuple[tuple[str, MemberKind, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Refresh:
    """A listing under way: what all its pages must name, the numbers that have come, and the number of the last."""

    agent: str
    room: str
    started_at: int
    pages: tuple[int, ...] = ()
    last: int | None = None
    spoiled: bool = False


@dataclass(frozen=True, slots=True)
class LeafRow:
    """A leaf; its key is its digest, and `audience` the digest of its audience.

    `each`: digests of further audiences within which a destination must lie; versions of a policy may give a tool
    audiences whose intersection does not say it all (R-POL-1).
    """

    agent: str
    audience: str
    author: str | None = None
    room: str | None = None
    open: bool = False
    call: str | None = None
    via: str | None = None
    restrictions: tuple[str, ...] = ()
    private: bool = True
    untrusted: bool = True
    each: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one agent knows of a ref: its leaves by digest, and digests of the contents it has had (R-AUD-6).

    `over`: there were more distinct leaves than the policy allows, and so there are none (R-EVI-5). `classified`: names
    and classes of a tool result's fields that are more than public.
    """

    leaves: tuple[str, ...]
    over: bool = False
    contents: tuple[str, ...] = ()
    classified: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """A context request. `waiting` is it while it waits for its room; `permitted` what was answered."""

    agent: str
    turn: str
    trigger: str | None = None
    permitted: tuple[str, ...] | None = None
    waiting: ContextRequested | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What is known of a turn: its content, its context requests and tool results, and what became of it.

    `authorized`: the room it was let out to, with the leaves of what was sent (R-AUD-7). `waiting` is the draft while
    it is held.
    """

    agent: str | None = None
    content: str | None = None
    conflicts: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    results: tuple[tuple[str, str | None], ...] = ()
    final: bool = False
    authorized: str | None = None
    leaves: tuple[str, ...] = ()
    waiting: TurnDrafted | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A context request or draft that waits for a room, since arrival `since` until stream time `until`."""

    since: int
    until: int
    tenant: str
    agent: str
    room: str
    turn: str
    request: str | None = None


@dataclass(frozen=True, slots=True)
class OpenTurns:
    """Turns of an agent that asked for context in a room and thread and have no final decision (R-EVI-2)."""

    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EarlyResults:
    """Tool calls that named a context request before that was seen."""

    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that is so, for as long as its row is there."""

    since: int = field(default=0)


class Tables:
    """The tables of a partition. Keys are given beside each; all but the clock's begin with the tenant."""

    def __init__(self) -> None:
        self.state = State()
        make = self.state.table
        #: (`now`,) (`arrival`,) and (`position`, topic) → a number.
        self.clock: Table[int] = make("clock", int)
        #: (tenant,)
        self.policies: Table[Policies] = make("policies", Policies)
        #: (tenant, room)
        self.started: Table[Started] = make("started", Started)
        #: (tenant, agent, room)
        self.rooms: Table[Room] = make("rooms", Room)
        #: (tenant, agent, room): of the room's listing
        self.rosters: Table[Roster] = make("rosters", Roster)
        #: (tenant, room)
        self.room_logs: Table[RoomLog] = make("room_logs", RoomLog)
        #: (tenant, refresh)
        self.refreshes: Table[Refresh] = make("refreshes", Refresh)
        #: (tenant, refresh, page)
        self.pages: Table[Page] = make("pages", Page)
        #: (tenant, digest)
        self.audiences: Table[Audience] = make("audiences", Audience)
        #: (tenant, digest)
        self.leaves: Table[LeafRow] = make("leaves", LeafRow)
        #: (tenant, ref, agent)
        self.evidence: Table[Evidence] = make("evidence", Evidence)
        #: (tenant, ref)
        self.known_by: Table[tuple[str, ...]] = make("known_by", tuple[str, ...])
        #: (tenant, ref)
        self.deleted: Table[Flag] = make("deleted", Flag)
        #: (tenant, request)
        self.contexts: Table[Context] = make("contexts", Context)
        #: (tenant, request not seen yet)
        self.early_results: Table[EarlyResults] = make("early_results", EarlyResults)
        #: (tenant, turn)
        self.turns: Table[Turn] = make("turns", Turn)
        #: (tenant, agent, room, thread or empty)
        self.open_turns: Table[OpenTurns] = make("open_turns", OpenTurns)
        #: (tenant, arrival)
        self.waiting: Table[Waiting] = make("waiting", Waiting)
        #: (tenant, command): carried out, and so never again (R-RUN-4)
        self.commands: Table[Flag] = make("commands", Flag)
        #: (tenant, agent, room or empty)
        self.paused: Table[Flag] = make("paused", Flag)
