"""Decides which records there are and which topic each belongs to (contract sections 3 and 4)."""

from __future__ import annotations

from types import MappingProxyType

from turngate.schemas import inputs, outputs
from turngate.schemas.inputs import Record

#: Input topics in the order of contract section 3, which is the order within one timestamp (R-RUN-2).
INPUT_TOPICS: MappingProxyType[str, tuple[type[Record], ...]] = MappingProxyType(
    {
        "membership-refreshes": (inputs.MembershipPage, inputs.MembershipChanged, inputs.RoomChanged),
        "observed-messages": (inputs.MessageObserved, inputs.MessageDeleted),
        "identity-proofs": (inputs.AccountProven, inputs.ProofRevoked),
        "tool-results": (inputs.ToolReturned,),
        "memory-writes": (inputs.MemoryWrite, inputs.SensitivityAssessed, inputs.SharingRequested),
        "operator-commands": (
            inputs.MemoryWrite,
            inputs.GrantCommanded,
            inputs.AgentPaused,
            inputs.ErasureCommanded,
        ),
        "turn-drafts": (inputs.ContextRequested, inputs.TurnDrafted),
        "approvals": (inputs.ActionApproved, inputs.ApprovalWithdrawn),
        "deliveries": (inputs.TurnDelivered,),
        "policies": (inputs.PolicyPublished,),
        "ticks": (inputs.Tick,),
    }
)

OUTPUT_TOPICS: MappingProxyType[str, tuple[type[Record], ...]] = MappingProxyType(
    {
        "refresh-requests": (outputs.RefreshRequested,),
        "source-evidence": (outputs.EvidenceRecorded,),
        "memory-revisions": (outputs.RevisionRecorded, outputs.WriteRefused),
        "grants": (outputs.SharingOffered, outputs.GrantChanged, outputs.CommandRefused),
        "turn-verdicts": (outputs.ContextDecided, outputs.TurnDecided, outputs.CommandHandled),
        "outbound": (outputs.TurnAuthorized,),
        "audit": (outputs.DecisionTraced,),
        "shadow-verdicts": (outputs.ShadowDecided,),
        "room-lifecycle": (outputs.RoomForgotten, outputs.ErasureApplied),
        "applied": (outputs.StretchApplied,),
        "dead-letters": (outputs.RecordRefused,),
    }
)

#: The topic whose records wait for the barrier and are applied last in a stretch (R-RUN-2).
DRAFTS = "turn-drafts"
TICKS = "ticks"
APPLIED = "applied"
#: What another policy would have decided (`turngate worker --shadow`); a worker without one writes nothing there.
SHADOW = "shadow-verdicts"
DEAD_LETTERS = "dead-letters"
#: Topics on which an operator's word counts, and nothing else does (R-EVI-10).
OPERATOR_TOPICS = frozenset({"operator-commands", "policies"})

#: Every record by its name.
RECORDS: MappingProxyType[str, type[Record]] = MappingProxyType(
    {m.__name__: m for ms in (*INPUT_TOPICS.values(), *OUTPUT_TOPICS.values()) for m in ms}
)
#: The topic of each output record.
OUTPUT_TOPIC: MappingProxyType[str, str] = MappingProxyType(
    {m.__name__: topic for topic, ms in OUTPUT_TOPICS.items() for m in ms}
)
#: The topic of each input record where it has only one; of a `MemoryWrite`, see `topic_of`.
_INPUT_TOPIC = {m.__name__: topic for topic, ms in reversed(list(INPUT_TOPICS.items())) for m in ms}


def topic_of(record: str, value: dict[str, object]) -> str:
    """The topic that a record of this name belongs on, `value` being its fields (contract section 8).

    A `MemoryWrite` is on `operator-commands` if `by: operator` or its op is `promote`, `reject` or `review`, else on
    `memory-writes`. Raises `KeyError` for a name that is no record's.
    """
    if record == "MemoryWrite":
        operators = value.get("by") == "operator" or value.get("op") in ("promote", "reject", "review")
        return "operator-commands" if operators else "memory-writes"
    return _INPUT_TOPIC[record] if record in _INPUT_TOPIC else OUTPUT_TOPIC[record]
