"""Decides which values that a room read may be said where, and handed to which operation (rules EGR)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from turngate.processors.actions import internal
from turngate.processors.evidence import evidence_of, tool_ref
from turngate.processors.fingerprints import Finder, tags
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination
from turngate.processors.readings import read_in
from turngate.processors.rows import Value
from turngate.processors.sources import source
from turngate.processors.spelling import fits_text
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.shapes import Code, FieldClass, Reason, Scope


@dataclass(frozen=True, slots=True)
class _Read:
    """A value and where it was read."""

    value: Value
    room: str


def external(to: Destination) -> bool:
    """Whether outsiders may hear what is said there (R-EGR-2)."""
    return to.audience.scope is not Scope.LISTED or bool(to.audience.guests)


def egress(
    ledger: Ledger,
    draft: TurnDrafted,
    text: str | None,
    refs: tuple[str, ...],
    leaves: tuple[str, ...],
    to: Destination,
) -> list[Reason]:
    """The reasons against the text of one way to say the turn, and against the action's parameters.

    `refs` are what it was made from, `leaves` theirs.
    """
    calls = list(dict.fromkeys(call for key in leaves if (call := ledger.leaf(key).call) is not None))
    action = draft.action
    inside = action is None or internal(ledger, draft.room, action.operation)
    against: list[Reason] = []
    if calls and ((text is not None and external(to)) or not inside):
        against += [Reason(code=Code.HEALTH_NOT_RETAINED, ref=ref) for ref in refs if _unknown(ledger, ref, draft)]
    reads = list(_reads(ledger, draft, calls))
    if not reads:
        return against
    if text is not None:
        found = _found(ledger, reads, [text])
        against += [r for read in found if (r := _said(read, draft.room, to)) is not None]
    if action is not None:
        found = _found(ledger, reads, [param.value for param in action.params])
        against += [r for read in found if (r := _handed(read, draft.room, inside=inside)) is not None]
    return against


def _said(read: _Read, room: str, to: Destination) -> Reason | None:
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


def _handed(read: _Read, room: str, *, inside: bool) -> Reason | None:
    value = read.value
    match value.kind:
        case FieldClass.SECRET:
            return Reason(code=Code.SECRET_EXPOSED, ref=value.name)
        case FieldClass.PERSONAL:
            return None if inside and read.room == room else Reason(code=Code.PERSONAL_EGRESS, ref=value.name)
        case FieldClass.INTERNAL | FieldClass.CONFIDENTIAL:
            return None if inside else Reason(code=Code.CLASS_EGRESS, ref=value.name)
    return None


def _found(ledger: Ledger, reads: list[_Read], texts: Iterable[str]) -> list[_Read]:
    """Those of the values that are in one of these texts; without a key none can be ruled out."""
    marks = {mark for read in reads for mark in read.value.marks or ()}
    texts = list(texts)
    if not all(map(fits_text, texts)):
        return reads  # nobody has looked through it
    found: set[str] = set()
    for key_id, key in ledger.keys.fingerprint_keys(ledger.tenant):
        prefix = f"{key_id}:"
        known = {bytes.fromhex(m.removeprefix(prefix)) for m in marks if m.startswith(prefix)}
        finder, tagged = Finder(key), tags(known)
        for text in texts:
            found.update(prefix + mark.hex() for mark in finder.find(text, known, tagged))
    return [read for read in reads if read.value.marks is None or not found.isdisjoint(read.value.marks)]


def _reads(ledger: Ledger, draft: TurnDrafted, calls: Iterable[str]) -> Iterator[_Read]:
    """What was read in the draft's room, and by the calls that the draft's provenance holds (R-EGR-1)."""
    known = [(tool_ref(call), draft.agent) for call in calls] + read_in(ledger, draft.room)
    for ref, agent in dict.fromkeys(known):
        evidence = evidence_of(ledger, ref, agent)
        if evidence is not None:
            yield from (_Read(value, evidence.room) for value in evidence.values)


def _unknown(ledger: Ledger, ref: str, draft: TurnDrafted) -> bool:
    """Whether a ref was made of a health field, or of values that are not remembered any more (R-EGR-6)."""
    found = source(ledger, ref, draft.agent)
    for call in dict.fromkeys(ledger.leaf(key).call for key in (() if found is None else found.leaves)):
        evidence = None if call is None else evidence_of(ledger, tool_ref(call), draft.agent)
        if call is not None and (evidence is None or any(value.health for value in evidence.values)):
            return True
    return False
