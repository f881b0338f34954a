"""Decides what is said to whoever wants a refused thing to pass: the way on from each code.

`docs/refusals.md` is the same as a page, and a test holds them together.
"""

from __future__ import annotations

from types import MappingProxyType

from turngate.schemas.shapes import Code

_ROWS: tuple[tuple[tuple[Code, ...], str], ...] = (
    (
        (Code.AUDIENCE_NOT_SUBSET,),
        "say it in a room whose readers could all read it; offer a second rendering made without it "
        "(`renderings`, each with its `exposed`); or let its author share it (`request_memory_sharing`, then "
        "`share CODE`)",
    ),
    (
        (Code.TRIGGER_NOT_SUBSET,),
        "let somebody who is there now ask again",
    ),
    (
        (Code.DESTINATION_UNKNOWN,),
        "let the connector list it; in an open room say only what is public, or set `open_rooms: own_words`",
    ),
    (
        (Code.DESTINATION_STALE,),
        "let the connector answer `RefreshRequested`; see why it is slow",
    ),
    (
        (Code.DESTINATION_ENLARGED,),
        "draft it again",
    ),
    (
        (Code.CLOCK_SKEW,),
        "set the connector's clock; allow more in `freshness.clock_skew`",
    ),
    (
        (Code.SOURCE_MISSING,),
        "send the observation before the draft; name what the model saw in `exposed`; after "
        "`retention.messages` the source is gone for good",
    ),
    (
        (Code.SOURCE_UNKNOWN,),
        "have rooms listed before they are read; name the tool in the policy with its `audience`; an operator"
        " can `review` a memory and give it an audience",
    ),
    (
        (Code.SOURCE_DELETED,),
        "leave it out",
    ),
    (
        (Code.OTHER_AGENT,),
        "let this agent read it itself",
    ),
    (
        (Code.RESTRICTED_TO_CONVERSATION,),
        "say it there",
    ),
    (
        (Code.LEAF_LIMIT,),
        "use fewer sources; raise the limit",
    ),
    (
        (Code.REVISION_NOT_CURRENT,),
        "use the current revision",
    ),
    (
        (Code.REVISION_STAGED,),
        "let an operator promote it",
    ),
    (
        (Code.GRANT_REVOKED, Code.GRANT_EXPIRED),
        "ask its author again",
    ),
    (
        (Code.PROOF_NOT_LIVE,),
        "let the person sign in again (`AccountProven`)",
    ),
    (
        (Code.AGENT_UNKNOWN,),
        "add it under `agents`; in rooms that started under an older policy that took effect with the next one",
    ),
    (
        (Code.CLASS_EGRESS,),
        "leave it out or say it inside; have the tool class the field lower, if it is no secret",
    ),
    (
        (Code.PERSONAL_EGRESS,),
        "say it in the room that read it or in that person's direct room; read it again in the room that needs it",
    ),
    (
        (Code.SECRET_EXPOSED,),
        "hand the model a placeholder: `ContextDecided.redact` lists the field",
    ),
    (
        (Code.HEALTH_NOT_RETAINED,),
        "answer inside, or in a turn that did not read it",
    ),
    (
        (Code.OPERATION_UNKNOWN,),
        "name it under `operations` with its `audience` and `access`",
    ),
    (
        (Code.SKILL_UNKNOWN,),
        "name it under `skills`; every action needs one",
    ),
    (
        (Code.PARAM_UNKNOWN, Code.PARAM_MISSING),
        "fix the draft; mark it `optional`",
    ),
    (
        (Code.PARAM_INVALID,),
        "write `500.01`, `2026-02-28`, `true`, plainly",
    ),
    (
        (Code.PARAM_OVER_MAX,),
        "a smaller amount; a skill with a higher limit and `approval: required`",
    ),
    (
        (Code.ORIGIN_NOT_PERMITTED,),
        "read it with a tool or let a person say it, and say so (`origin`, `evidence`); or extend `set_by`",
    ),
    (
        (Code.ORIGIN_NOT_PROVEN,),
        "name the message or result that contains it; `from_untrusted: true` if a page may set it",
    ),
    (
        (Code.APPROVAL_MISSING,),
        "show the question to the room; a member, no guest, approves the `fingerprint`",
    ),
    (
        (Code.APPROVAL_MISMATCH,),
        "ask for this one; name none",
    ),
    (
        (Code.NOT_UNIQUE,),
        "it is done: look at the turn before; `withheld` and `failed` give it back; `turngate keys new`",
    ),
    (
        (Code.VALIDITY_EXPIRED,),
        "read a newer one and give its date in `valid_from`",
    ),
    (
        (Code.READ_STALE,),
        "read it again, then draft",
    ),
    (
        (Code.INTERLOCK,),
        "begin a new thread without one of them; wait for `taint_ttl`; mark the operation `internal` if it "
        "is; `mode: ask`",
    ),
    (
        (Code.INTERLOCK_LINK,),
        "a rendering without it; quote the source's link; `link_hosts`",
    ),
    (
        (Code.OUTWARD_EVIDENCE,),
        "approve these bytes; use less; `outward: allow` for one harmless operation",
    ),
    (
        (Code.UNTRUSTED_WRITE,),
        "approve these bytes; ask in a thread that read nothing foreign",
    ),
    (
        (Code.TAINTED_RULE, Code.TAINTED_CORRECTION),
        "let an operator write it",
    ),
    (
        (Code.MACHINE_REFUSAL,),
        "let a person decide it",
    ),
    (
        (Code.DREAM_MIXED_AUDIENCE,),
        "one summary for each audience",
    ),
    (
        (Code.BASE_NOT_CURRENT,),
        "read it, then write on the current revision",
    ),
    (
        (Code.CODE_UNKNOWN, Code.CODE_EXPIRED),
        "ask to share again",
    ),
    (
        (Code.CODE_WRONG_READER, Code.CODE_WRONG_ROOM),
        "that person says it in that direct room",
    ),
    (
        (Code.NOT_SOLE_AUTHOR, Code.NOT_DIRECT),
        "only its one author can share it, in a direct room",
    ),
    (
        (Code.ALREADY_GRANTED,),
        "nothing to do",
    ),
    (
        (Code.DEADLINE_PASSED,),
        "draft it again; give it more time",
    ),
    (
        (Code.TURN_CONFLICT,),
        "one id for one turn, one for one request",
    ),
    (
        (Code.NO_RENDERING,),
        "draft one",
    ),
    (
        (Code.DECISION_ERROR,),
        "report it with the dead letter's or decision's position; a redelivered draft is decided anew",
    ),
    (
        (Code.BARRIER_LATE,),
        "draft it again; look at the broker (`turngate doctor`)",
    ),
    (
        (Code.PAUSED,),
        "`turngate resume`",
    ),
    (
        (Code.UNDRAFTED_CALL,),
        "let the runtime draft the call as an action, or declare the operation `internal` if it is",
    ),
    (
        (Code.INVALID,),
        "[contract.md](contract.md); the dead letter says where it lies",
    ),
    (
        (Code.POLICY_INVALID,),
        "`turngate policy check` names the line",
    ),
    (
        (Code.REVISION_EXISTS,),
        "a new id",
    ),
    (
        (Code.NOT_OPERATOR,),
        "let an operator do it",
    ),
    (
        (Code.TEXT_TOO_LONG,),
        "draft a shorter text, or several turns",
    ),
    (
        (Code.CONNECTOR_REFUSED,),
        "invite the app into the room; see the code in Slack's documentation",
    ),
    (
        (Code.CONNECTOR_UNREACHABLE,),
        "draft it again; look at the network",
    ),
    (
        (Code.RATE_LIMITED,),
        "draft it again; fewer turns in one room",
    ),
    (
        (Code.NOT_CONFIRMED,),
        "look in the room; it is looked for there, and never sent again",
    ),
)
#: What to change, by code. Markdown, as on the page.
WAYS_ON: MappingProxyType[str, str] = MappingProxyType({code.value: way for codes, way in _ROWS for code in codes})


def way_on(code: str) -> str | None:
    """What to change; None for a code that this version does not know."""
    return WAYS_ON.get(code)
