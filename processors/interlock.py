"""Decides what a conversation that has been in touch with others' words and secrets may still do (R-TNT-5, 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from turngate.processors.actions import MESSAGE, internal, persons_word
from turngate.processors.evidence import evidence_of
from turngate.processors.ledger import Ledger
from turngate.processors.links import allowed, hosts, links
from turngate.processors.origins import link_mark, link_marks
from turngate.processors.rows import Revision
from turngate.processors.sources import REVISION, source
from turngate.processors.spelling import fits_text
from turngate.processors.taint import Bits
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.policy import Access, Interlock, Mode
from turngate.schemas.shapes import Code, Reason, Scope


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason that refuses, or that asks for somebody's yes to these bytes."""

    reason: Reason
    asks: bool


def objections(
    ledger: Ledger, draft: TurnDrafted, text: str | None, refs: tuple[str, ...], bits: Bits
) -> list[Objection]:
    """What stands against one way to say the turn, by the taint of the conversation and the draft together."""
    guards = ledger.policy(draft.room).settings.interlock
    found: list[tuple[Mode, Code, str | None]] = []
    mode = _interlock_mode(guards, bits)
    action = draft.action
    outward = action is not None and not internal(ledger, draft.room, action.operation)
    if mode is not None and action is not None and outward:
        found.append((mode, Code.INTERLOCK, action.operation))
    if mode is not None and text is not None and _carries_out(ledger, draft, text, refs, guards):
        found.append((mode, Code.INTERLOCK_LINK, None))
    if action is not None and outward:
        own_mode = _outward_mode(ledger, draft.room, action.operation, guards)
        found += [(own_mode, Code.OUTWARD_EVIDENCE, ref) for ref in _leaving(ledger, draft, refs)]
    if action is not None and bits.untrusted and _writes(ledger, draft.room, action.operation):
        stricter = any(code is Code.INTERLOCK and _at_least(by, guards.untrusted_writes) for by, code, _ in found)
        if not stricter:
            found.append((guards.untrusted_writes, Code.UNTRUSTED_WRITE, action.operation))
    return [
        Objection(Reason(code=code, ref=ref), asks=by is Mode.ASK) for by, code, ref in found if by is not Mode.ALLOW
    ]


def _interlock_mode(guards: Interlock, bits: Bits) -> Mode | None:
    """What becomes of what transmits outward; None where the conversation is not tainted for that (R-TNT-5)."""
    if not bits.private or not (bits.untrusted or guards.leak_guard):
        return None
    return Mode.REFUSE if guards.mode is Mode.ALLOW and guards.leak_guard else guards.mode


def _at_least(mode: Mode, other: Mode) -> bool:
    """Whether a mode is the same or stricter."""
    order = (Mode.ALLOW, Mode.ASK, Mode.REFUSE)
    return order.index(mode) >= order.index(other)


def _outward_mode(ledger: Ledger, room: str, operation: str, guards: Interlock) -> Mode:
    named = ledger.policy(room).settings.operations.get(operation)
    return guards.outward if named is None or named.outward is None else named.outward


def _writes(ledger: Ledger, room: str, operation: str) -> bool:
    named = ledger.policy(room).settings.operations.get(operation)
    return named is None or named.access is Access.WRITE


def _carries_out(ledger: Ledger, draft: TurnDrafted, text: str, refs: Iterable[str], guards: Interlock) -> bool:
    """Whether a text has a link that is neither to an allowed host nor, exactly so, in a source that it was made of."""
    if not fits_text(text):
        return True  # nobody has looked through it
    names = hosts(guards.link_hosts)
    found = [link for link in links(text) if not allowed(link, names, ())]
    if not found:
        return False
    known: set[str] = set()
    for ref in refs:
        known.update(_links_in(ledger, ref, draft.agent))
    return any(link_mark(link.url) not in known for link in found)


def _links_in(ledger: Ledger, ref: str, agent: str) -> Iterable[str]:
    if not ref.startswith(REVISION):
        evidence = evidence_of(ledger, ref, agent)
        return () if evidence is None else evidence.links
    row: Revision | None = ledger.tables.revisions.get((ledger.tenant, ref[len(REVISION) :]))
    if row is None or row.text is None or row.agent != agent:
        return ()
    return link_marks([row.text])


def _leaving(ledger: Ledger, draft: TurnDrafted, refs: Iterable[str]) -> list[str]:
    """The refs that would leave the house with the action and are not for everybody (R-TNT-7)."""
    return [ref for ref in refs if not _for_everybody(ledger, draft, ref)]


def _for_everybody(ledger: Ledger, draft: TurnDrafted, ref: str) -> bool:
    found = source(ledger, ref, draft.agent)
    if found is None:
        return False
    leaves = found.leaves
    if ref == draft.trigger and ref.startswith(MESSAGE):
        evidence = evidence_of(ledger, ref, draft.agent)
        if evidence is not None and persons_word(ledger, draft, evidence):
            leaves = tuple(evidence.leaves[place] for place in evidence.quoted)
            return all(_public(ledger, key) for key in leaves)
    return bool(leaves) and not found.restrictions and all(_public(ledger, key) for key in leaves)


def _public(ledger: Ledger, key: str) -> bool:
    leaf = ledger.leaf(key)
    return not leaf.restrictions and ledger.audience(leaf.audience).scope is Scope.PUBLIC
