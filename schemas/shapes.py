"""Decides what the shapes inside records look like (contract section 2), and which values each may take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, StringConstraints, model_validator

#: One Avro namespace and version for every record (contract section 7).
NAMESPACE = "turngate.v1"

#: The end of the year 9999. What a policy's duration carries beyond it fails (docs/decisions.md, The engine's build).
LATEST = 253_402_300_799_999
#: Milliseconds since the epoch, UTC; `timestamp-millis` in Avro.
Millis = Annotated[int, Field(ge=-(2**47), le=LATEST, json_schema_extra={"avro": "timestamp-millis"})]
#: `[a-z][a-z0-9-]{0,62}` (contract section 1); the number of a partition for records of a partition itself.
Tenant = Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9-]{0,62}|[0-9]{1,9})$")]
#: `<connector>:<workspace>`.
Namespace = Annotated[str, StringConstraints(pattern=r"^[^:/\s]+:[^/\s]+$", max_length=255)]
#: `<namespace>/<account>` or `<namespace>/<conversation>`.
ReaderId = Annotated[str, StringConstraints(pattern=r"^[^:/\s]+:[^/\s]+/\S+$", max_length=512)]
RoomId = Annotated[str, StringConstraints(pattern=r"^[^:/\s]+:[^/\s]+/\S+$", max_length=512)]
#: `<room>/<connector's message id>`.
MessageId = Annotated[str, StringConstraints(pattern=r"^[^:/\s]+:[^/\s]+/\S+/\S+$", max_length=1024)]
#: `message:…`, `revision:…` or `tool:…`; what follows is an id, which may begin with anything, the end of a line too.
Ref = Annotated[str, StringConstraints(pattern=r"^(message|revision|tool):[\s\S]", max_length=1100)]
#: An opaque id that its writer chose.
Id = Annotated[str, StringConstraints(min_length=1, max_length=512)]
#: The id of a request or command, or of the message that was one.
CommandId = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class Shape(BaseModel):
    """A part of a record. Frozen; unknown fields are ignored (contract section 6). No error quotes what was given."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True)


class Scope(StrEnum):
    """Who an audience is: a list, anyone, or not established."""

    LISTED = "listed"
    PUBLIC = "public"
    UNKNOWN = "unknown"


class RoomKind(StrEnum):
    """The shape of a conversation; it says nothing about who can read it (R-ROOM-6)."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"


class Visibility(StrEnum):
    """Who can read a room: its listed members, whole workspaces, or nobody can say."""

    MEMBERS = "members"
    WORKSPACE = "workspace"
    OPEN = "open"


class MemberKind(StrEnum):
    """What an account is to its workspace; `self` is the agent's own account."""

    MEMBER = "member"
    GUEST = "guest"
    EXTERNAL = "external"
    BOT = "bot"
    SELF = "self"


class AuthorKind(StrEnum):
    """Who said a message."""

    PERSON = "person"
    BOT = "bot"
    EXTERNAL = "external"
    SELF = "self"
    SYSTEM = "system"


class Origin(StrEnum):
    """Where a drafted parameter's value is said to come from (R-ACT-1)."""

    READ = "read"
    PERSON = "person"
    IDENTITY = "identity"
    LLM = "llm"


class FieldClass(StrEnum):
    """How far a value may go, from everywhere to nowhere."""

    PUBLIC = "public"
    INTERNAL = "internal"
    PERSONAL = "personal"
    CONFIDENTIAL = "confidential"
    SECRET = "secret"


class Code(StrEnum):
    """Every reason code (contract section 6). Stable: add, never rename."""

    DESTINATION_UNKNOWN = "destination_unknown"
    DESTINATION_STALE = "destination_stale"
    DESTINATION_ENLARGED = "destination_enlarged"
    AUDIENCE_NOT_SUBSET = "audience_not_subset"
    TRIGGER_NOT_SUBSET = "trigger_not_subset"
    SOURCE_MISSING = "source_missing"
    SOURCE_UNKNOWN = "source_unknown"
    SOURCE_DELETED = "source_deleted"
    OTHER_AGENT = "other_agent"
    RESTRICTED_TO_CONVERSATION = "restricted_to_conversation"
    LEAF_LIMIT = "leaf_limit"
    REVISION_NOT_CURRENT = "revision_not_current"
    REVISION_STAGED = "revision_staged"
    GRANT_REVOKED = "grant_revoked"
    GRANT_EXPIRED = "grant_expired"
    PROOF_NOT_LIVE = "proof_not_live"
    CLOCK_SKEW = "clock_skew"
    AGENT_UNKNOWN = "agent_unknown"
    ORIGIN_NOT_PERMITTED = "origin_not_permitted"
    ORIGIN_NOT_PROVEN = "origin_not_proven"
    PARAM_UNKNOWN = "param_unknown"
    PARAM_MISSING = "param_missing"
    PARAM_INVALID = "param_invalid"
    PARAM_OVER_MAX = "param_over_max"
    APPROVAL_MISSING = "approval_missing"
    APPROVAL_MISMATCH = "approval_mismatch"
    NOT_UNIQUE = "not_unique"
    VALIDITY_EXPIRED = "validity_expired"
    READ_STALE = "read_stale"
    SKILL_UNKNOWN = "skill_unknown"
    OPERATION_UNKNOWN = "operation_unknown"
    CLASS_EGRESS = "class_egress"
    PERSONAL_EGRESS = "personal_egress"
    SECRET_EXPOSED = "secret_exposed"
    HEALTH_NOT_RETAINED = "health_not_retained"
    INTERLOCK = "interlock"
    INTERLOCK_LINK = "interlock_link"
    OUTWARD_EVIDENCE = "outward_evidence"
    UNTRUSTED_WRITE = "untrusted_write"
    TAINTED_RULE = "tainted_rule"
    TAINTED_CORRECTION = "tainted_correction"
    MACHINE_REFUSAL = "machine_refusal"
    DREAM_MIXED_AUDIENCE = "dream_mixed_audience"
    BASE_NOT_CURRENT = "base_not_current"
    CODE_UNKNOWN = "code_unknown"
    CODE_EXPIRED = "code_expired"
    CODE_WRONG_READER = "code_wrong_reader"
    CODE_WRONG_ROOM = "code_wrong_room"
    NOT_SOLE_AUTHOR = "not_sole_author"
    NOT_DIRECT = "not_direct"
    ALREADY_GRANTED = "already_granted"
    DEADLINE_PASSED = "deadline_passed"
    TURN_CONFLICT = "turn_conflict"
    NO_RENDERING = "no_rendering"
    DECISION_ERROR = "decision_error"
    BARRIER_LATE = "barrier_late"
    PAUSED = "paused"
    UNDRAFTED_CALL = "undrafted_call"
    INVALID = "invalid"
    POLICY_INVALID = "policy_invalid"
    REVISION_EXISTS = "revision_exists"
    NOT_OPERATOR = "not_operator"
    TEXT_TOO_LONG = "text_too_long"
    CONNECTOR_REFUSED = "connector_refused"
    CONNECTOR_UNREACHABLE = "connector_unreachable"
    RATE_LIMITED = "rate_limited"
    NOT_CONFIRMED = "not_confirmed"


class Audience(Shape):
    """A set of readers: all full members of `workspaces`, and the listed `readers`.

    `guests` is the subset of `readers` that their workspace does not count as full members; `memberships` maps a
    reader to further workspaces of which it is a full member (Enterprise Grid). Everything sorted, no duplicates.
    The shorthands of scenarios and policies are accepted: `public`, `unknown`, `{workspace: …}`, `{readers: […]}`.
    """

    scope: Scope = Scope.LISTED
    workspaces: tuple[Namespace, ...] = ()
    readers: tuple[ReaderId, ...] = ()
    guests: tuple[ReaderId, ...] = ()
    memberships: dict[ReaderId, tuple[Namespace, ...]] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _in_order(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, cls):
            return data
        if isinstance(data, str):
            data = {"scope": data}
        elif isinstance(data, dict) and "workspace" in data:
            data = {**{k: v for k, v in data.items() if k != "workspace"}, "workspaces": [data["workspace"]]}
        made = handler(data)
        if not set(made.guests).union(made.memberships) <= set(made.readers):
            raise ValueError("guests and memberships must be among the readers")
        if made.scope is not Scope.LISTED and (made.readers or made.workspaces):
            raise ValueError("only a listed audience names readers or workspaces")
        # In place: what `Audience(...)` makes is `made` itself, and pydantic drops any other object returned from here.
        object.__setattr__(made, "workspaces", _ascending(made.workspaces))
        object.__setattr__(made, "readers", _ascending(made.readers))
        object.__setattr__(made, "guests", _ascending(made.guests))
        memberships = {r: _ascending(made.memberships[r]) for r in sorted(made.memberships)}
        object.__setattr__(made, "memberships", memberships)
        return made


def _ascending(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


class RoomInfo(Shape):
    """What a listing says of a room. A missing field is missing, not false (R-ROOM-7)."""

    kind: RoomKind | None = None
    visibility: Visibility | None = None
    workspaces: tuple[Namespace, ...] | None = None
    archived: bool | None = None


class Member(Shape):
    """One account that a listing names; `workspaces`: further ones of which a `member` is a full member."""

    reader: ReaderId
    kind: MemberKind
    workspaces: tuple[Namespace, ...] = ()


class Rendering(Shape):
    """One way to say the turn. `request` null: it saw all context answers of the turn; `exposed` null: all exposed."""

    text: str
    request: Id | None = None
    exposed: tuple[Ref, ...] | None = None


class Param(Shape):
    """A drafted parameter: its value as text, where that is said to come from, and the ref that proves it."""

    name: Id
    value: str
    origin: Origin = Origin.LLM
    evidence: Ref | None = None


class Action(Shape):
    """An operation that a draft wants done."""

    operation: Id
    skill: Id | None = None
    params: tuple[Param, ...] = ()
    approval: Id | None = None
    valid_from: Millis | None = None


class ValueField(Shape):
    """A value that a tool returned (`Field` in the contract): how far it may go, and whom it is about."""

    name: Id
    value: str
    class_: FieldClass = Field(default=FieldClass.SECRET, alias="class")
    subject: ReaderId | None = None
    health: bool = False


class Reason(Shape):
    """Why something was refused. `ref` is what the code is about (contract section 6), never another reader or room."""

    code: str
    ref: str | None = None
    detail: str | None = None


class Position(Shape):
    """A place on a topic: the offset after the last record that counts."""

    topic: str
    partition: int
    offset: int


class Leaf(Shape):
    """One indivisible piece of evidence: who said or returned it, where, and who could read it then."""

    agent: Id
    author: ReaderId | None = None
    room: RoomId | None = None
    open: bool = False
    call: Id | None = None
    audience: Audience
    via: Id | None = None
    restrictions: tuple[RoomId, ...] = ()
    private: bool = True
    untrusted: bool = True
