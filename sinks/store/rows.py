"""Decides which rows a record comes to.

No text of a message, a turn or a tool is in one, and no share code (R-RET-2, R-GRT-10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from turngate.processors.audience import listed
from turngate.schemas.inputs import (
    DeliveryStatus,
    ErasureCommanded,
    MembershipChanged,
    MembershipPage,
    MemoryWrite,
    MessageDeleted,
    MessageObserved,
    PolicyPublished,
    Record,
    RoomChanged,
    TurnDelivered,
)
from turngate.schemas.outputs import (
    CommandRefused,
    ContextDecided,
    DecisionTraced,
    ErasureApplied,
    EvidenceRecorded,
    GrantChanged,
    RevisionRecorded,
    RoomForgotten,
    SharingOffered,
    TurnAuthorized,
    TurnDecided,
    WriteRefused,
)
from turngate.schemas.policy import PolicyInvalid, parse_policy
from turngate.schemas.shapes import Audience, Leaf, MemberKind, Reason, RoomInfo

#: A table's name, and the columns that come after a row's place (and its number, where the table has numbers).
Row = tuple[str, tuple[Any, ...]]
#: Keeps an audience, with an agent's own accounts beside it, and says its digest.
Keep = Callable[[Audience, tuple[str, ...]], str]


def rows_of(record: Record, keep: Keep) -> Iterator[Row]:
    """The rows of a record, in the order of its own lists; none of one that says nothing that is kept."""
    match record:
        case TurnDecided() as r:
            named = ("turn", r.turn, None, r.agent, r.room, r.verdict, r.fingerprint, r.leaves_digest, r.policy)
            as_of = [[p.topic, p.offset] for p in r.as_of]
            yield "decisions", (*named, r.decision, r.rendering, r.at, r.provenance, as_of, None)
            yield from _reasons("turn", r.turn, r.reasons)
        case ContextDecided() as r:
            yield "decisions", ("context", r.turn, r.request, *(None,) * 8, r.at, None, None, r.questions)
            for permitted in r.permitted:
                told = (permitted.ref, permitted.attribution, permitted.grant, True, permitted.redact)
                yield "candidates", (r.request, r.turn, *told)
            for withheld in r.withheld:
                yield "candidates", (r.request, r.turn, withheld.ref, None, None, False, None)
                yield from _reasons("context", r.request, withheld.reasons, withheld.ref)
        case TurnAuthorized() as r:
            operation = None if r.action is None else r.action.operation
            place = (r.turn, r.agent, r.room, r.thread, operation, keep(r.destination, ()), r.decision)
            lists = (r.provenance, r.grants, r.proofs)
            yield "authorizations", (*place, r.broadcast, r.text is not None, *lists, r.valid_until, r.at)
        case DecisionTraced() as r:
            of = (r.decision, r.turn, r.request, r.call, r.agent, r.room)
            yield "traces", (*of, r.number, r.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        case EvidenceRecorded() as r:
            yield from _evidence(r.ref, r, r.status, keep)
        case RevisionRecorded() as r:
            yield "revisions", (r.write, r.agent, r.memory, r.revision, r.kind, r.state, r.base, r.notes)
            yield from _evidence(f"revision:{r.revision}", r, None, keep)
        case WriteRefused() as r:
            yield from _reasons("write", r.write, r.reasons or (None,))
        case CommandRefused() as r:
            yield from _reasons("command", r.command, r.reasons or (None,))
        case _:
            yield from _row(record, keep)


def _row(record: Record, keep: Keep) -> Iterator[Row]:
    match record:
        case GrantChanged() as r:
            audience = keep(r.audience, ())
            yield "grants", (r.grant, r.agent, r.memory, r.revision, audience, r.state, r.by, None, None)
        case SharingOffered() as r:
            audience = keep(r.audience, ())
            yield "grants", (r.request, r.agent, None, r.revision, audience, "offered", None, r.room, r.expires_at)
        case TurnDelivered() as r:
            yield "deliveries", (r.turn, r.room, r.status, r.message)
            if r.status is not DeliveryStatus.SENT or r.reasons:
                yield from _reasons("delivery", r.turn, r.reasons)
        case ErasureCommanded() as r:
            yield "erasures", (r.command, None, r.room, r.reader, r.memory)
        case ErasureApplied() as r:
            yield from (("erasures", (r.command, ref, None, None, None)) for ref in r.refs)
        case MemoryWrite():
            yield _memory(record)
        case PolicyPublished():
            yield from _policy(record)
        case MessageObserved() as r if r.quotes or r.turn is not None:
            yield "messages", (r.message, r.agent, r.room, r.author, r.turn, r.quotes, False)
        case MessageDeleted() as r:
            yield "messages", (r.message, r.agent, r.room, None, None, (), True)
        case _:
            yield from _room(record, keep)


def _reasons(kind: str, name: str, reasons: Iterable[Reason | None], candidate: str | None = None) -> Iterator[Row]:
    for reason in reasons:
        said = (None, None, None) if reason is None else (reason.code, reason.ref, reason.detail)
        yield "reasons", (kind, name, candidate, *said)


def _evidence(ref: str, r: EvidenceRecorded | RevisionRecorded, status: str | None, keep: Keep) -> Iterator[Row]:
    yield "evidence", (ref, r.agent, status, r.private, r.untrusted, r.restrictions, len(r.leaves))
    yield from (("leaves", (ref, r.agent, *_leaf(leaf, keep))) for leaf in r.leaves)


def _leaf(leaf: Leaf, keep: Keep) -> tuple[Any, ...]:
    said = (leaf.agent, leaf.author, leaf.room, leaf.call, keep(leaf.audience, ()), leaf.via)
    return (*said, leaf.open, leaf.private, leaf.untrusted, leaf.restrictions)


def _memory(r: MemoryWrite) -> Row:
    gone = "health" if r.health else None  # no text of it is kept (R-MEM-6)
    text = None if gone else r.text
    named = (r.agent, r.write, r.memory, r.revision, r.op, r.by, r.kind, r.base, r.room, r.turn)
    return "memories", (*named, text, gone, r.restrict, r.sources)


def _policy(r: PolicyPublished) -> Iterator[Row]:
    try:
        document = parse_policy(r.document)
    except PolicyInvalid:
        return  # the one before stays in force (R-POL-3)
    yield "policies", (r.version, document.retention.log)


def _room(record: Record, keep: Keep) -> Iterator[Row]:
    named: tuple[Any, ...]
    match record:
        case MembershipPage() as r:
            yield "rooms", _page(r, keep)
        case MembershipChanged() as r:
            named = (r.change, r.agent, r.room, None, None, None, None, r.reader, r.kind, None)
            yield "rooms", (*named, r.workspaces, None, None, None, None)
        case RoomChanged() as r:
            named = ("changed", r.agent, r.room, None, None, None, None, None, None, r.what)
            yield "rooms", (*named, None, None, None, None, None)
        case RoomForgotten() as r:
            named = ("forgotten", None, r.room, None, None, None, None, None, None, r.because)
            yield "rooms", (*named, None, None, None, None, None)


def _page(r: MembershipPage, keep: Keep) -> tuple[Any, ...]:
    """Bots and external members read along, and are guests (R-ROOM-7); an agent's own accounts are beside them."""
    own = tuple(sorted(m.reader for m in r.members if m.kind is MemberKind.SELF))
    others = [m for m in r.members if m.kind is not MemberKind.SELF]
    guests = {m.reader for m in others if m.kind is not MemberKind.MEMBER}
    full = {m.reader: m.workspaces for m in others}
    audience = keep(listed((m.reader for m in others), guests, memberships=full), own)
    info = RoomInfo() if r.info is None else r.info
    named = ("listed", r.agent, r.room, r.refresh, info.kind, info.visibility, audience, None, None, None)
    return (*named, info.workspaces, r.page, r.started_at, r.last, r.error is not None)
