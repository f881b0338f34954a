"""Decides which records come in, and what makes one of them invalid (contract section 3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from turngate.schemas.shapes import (
    Action,
    Audience,
    AuthorKind,
    Id,
    Member,
    MemberKind,
    MessageId,
    Millis,
    Namespace,
    ReaderId,
    Reason,
    Ref,
    Rendering,
    RoomId,
    RoomInfo,
    Shape,
    Tenant,
    ValueField,
)


class Record(Shape):
    """What crosses a topic. `at` is when it happened as its writer saw it; it never moves the clock (R-TIME-1)."""

    tenant: Tenant
    at: Millis


class Change(StrEnum):
    """What a membership event says."""

    JOINED = "joined"
    LEFT = "left"


class WriteOp(StrEnum):
    """What a memory write does to a memory."""

    CREATE = "create"
    AMEND = "amend"
    DERIVE = "derive"
    FORGET = "forget"
    PROMOTE = "promote"
    REJECT = "reject"
    REVIEW = "review"


class WriteBy(StrEnum):
    """Which process wrote a memory."""

    TURN = "turn"
    OPERATOR = "operator"
    DREAM = "dream"
    DOCUMENT = "document"
    DISTILL = "distill"
    CORRECTION = "correction"
    REFUSAL = "refusal"


class MemoryKind(StrEnum):
    """Three memories and a notebook (rules MEM)."""

    NOTE = "note"
    WORLD = "world"
    RULE = "rule"
    TRANSCRIPT = "transcript"


class Label(StrEnum):
    """What a sensitivity assessor says; advisory, it can only restrict (R-SEN-2)."""

    ORDINARY = "ordinary"
    SENSITIVE = "sensitive"
    UNCERTAIN = "uncertain"


class GrantOp(StrEnum):
    """What an operator does to a grant."""

    GRANT = "grant"
    REVOKE = "revoke"


class DeliveryStatus(StrEnum):
    """What became of an authorized turn."""

    SENT = "sent"
    WITHHELD = "withheld"
    FAILED = "failed"
    UNCERTAIN = "uncertain"


class MembershipPage(Record):
    """One page of an authenticated listing of a room; `info` on page 0, `started_at` of the whole listing."""

    agent: Id
    room: RoomId
    refresh: Id
    page: int
    last: bool
    started_at: Millis
    info: RoomInfo | None = None
    members: tuple[Member, ...] = ()
    error: str | None = None

    @model_validator(mode="after")
    def _page(self) -> Self:
        if not 0 <= self.page < 1_000_000:
            raise ValueError("page must be a number from 0")
        return self


class MembershipChanged(Record):
    """Somebody joined or left; `agent` null: as every agent knows the room."""

    agent: Id | None = None
    room: RoomId
    reader: ReaderId
    kind: MemberKind
    workspaces: tuple[Namespace, ...] = ()
    change: Change


class RoomChanged(Record):
    """The room became something else (`what`, in words), so that its listings say nothing any more."""

    agent: Id | None = None
    room: RoomId
    what: str


class InRoom(Record):
    """A record about one message of one room."""

    agent: Id
    room: RoomId
    message: MessageId

    @model_validator(mode="after")
    def _under_its_room(self) -> Self:
        if not self.message.startswith(self.room + "/"):
            raise ValueError("message must lie under its room")
        return self


class MessageObserved(InRoom):
    """A message as a connector saw it. `turn`: of the agent's own; `quotes`: messages whose text it embeds."""

    thread: Id | None = None
    author: ReaderId | None = None
    author_kind: AuthorKind
    text: str | None = None
    edited: bool = False
    turn: Id | None = None
    quotes: tuple[Ref, ...] = ()


class MessageDeleted(InRoom):
    """A message is gone, for every agent (R-AUD-6)."""


class AccountProven(Record):
    """`reader` was proven, live, to belong to the opaque `subject`, for one agent."""

    agent: Id
    proof: Id
    reader: ReaderId
    subject: Id
    expires_at: Millis


class ProofRevoked(Record):
    """A proof counts no more."""

    proof: Id


class ToolReturned(Record):
    """What a tool's server returned to an agent in a room. `error`: a text, which counts as foreign."""

    agent: Id
    room: RoomId
    thread: Id | None = None
    turn: Id | None = None
    request: Id | None = None
    call: Id
    server: Id
    operation: Id
    audience: Audience | None = None
    private: bool | None = None
    untrusted: bool | None = None
    fields: tuple[ValueField, ...] = ()
    error: str | None = None


class MemoryWrite(Record):
    """A memory is made, changed or judged."""

    agent: Id
    write: Id
    memory: Id
    revision: Id
    op: WriteOp
    by: WriteBy
    kind: MemoryKind
    base: Id | None = None
    text: str | None = None
    sources: tuple[Ref, ...] = ()
    room: RoomId | None = None
    restrict: bool = False
    health: bool = False
    turn: Id | None = None
    audience: Audience | None = None


class SensitivityAssessed(Record):
    """An assessor's word on a write."""

    write: Id
    label: Label
    note: str | None = None
    ask_author: bool | None = None


class SharingRequested(Record):
    """The agent asks, in a direct room, whether its author would share a revision with `audience`."""

    agent: Id
    request: Id
    room: RoomId
    revision: Id
    audience: Audience


class GrantCommanded(Record):
    """An operator grants or revokes."""

    command: Id
    operator: Id
    op: GrantOp
    agent: Id
    memory: Id | None = None
    revision: Id | None = None
    audience: Audience | None = None
    grant: Id | None = None
    expires_at: Millis | None = None


class AgentPaused(Record):
    """An operator stops an agent, or lets it go on, everywhere or in one room (R-POL-4)."""

    command: Id
    operator: Id
    agent: Id
    room: RoomId | None = None
    paused: bool


class ErasureCommanded(Record):
    """An operator erases a room, an author or a memory: exactly one of them (R-RET-3)."""

    command: Id
    operator: Id
    room: RoomId | None = None
    reader: ReaderId | None = None
    memory: Id | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(x is not None for x in (self.room, self.reader, self.memory)) != 1:
            raise ValueError("an erasure names exactly one of room, reader and memory")
        return self


class ContextRequested(Record):
    """Asked before inference: which of the candidates may this destination hear?"""

    agent: Id
    request: Id
    turn: Id
    room: RoomId
    thread: Id | None = None
    trigger: Ref | None = None
    candidates: tuple[Ref, ...] = ()


class TurnDrafted(Record):
    """Asked before sending: may one of the renderings be said, and the action be done?"""

    agent: Id
    turn: Id
    room: RoomId
    thread: Id | None = None
    broadcast: bool = False
    trigger: Ref | None = None
    exposed: tuple[Ref, ...] = ()
    wrote: tuple[Id, ...] = ()
    retired: tuple[Id, ...] = ()
    renderings: tuple[Rendering, ...] = ()
    action: Action | None = None
    deadline: Millis | None = None


class ActionApproved(Record):
    """A person approves exactly the bytes of a fingerprint (R-TNT-6)."""

    approval: Id
    fingerprint: Id
    by: ReaderId
    room: RoomId
    expires_at: Millis | None = None


class ApprovalWithdrawn(Record):
    """An approval counts no more."""

    approval: Id


class TurnDelivered(Record):
    """What the delivering sink, or whoever executed the action, did."""

    turn: Id
    room: RoomId
    status: DeliveryStatus
    message: MessageId | None = None
    reasons: tuple[Reason, ...] = ()


class PolicyPublished(Record):
    """A tenant's policy document (contract section 5) as JSON or YAML text; `version` is its number as text."""

    version: Id
    document: str


class Tick(Record):
    """A second has passed; `tenant` is the partition's number (R-TIME-3)."""
