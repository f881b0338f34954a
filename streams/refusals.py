"""Decides which recorded turns were refused, and by which rule: what an agent that was only watched would have lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.schemas.shapes import Code, Reason
from turngate.streams.recorded import Records

#: The rule behind each code that a turn is refused for.
RULES: MappingProxyType[Code, str] = MappingProxyType(
    {
        Code.DESTINATION_UNKNOWN: "R-TURN-6",
        Code.DESTINATION_STALE: "R-ROOM-10",
        Code.AUDIENCE_NOT_SUBSET: "R-AUD-2",
        Code.TRIGGER_NOT_SUBSET: "R-TURN-3",
        Code.SOURCE_MISSING: "R-AUD-3",
        Code.SOURCE_UNKNOWN: "R-AUD-2",
        Code.SOURCE_DELETED: "R-AUD-6",
        Code.OTHER_AGENT: "R-AUD-2",
        Code.RESTRICTED_TO_CONVERSATION: "R-AUD-2",
        Code.LEAF_LIMIT: "R-EVI-5",
        Code.REVISION_NOT_CURRENT: "R-EVI-8",
        Code.REVISION_STAGED: "R-MEM-2",
        Code.GRANT_REVOKED: "R-GRT-7",
        Code.GRANT_EXPIRED: "R-GRT-7",
        Code.PROOF_NOT_LIVE: "R-IDN-3",
        Code.CLOCK_SKEW: "R-TIME-2",
        Code.AGENT_UNKNOWN: "R-ROOM-7",
        Code.ORIGIN_NOT_PERMITTED: "R-ACT-1",
        Code.ORIGIN_NOT_PROVEN: "R-ACT-1",
        Code.PARAM_UNKNOWN: "R-ACT-2",
        Code.PARAM_MISSING: "R-ACT-2",
        Code.PARAM_INVALID: "R-ACT-2",
        Code.PARAM_OVER_MAX: "R-ACT-2",
        Code.APPROVAL_MISSING: "R-ACT-3",
        Code.APPROVAL_MISMATCH: "R-ACT-3",
        Code.NOT_UNIQUE: "R-ACT-4",
        Code.VALIDITY_EXPIRED: "R-ACT-5",
        Code.READ_STALE: "R-ACT-5",
        Code.SKILL_UNKNOWN: "R-ACT-2",
        Code.OPERATION_UNKNOWN: "R-ACT-2",
        Code.CLASS_EGRESS: "R-EGR-2",
        Code.PERSONAL_EGRESS: "R-EGR-3",
        Code.SECRET_EXPOSED: "R-EGR-4",
        Code.HEALTH_NOT_RETAINED: "R-EGR-6",
        Code.INTERLOCK: "R-TNT-5",
        Code.INTERLOCK_LINK: "R-TNT-5",
        Code.OUTWARD_EVIDENCE: "R-TNT-7",
        Code.UNTRUSTED_WRITE: "R-TNT-8",
        Code.DEADLINE_PASSED: "R-TURN-9",
        Code.NO_RENDERING: "R-TURN-9",
        Code.DECISION_ERROR: "R-RUN-6",
        Code.BARRIER_LATE: "R-RUN-2",
        Code.PAUSED: "R-POL-4",
    }
)
_WAITS = (Verdict.HOLD, Verdict.ASK)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn ended. `week`: the ISO week of the decision, in UTC."""

    turn: str
    agent: str
    room: str
    week: str
    passed: bool
    reasons: tuple[Reason, ...]


def ended(decided: TurnDecided) -> Ended | None:
    """How a turn ended by this decision; None: it did not, or it is another draft's of its name that did (R-TURN-8).

    A `downgrade` to the policy's notice has not passed: the agent's words were not said.
    """
    conflict = any(reason.code == Code.TURN_CONFLICT for reason in decided.reasons)
    if decided.verdict in _WAITS or conflict:
        return None
    # an action alone has no rendering, and no reasons where it passes (R-TURN-2)
    passed = decided.verdict is not Verdict.DROP and (decided.rendering is not None or not decided.reasons)
    year, week, _ = datetime.fromtimestamp(decided.at / 1000, UTC).isocalendar()
    return Ended(decided.turn, decided.agent, decided.room, f"{year}-W{week:02}", passed, decided.reasons)


def ends(values: Iterable[bytes | None], codec: Codec, tenant: str) -> dict[str, Ended]:
    """How each turn of a tenant ended, by its id, as these records of `turn-verdicts` say."""
    found: dict[str, Ended] = {}
    for value in values:
        try:
            record = codec.decode(value)
        except Undecodable:
            continue
        end = ended(record) if isinstance(record, TurnDecided) and record.tenant == tenant else None
        if end is not None:
            found[end.turn] = end
    return found


def recorded_ends(records: Records, codec: Codec, tenant: str) -> dict[str, Ended]:
    """How each turn of a tenant ended, as it was recorded. Raises `LogError` where that cannot be read."""
    found: dict[str, Ended] = {}
    for partition in range(records.partitions):
        first = records.first("turn-verdicts", partition)
        values = (message.value for message in records.scan("turn-verdicts", partition, first))
        found |= ends(values, codec, tenant)
    return found
