"""Decides how a reason code is said to a person who has not read the contract."""

from __future__ import annotations

from types import MappingProxyType

from turngate.schemas.outputs import Verdict
from turngate.schemas.shapes import Code, Reason

#: One clause for each code, to follow "because". It says nothing of a text, and names nobody.
WORDS: MappingProxyType[Code, str] = MappingProxyType(
    {
        Code.DESTINATION_UNKNOWN: "nobody can say who reads the room it would go to",
        Code.DESTINATION_STALE: "the last list of who reads the room is too old",
        Code.DESTINATION_ENLARGED: "more people read the room now than when this was authorized",
        Code.AUDIENCE_NOT_SUBSET: "somebody who reads the room could not read this where and when it was said",
        Code.TRIGGER_NOT_SUBSET: "somebody reads the room now who could not when the question was asked",
        Code.SOURCE_MISSING: "nothing is known of where this came from",
        Code.SOURCE_UNKNOWN: "it is not known who could read this when it was said",
        Code.SOURCE_DELETED: "it was deleted",
        Code.OTHER_AGENT: "only another agent has seen it",
        Code.RESTRICTED_TO_CONVERSATION: "it may be used in its own conversation only",
        Code.LEAF_LIMIT: "it draws on more sources than can be accounted for",
        Code.REVISION_NOT_CURRENT: "this memory has been replaced",
        Code.REVISION_STAGED: "this memory waits for somebody to approve it",
        Code.GRANT_REVOKED: "its author has taken the permission back",
        Code.GRANT_EXPIRED: "the permission to share it has run out",
        Code.PROOF_NOT_LIVE: "the proof that both accounts are one person's is no longer valid",
        Code.CLOCK_SKEW: "the list of who reads the room claims to be from the future",
        Code.AGENT_UNKNOWN: "the policy does not name this agent",
        Code.ORIGIN_NOT_PERMITTED: "this value may not come from where it is said to come from",
        Code.ORIGIN_NOT_PROVEN: "nothing proves where this value comes from",
        Code.PARAM_UNKNOWN: "the skill has no such parameter",
        Code.PARAM_MISSING: "a parameter is missing",
        Code.PARAM_INVALID: "a value is not of the kind it must be",
        Code.PARAM_OVER_MAX: "a value is larger than is allowed",
        Code.APPROVAL_MISSING: "somebody has to approve it first",
        Code.APPROVAL_MISMATCH: "what was approved is something else",
        Code.NOT_UNIQUE: "it has been done already",
        Code.VALIDITY_EXPIRED: "it is no longer, or not yet, valid",
        Code.READ_STALE: "what it relies on was not read recently enough",
        Code.SKILL_UNKNOWN: "the policy does not name this skill",
        Code.OPERATION_UNKNOWN: "the policy does not name this operation",
        Code.CLASS_EGRESS: "it contains an internal value, and outsiders would get it",
        Code.PERSONAL_EGRESS: "it contains somebody's personal data",
        Code.SECRET_EXPOSED: "it contains a secret",
        Code.HEALTH_NOT_RETAINED: "it touches somebody's health",
        Code.INTERLOCK: "private data and foreign text have met here, and this would go outside",
        Code.INTERLOCK_LINK: "private data and foreign text have met here, and this contains a link",
        Code.OUTWARD_EVIDENCE: "it would take what only people here may know outside",
        Code.UNTRUSTED_WRITE: "it would change something on the word of foreign text",
        Code.TAINTED_RULE: "a rule must not come from foreign text",
        Code.TAINTED_CORRECTION: "a correction must not come from foreign text",
        Code.MACHINE_REFUSAL: "a machine's refusal must not become a rule",
        Code.DREAM_MIXED_AUDIENCE: "it mixes what different people may know",
        Code.BASE_NOT_CURRENT: "what it builds on has been replaced",
        Code.CODE_UNKNOWN: "there is no such code",
        Code.CODE_EXPIRED: "the code has run out",
        Code.CODE_WRONG_READER: "the code was given to somebody else",
        Code.CODE_WRONG_ROOM: "the code was given in another room",
        Code.NOT_SOLE_AUTHOR: "it is not one person's own information",
        Code.NOT_DIRECT: "it can only be asked in a direct conversation",
        Code.ALREADY_GRANTED: "it has been granted already",
        Code.DEADLINE_PASSED: "its time has passed",
        Code.TURN_CONFLICT: "another draft has this turn's name",
        Code.NO_RENDERING: "it says nothing",
        Code.DECISION_ERROR: "deciding it failed",
        Code.BARRIER_LATE: "the log could not be read up to date in time",
        Code.PAUSED: "an operator has stopped the agent",
        Code.UNDRAFTED_CALL: "a tool was called that nobody had authorized",
        Code.INVALID: "the record is not valid",
        Code.POLICY_INVALID: "the policy document is not valid",
        Code.REVISION_EXISTS: "this revision exists already",
        Code.NOT_OPERATOR: "only an operator may do this",
        Code.TEXT_TOO_LONG: "it is longer than one message may be",
        Code.CONNECTOR_REFUSED: "the chat system has refused it",
        Code.CONNECTOR_UNREACHABLE: "the chat system could not be reached",
        Code.RATE_LIMITED: "the chat system takes no more messages for now",
        Code.NOT_CONFIRMED: "it was sent, and nobody knows whether it arrived",
    }
)

#: What became of a draft, in a word or two.
VERDICTS: MappingProxyType[Verdict, str] = MappingProxyType(
    {
        Verdict.DELIVER: "delivered",
        Verdict.DOWNGRADE: "downgraded",
        Verdict.HOLD: "held",
        Verdict.ASK: "asks",
        Verdict.DROP: "refused",
    }
)


def words_of(code: str) -> str:
    """A code in words; a code that this version does not know is said as it is."""
    try:
        return WORDS[Code(code)]
    except ValueError:
        return code


def first_of(reasons: tuple[Reason, ...]) -> Reason | None:
    """The reason to show where there is room for one: one of a source before one of the room."""
    of_sources = [r for r in reasons if r.code not in (Code.DESTINATION_UNKNOWN, Code.DESTINATION_STALE)]
    return next(iter([*of_sources, *reasons]), None)
