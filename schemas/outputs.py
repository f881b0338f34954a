"""Decides which records the pipeline writes (contract section 4)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from turngate.schemas.inputs import MemoryKind, Record
from turngate.schemas.shapes import (
    Action,
    Audience,
    CommandId,
    Id,
    Leaf,
    MessageId,
    Millis,
    Position,
    Reason,
    Ref,
    RoomId,
    Shape,
)


class Because(StrEnum):
    """Why a listing is asked for."""

    CONTEXT = "context"
    DRAFT = "draft"
    JOIN = "join"
    OBSERVATION = "observation"
    WRITE = "write"


class EvidenceStatus(StrEnum):
    """Whether a ref's audience is established."""

    KNOWN = "known"
    UNKNOWN = "unknown"


class RevisionState(StrEnum):
    """Whether a revision may be used."""

    STAGED = "staged"
    CURRENT = "current"
    RETIRED = "retired"


class GrantState(StrEnum):
    """Whether a grant counts."""

    ACTIVE = "active"
    REVOKED = "revoked"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Attribution(StrEnum):
    """Whether the agent may tell whose the evidence is (R-GRT-8)."""

    SHOWN = "shown"
    HIDDEN = "hidden"


class Verdict(StrEnum):
    """What is decided of a draft; `hold` and `ask` are not final."""

    DELIVER = "deliver"
    DOWNGRADE = "downgrade"
    HOLD = "hold"
    ASK = "ask"
    DROP = "drop"


class ShadowVerdict(StrEnum):
    """What a decision comes to under one policy: a draft's verdict, or of a context request that it is answered.

    `waits`: it is not decided yet.
    """

    DELIVER = "deliver"
    DOWNGRADE = "downgrade"
    HOLD = "hold"
    ASK = "ask"
    DROP = "drop"
    ANSWERED = "answered"
    WAITS = "waits"


class Outcome(StrEnum):
    """What a `share` or `unshare` message did."""

    GRANTED = "granted"
    REVOKED = "revoked"
    CANCELLED = "cancelled"
    REFUSED = "refused"


class Forgotten(StrEnum):
    """Why a room was forgotten."""

    EMPTY = "empty"
    INACTIVE = "inactive"


class Permitted(Shape):
    """A candidate that the destination may hear; `redact`: fields that the model must not see."""

    ref: Ref
    attribution: Attribution = Attribution.SHOWN
    grant: Id | None = None
    redact: tuple[str, ...] = ()


class Withheld(Shape):
    """A candidate that it may not, by ref and code only (R-TURN-1)."""

    ref: Ref
    reasons: tuple[Reason, ...] = ()


class TracedOutcome(Shape):
    """Leaves of a ref within whose own audiences not every reader of the destination lies, and what they came to.

    `codes` are against them; where there are none, it was permitted all the same: by `own_words` of an open room
    (R-AUD-10), a `grant` (R-GRT-7) or two `proofs` (R-IDN-2).
    """

    leaves: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    own_words: bool = False
    grant: Id | None = None
    proofs: tuple[Id, ...] = ()


class TracedRef(Shape):
    """One compared ref in the audit trace: ids and digests only.

    `leaves` are those that the destination may hear as they are, `others` the rest; `reasons` are about this ref, so
    they do not name it. `unlisted`: how many leaves more there were than a trace lists.
    """

    ref: Ref
    leaves: tuple[str, ...] = ()
    permitted: bool = False
    reasons: tuple[Reason, ...] = ()
    others: tuple[TracedOutcome, ...] = ()
    unlisted: int = 0


class ShadowOutcome(Shape):
    """What a decision comes to under one policy, why, and what is let through: a rendering's number, or refs."""

    verdict: ShadowVerdict
    reasons: tuple[Reason, ...] = ()
    passes: tuple[str, ...] = ()


class RefreshRequested(Record):
    """A connector is asked to list a room for an agent before `need_by`."""

    agent: Id
    room: RoomId
    because: Because
    need_by: Millis


class EvidenceRecorded(Record):
    """The immutable evidence of a message or a tool call, as one agent has it (R-EVI-1)."""

    ref: Ref
    agent: Id
    leaves: tuple[Leaf, ...] = ()
    restrictions: tuple[RoomId, ...] = ()
    private: bool = True
    untrusted: bool = True
    status: EvidenceStatus


class RevisionRecorded(Record):
    """A revision of a memory with its evidence."""

    write: Id
    agent: Id
    memory: Id
    revision: Id
    kind: MemoryKind
    state: RevisionState
    base: Id | None = None
    leaves: tuple[Leaf, ...] = ()
    restrictions: tuple[RoomId, ...] = ()
    private: bool = True
    untrusted: bool = True
    notes: tuple[str, ...] = ()


class WriteRefused(Record):
    """A memory write that was not taken up."""

    write: Id
    reasons: tuple[Reason, ...] = ()


class SharingOffered(Record):
    """The exact text, the audience, and the code with which its author shares it (R-GRT-1)."""

    request: Id
    agent: Id
    room: RoomId
    revision: Id
    text: str
    audience: Audience
    code: str
    expires_at: Millis


class GrantChanged(Record):
    """A grant began or ended."""

    grant: Id
    agent: Id
    memory: Id
    revision: Id
    audience: Audience
    state: GrantState
    by: str


class CommandRefused(Record):
    """A request, command or `share` message that was not carried out."""

    command: CommandId
    status: int
    reasons: tuple[Reason, ...] = ()


class ContextDecided(Record):
    """Which candidates may be handed to the inference, and which may not."""

    request: Id
    turn: Id
    permitted: tuple[Permitted, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    questions: tuple[Id, ...] | None = None


class TurnDecided(Record):
    """What became of a draft. `rendering` is the number of the one that was authorized."""

    turn: Id
    agent: Id
    room: RoomId
    verdict: Verdict
    rendering: int | None = None
    reasons: tuple[Reason, ...] = ()
    fingerprint: str | None = None
    provenance: tuple[Ref, ...] = ()
    leaves_digest: str
    as_of: tuple[Position, ...] = ()
    policy: str
    decision: str


class CommandHandled(Record):
    """A `share` or `unshare` message was consumed before inference (R-GRT-5)."""

    message: MessageId
    outcome: Outcome


class TurnAuthorized(Record):
    """What may be sent, byte for byte, to whom, and until when."""

    turn: Id
    agent: Id
    room: RoomId
    thread: Id | None = None
    broadcast: bool = False
    text: str | None = None
    action: Action | None = None
    destination: Audience
    provenance: tuple[Ref, ...] = ()
    grants: tuple[Id, ...] = ()
    proofs: tuple[Id, ...] = ()
    valid_until: Millis | None = None
    decision: str


class DecisionTraced(Record):
    """The full trace of a decision for operators: ids and digests, no text, no value; a hash chain for each tenant.

    `previous` is the digest of the tenant's trace before this one, whose `number` is one less; `decided` is that of the
    `TurnDecided` or `ContextDecided`, `authorized` that of the `TurnAuthorized` (`schemas.digests` says what they
    cover). `destination` is the digest of the audience that it was decided against. `lower`, `upper` (digests),
    `listing` (refreshes) and `listed_at` are what was known of the room; null and empty where nothing was, or where it
    was not looked at. `unlisted`: how many refs more were compared than a trace lists.

    One with a `call` is of no decision: `reasons` say what is reported of that tool call (`undrafted_call`).
    """

    decision: str
    turn: Id | None = None
    request: Id | None = None
    policy: str
    destination: str
    refs: tuple[TracedRef, ...] = ()
    as_of: tuple[Position, ...] = ()
    previous: str | None = None
    number: int = 0
    agent: Id | None = None
    room: RoomId | None = None
    call: Id | None = None
    reasons: tuple[Reason, ...] = ()
    rendering: int | None = None
    lower: str | None = None
    upper: str | None = None
    listing: tuple[Id, ...] = ()
    listed_at: Millis | None = None
    grants: tuple[Id, ...] = ()
    proofs: tuple[Id, ...] = ()
    unlisted: int = 0
    decided: str | None = None
    authorized: str | None = None


class ShadowDecided(Record):
    """A decision that another policy would have made otherwise; nothing is done about it.

    It is of a `turn` or of a context `request`. `policy` is the other one's version, `document` the SHA-256 of its text
    in UTF-8. `was` is what was decided, `now` what would be. `abridged`: with all its reasons and refs it could not be
    written, so both are without them.
    """

    room: RoomId
    turn: Id | None = None
    request: Id | None = None
    policy: str
    document: str
    was: ShadowOutcome
    now: ShadowOutcome
    abridged: bool = False


class RoomForgotten(Record):
    """A room's time ran out (R-RET-1)."""

    room: RoomId
    because: Forgotten


class ErasureApplied(Record):
    """Which refs an erasure reached."""

    command: Id
    refs: tuple[Ref, ...] = ()


class StretchApplied(Record):
    """Which stretch of each input topic one commit took in, so that a replay is exact (R-RUN-3)."""

    partition: int
    from_: tuple[Position, ...] = Field(default=(), alias="from")
    to: tuple[Position, ...] = ()
    engine: str
    late: tuple[Position, ...] = ()


class RecordRefused(Record):
    """A dead letter: it points at the record and does not copy it. `detail` for `policy_invalid` only."""

    code: str
    topic: str
    partition: int
    offset: int
    timestamp: Millis
    size: int
    sha256: str
    schema_: str | None = Field(default=None, alias="schema")
    detail: str | None = None
