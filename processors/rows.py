"""Decides what is remembered: the rows of a partition's tables, none of which is ever changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, dataclass_transform

from turngate.schemas.inputs import ContextRequested, DeliveryStatus, MemoryKind, TurnDrafted
from turngate.schemas.outputs import GrantState, RevisionState
from turngate.schemas.shapes import FieldClass, MemberKind, Reason, RoomKind, Visibility

R = TypeVar("R")


@dataclass_transform(frozen_default=True)
def row(kind: type[R]) -> type[R]:
    """A dataclass that is frozen to mypy alone: looking after that as it runs makes a row several times as dear."""
    return dataclass(slots=True, unsafe_hash=True)(kind)


@row
class Policies:
    """The versions that a tenant has published, oldest first, as (version, document)."""

    documents: tuple[tuple[int, str], ...] = ()


@row
class Started:
    """A room's life (R-RET-1): how many policies had been published when it started (R-POL-1), when that was, and when
    it was last active, by stream time and arrival; null where it never was.
    """

    policies: int
    at: int
    arrival: int
    active_at: int | None = None
    active_arrival: int | None = None


@row
class Roster:
    """Whom a listing named, by what they are. Who of them is a reader depends on the policy in force (R-ROOM-7)."""

    members: tuple[str, ...]
    guests: tuple[str, ...]
    bots: tuple[str, ...]
    selves: tuple[str, ...]
    memberships: dict[str, tuple[str, ...]]
    digest: str


@row
class Listing:
    """A complete listing. `arrived`: the arrival that completed it; `refreshes`: those complete that began with it."""

    started_at: int
    arrived: int
    refreshes: tuple[str, ...]
    kind: RoomKind
    visibility: Visibility
    workspaces: tuple[str, ...]
    roster: str


@row
class Pending:
    """A leaf that the next listing may settle (R-AUD-9): its ref, its place among the ref's leaves, when it was said.

    `before` is the listing known then, and `audience` the digest of whom that made readers; both null where none was.
    """

    ref: str
    leaf: int
    at: int
    before: Listing | None = None
    audience: str | None = None


@row
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


@row
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


@row
class RoomLog:
    """What happened to a room: events, and when it last became something else, for whom (null: all agents)."""

    events: tuple[Event, ...] = ()
    changed: tuple[tuple[str | None, int], ...] = ()
    agents: tuple[str, ...] = ()


@row
class Page:
    """One page of a listing under way."""

    digest: str
    last: bool
    failed: bool
    kind: RoomKind | None
    visibility: Visibility | None
    workspaces: tuple[str, ...] | None
    members: tuple[tuple[str, MemberKind, tuple[str, ...]], ...]


@row
class Refresh:
    """A listing under way: what all its pages must name, the numbers that have come, and the number of the last."""

    agent: str
    room: str
    started_at: int
    pages: tuple[int, ...] = ()
    last: int | None = None
    spoiled: bool = False


@row
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


@row
class Value:
    """A field of a tool's result that is more than public, or about somebody's health, without its value.

    `marks` are keyed fingerprints, any of which finds it; empty where it is too short to be looked for, or a health
    field, and null where there was no key to make any with, or it is too long: then any text may hold it.
    """

    name: str
    kind: FieldClass
    subject: str | None = None
    health: bool = False
    marks: tuple[str, ...] | None = ()


@row
class ReadBy:
    """A tool result with values to look for in its room, and the agent that has it."""

    ref: str
    agent: str


@row
class Evidence:
    """What one agent knows of a ref: its leaves by digest, and digests of the contents it has had (R-AUD-6).

    `room`: where it was said or read; `at`: when, as its writer had it; `seen`: the stream time of its first
    observation, from which it is kept (R-RET-4). `made_of`: refs whose text it repeats. `over`: there were more
    distinct leaves than the policy allows, and so there are none (R-EVI-5). `author`: who said it; `person`: a person
    did, each time. `quoted`: the places among the leaves of those of messages that it quotes. `values`: what a tool of
    this `server` read here that is more than public. `proves`: keyed marks of what its text or fields contain; `links`:
    digests of the links in them.
    """

    leaves: tuple[str, ...]
    room: str
    at: int
    seen: int
    made_of: tuple[str, ...] = ()
    over: bool = False
    contents: tuple[str, ...] = ()
    author: str | None = None
    person: bool = True
    quoted: tuple[int, ...] = ()
    values: tuple[Value, ...] = ()
    proves: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    server: str | None = None


@row
class Revision:
    """A revision of a memory with its evidence.

    `leaves` as a later turn sees them, `seen` with the `via` of the turn that wrote it (R-EVI-6), empty where those are
    the same; `restrictions` hold also where there are no leaves. `turn`: the turn that wrote it, `retired_by` the one
    that retired it (R-TURN-5). `text` is null where it is no longer needed, or erased. `rooms` and `authors`: where and
    by whom was said or read what it is made of, which outlasts the evidence of that, so that an erasure finds it
    (R-RET-3).
    """

    agent: str
    memory: str
    kind: MemoryKind
    state: RevisionState
    leaves: tuple[str, ...]
    write: str
    base: str | None = None
    seen: tuple[str, ...] = ()
    over: bool = False
    restrictions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    room: str | None = None
    text: str | None = None
    turn: str | None = None
    retired_by: str | None = None
    notes: tuple[str, ...] = ()


@row
class Memory:
    """A memory: whose it is, and its current revision."""

    agent: str
    current: str | None


@row
class Grant:
    """A grant of one revision to an audience (by digest). An offer not yet confirmed is none."""

    agent: str
    memory: str
    revision: str
    audience: str
    state: GrantState
    by: str
    expires_at: int | None = None


class OfferState(StrEnum):
    """Whether a code still waits, was used, taken back, or ran out."""

    OPEN = "open"
    GRANTED = "granted"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@row
class Offer:
    """A request to share, and what became of its code, which is kept as a tag only (R-GRT-10)."""

    agent: str
    room: str
    reader: str
    memory: str
    revision: str
    audience: str
    expires_at: int
    state: OfferState


@row
class Proof:
    """An account proven to be a subject's, for one agent, until it expires or is revoked (R-IDN-1)."""

    agent: str
    reader: str
    subject: str
    expires_at: int
    revoked: bool = False


@row
class Context:
    """A context request. `waiting` is it while it waits for its room; `permitted` what was answered.

    `content` is the digest of all its fields but `at` (None: from before this was kept), `conflicts` those of others
    under its id.
    """

    agent: str
    turn: str
    room: str
    seen: int
    trigger: str | None = None
    permitted: tuple[str, ...] | None = None
    waiting: ContextRequested | None = None
    content: str | None = None
    conflicts: tuple[str, ...] = ()


@row
class Ask:
    """What a draft asks for: the fingerprints of which an approval would let it out, and the reasons."""

    fingerprints: tuple[str, ...]
    reasons: tuple[Reason, ...]


@row
class Taint:
    """What armed a conversation (R-TNT-1): when each bit was armed last, and the arrival that armed it when clear."""

    private_at: int | None = None
    private_since: int = 0
    untrusted_at: int | None = None
    untrusted_since: int = 0


@row
class Approval:
    """Somebody's yes to a fingerprint (R-TNT-6). `used`: the turn that it let out; the arrival tells it from taint."""

    room: str
    by: str
    fingerprint: str
    arrival: int
    at: int
    expires_at: int | None
    used: str | None = None
    withdrawn: bool = False


@row
class Turn:
    """What is known of a turn: its content, its context requests and tool results, and what became of it.

    `seen`: when it was first heard of; `arrived`: when its draft came. `authorized`: the room it was let out to, with
    the refs and the leaves of what was sent (R-AUD-7). `waiting` is the draft while it is held or asks; `asks` what it
    asks for. `approvals` let it out; `claims` are the skills and keys that it holds (R-ACT-4); `delivered`: what the
    sink said first. `operation`: that of its action, where it was let out, and `called` the first call of it.
    """

    agent: str | None = None
    content: str | None = None
    trigger: str | None = None
    conflicts: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    results: tuple[tuple[str, str | None], ...] = ()
    final: bool = False
    seen: int = 0
    authorized: str | None = None
    refs: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    waiting: TurnDrafted | None = None
    arrived: int = 0
    asks: Ask | None = None
    approvals: tuple[str, ...] = ()
    claims: tuple[tuple[str, str], ...] = ()
    delivered: DeliveryStatus | None = None
    operation: str | None = None
    called: str | None = None


class WaitKind(StrEnum):
    """What is due at its time."""

    CONTEXT = "context"
    DRAFT = "draft"
    ASK = "ask"
    WRITE = "write"
    OFFER = "offer"
    GRANT = "grant"


@row
class Waiting:
    """Something that waits since arrival `since` until stream time `until`; `subject` is its id.

    A context request or a draft waits for its room, an asking draft for a yes, a write for its assessment; an offer
    or a grant runs out.
    """

    since: int
    until: int
    kind: WaitKind
    tenant: str
    subject: str
    agent: str
    room: str | None = None


@row
class Head:
    """The last link of a tenant's chain of traces: how many there are, and its digest."""

    number: int
    digest: str


@row
class OpenTurns:
    """Turns of an agent that asked for context in a room and thread and have no final decision (R-EVI-2)."""

    turns: tuple[str, ...]


@row
class EarlyResults:
    """Tool calls that named a context request before that was seen."""

    calls: tuple[str, ...]


@row
class Flag:
    """Something that is so, for as long as its row is there."""

    since: int = 0


@row
class Deleted:
    """A ref that counts no more; `erased`: by an operator's erasure, so that its text is to be nowhere (R-RET-3)."""

    since: int
    erased: bool = False


#: Whose ids a row of `Tables.commands` is of; no message's id is like them.
OPERATORS, REQUESTS = "operators", "requests"
