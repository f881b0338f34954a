"""Decides which values that a room read may be said where, and handed to which operation (rules EGR)."""

from __future__ import annotations

from collections.abc import Iterable

from turngate.processors.actions import internal
from turngate.processors.evidence import evidence_of, tool_ref
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination
from turngate.processors.remembering import Reading, Remembered, remembered
from turngate.processors.sources import source
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.shapes import Code, FieldClass, Reason, Scope


def external(to: Destination) -> bool:
    """Whether outsiders may hear what is said there (R-EGR-2)."""
    return to.audience.scope is not Scope.LISTED or bool(to.audience.guests)


def egress(
    ledger: Ledger,
    draft: TurnDrafted,
    text: str | None,
    refs: tuple[str, ...],
    calls: list[str],
    to: Destination,
) -> list[Reason]:
    """The reasons against the text of one way to say the turn, and against the action's parameters.

    `refs` are what it was made from, `calls` those of which it has values.
    """
    action = draft.action
    inside = action is None or internal(ledger, draft.room, action.operation)
    against: list[Reason] = []
    if calls and ((text is not None and external(to)) or not inside):
        against += [Reason(code=Code.HEALTH_NOT_RETAINED, ref=ref) for ref in refs if _unknown(ledger, ref, draft)]
    known = [some for some in (_values_of(ledger, calls, draft.agent), remembered(ledger, draft.room)) if some]
    if not known:
        return against
    if text is not None:
        against += [r for read in _found(ledger, known, [text]) if (r := _said(read, draft.room, to)) is not None]
    if action is not None:
        values = [param.value for param in action.params]
        found = _found(ledger, known, values)
        against += [r for read in found if (r := _handed(read, draft.room, inside=inside)) is not None]
    return against


def _values_of(ledger: Ledger, calls: list[str], agent: str) -> Remembered:
    made_of = Remembered()
    for call in calls:
        made_of.add(ledger, tool_ref(call), agent)
    return made_of


def _found(ledger: Ledger, known: Iterable[Remembered], texts: list[str]) -> list[Reading]:
    """What is in one of these texts of what the room has read, and of what the draft was made from (R-EGR-1)."""
    return list(dict.fromkeys(reading for some in known for reading in some.within(ledger, texts)))


def _said(read: Reading, room: str, to: Destination) -> Reason | None:
    value = read.value
    match value.kind:
        case FieldClass.SECRET:  # R-EGR-4
            return Reason(code=Code.SECRET_EXPOSED, ref=value.name)
        case FieldClass.PERSONAL:  # R-EGR-3
            told = read.room == room or (to.sole is not None and to.sole == value.subject)
            return None if told else Reason(code=Code.PERSONAL_EGRESS, ref=value.name)
        case FieldClass.INTERNAL | FieldClass.CONFIDENTIAL:  # R-EGR-2
            return Reason(code=Code.CLASS_EGRESS, ref=value.name) if external(to) else None
    return None


def _handed(read: Reading, room: str, *, inside: bool) -> Reason | None:
    value = read.value
    match value.kind:
        case FieldClass.SECRET:
            return Reason(code=Code.SECRET_EXPOSED, ref=value.name)
        case FieldClass.PERSONAL:
            return None if inside and read.room == room else Reason(code=Code.PERSONAL_EGRESS, ref=value.name)
        case FieldClass.INTERNAL | FieldClass.CONFIDENTIAL:
            return None if inside else Reason(code=Code.CLASS_EGRESS, ref=value.name)
    return None


def _unknown(ledger: Ledger, ref: str, draft: TurnDrafted) -> bool:
    """Whether a ref was made of a health field, or of values that are not remembered any more (R-EGR-6)."""
    found = source(ledger, ref, draft.agent)
    for call in dict.fromkeys(ledger.leaf(key).call for key in (() if found is None else found.leaves)):
        evidence = None if call is None else evidence_of(ledger, tool_ref(call), draft.agent)
        if call is not None and (evidence is None or any(value.health for value in evidence.values)):
            return True
    return False
