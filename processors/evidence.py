"""Decides what evidence a message or a tool result is: who could read it, where it was said, by whom (R-AUD-5 to 8)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.audience import KEYED_UNKNOWN, keyed
from turngate.processors.bounds import Standing, standing
from turngate.processors.ledger import Ledger
from turngate.processors.origins import link_marks, proofs
from turngate.processors.policy import tool_terms
from turngate.processors.readings import note, values_of
from turngate.processors.retention import over_age, takes_up
from turngate.processors.rows import Deleted, Evidence, LeafRow, Pending
from turngate.processors.shelves import CONTENT_BYTES
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import MessageDeleted, MessageObserved, ToolReturned
from turngate.schemas.outputs import Because, EvidenceRecorded, EvidenceStatus
from turngate.schemas.shapes import AuthorKind, Scope, Visibility

#: So many messages of one room may wait for a listing; of more, the oldest never settle and stay unknown.
MOST_PENDING = 500
#: So many different results under one call are told apart from redeliveries; ids are meant to be used once.
MOST_RESULTS = 100


def message_ref(message: str) -> str:
    """The source ref of a message."""
    return f"message:{message}"


def tool_ref(call: str) -> str:
    """The source ref of a tool call."""
    return f"tool:{call}"


def _content(value: object) -> str:
    """What tells one content of a message or result from another."""
    return digest(value)[: 2 * CONTENT_BYTES]


def observed(ledger: Ledger, record: MessageObserved) -> None:
    """A message was seen (R-AUD-5), again (nothing), or edited (R-AUD-6)."""
    ref = message_ref(record.message)
    known = evidence_of(ledger, ref, record.agent)
    content = _content({"text": record.text, "quotes": list(record.quotes)})
    if known is not None and (not record.edited or content in known.contents):
        return
    if known is None and not takes_up(ledger, ref, record.agent, record.room, record.at):
        return
    ledger.active(record.room)
    at = standing(ledger, record.agent, record.room)
    leaves, waits = _said(ledger, record, at)
    own = len(leaves)
    leaves += _quoted(ledger, record)
    before = () if known is None else known.leaves
    fresh = known or Evidence((), record.room, record.at, ledger.now)
    said = () if record.text is None else (record.text,)
    made = replace(
        bounded(ledger, fresh, (*before, *leaves)),
        author=record.author,
        person=fresh.person and record.author_kind is AuthorKind.PERSON and fresh.author in (None, record.author),
        quoted=(*fresh.quoted, *range(len(before) + own, len(before) + len(leaves))),
        proves=proofs(ledger, record.room, said),
        links=tuple(dict.fromkeys((*fresh.links, *link_marks(said)))),
        contents=(*fresh.contents, content),
        made_of=tuple(dict.fromkeys((*fresh.made_of, *record.quotes, *_repeats(ledger, record)))),
    )
    keep_evidence(ledger, ref, record.agent, made)
    if waits:
        settle = ledger.policy(record.room).settings.freshness.settle
        basis = None if at.bounds is None else ledger.keep_audience(at.bounds.listed.keyed)
        pending = Pending(ref, len(before), record.at, at.listing, basis)
        if not made.over:
            row = ledger.room(record.agent, record.room)
            ledger.put_room(record.agent, record.room, pending=(*row.pending, pending)[-MOST_PENDING:])
        ledger.ask(record.agent, record.room, Because.OBSERVATION, record.at + settle)
    emit_evidence(ledger, ref, record.agent, made)


def _said(ledger: Ledger, record: MessageObserved, at: Standing) -> tuple[tuple[str, ...], bool]:
    """The leaves of what was said, and whether the next listing may settle them (R-AUD-9)."""
    if record.author_kind is AuthorKind.SELF:
        return _own(ledger, record), False
    listing, fresh = at.listing, at.fresh(ledger.now, ledger.policy(record.room).settings.freshness.observation)
    known = fresh and at.bounds is not None
    leaf = LeafRow(
        agent=record.agent,
        audience=ledger.keep_audience(at.bounds.lower if known and at.bounds is not None else KEYED_UNKNOWN),
        author=record.author if record.author_kind in (AuthorKind.PERSON, AuthorKind.EXTERNAL) else None,
        room=record.room,
        open=fresh and at.open,
        private=listing is None or not fresh or listing.visibility is Visibility.MEMBERS,
        untrusted=_untrusted(ledger, record),
    )
    joined = at.bounds is not None and at.bounds.joined
    return (ledger.keep_leaf(leaf),), not fresh or joined


def _untrusted(ledger: Ledger, record: MessageObserved) -> bool:
    """Whether whoever said it arms mistrust (R-TNT-2)."""
    if record.author_kind is AuthorKind.BOT:
        return record.author not in ledger.policy(record.room).settings.trusted_bots
    return record.author_kind is AuthorKind.EXTERNAL


def _own(ledger: Ledger, record: MessageObserved) -> tuple[str, ...]:
    """The agent's own message: the leaves of the turn that it names, if that was let out to this room (R-AUD-7)."""
    turn = None if record.turn is None else ledger.tables.turns.get((ledger.tenant, record.turn))
    life = ledger.tables.started.get((ledger.tenant, record.room))
    here = turn is not None and turn.authorized == record.room and turn.agent == record.agent
    if turn is not None and here and life is not None and life.at <= turn.arrived:
        return turn.leaves  # what was let out before the room was forgotten went with it (R-RET-1)
    return (ledger.unknown_leaf(record.agent, record.room),)


def _repeats(ledger: Ledger, record: MessageObserved) -> tuple[str, ...]:
    """What the agent's own message was made from, so that an erasure reaches it (R-RET-3)."""
    turn = None if record.turn is None else ledger.tables.turns.get((ledger.tenant, record.turn))
    return () if turn is None or record.author_kind is not AuthorKind.SELF else turn.refs


def _quoted(ledger: Ledger, record: MessageObserved) -> tuple[str, ...]:
    """The leaves of the messages whose text it embeds; an unknown one for each that was never observed (R-AUD-6).

    One that was observed and has no leaves is the agent's notice, which is the policy's text and nobody's.
    """
    leaves: list[str] = []
    for ref in record.quotes:
        quoted = evidence_of(ledger, ref, record.agent)
        if quoted is None or quoted.over:
            leaves.append(ledger.unknown_leaf(record.agent))
        else:
            leaves += quoted.leaves
    return tuple(leaves)


def deleted(ledger: Ledger, record: MessageDeleted) -> None:
    """A message is gone, for every agent; what was made of it keeps its leaves (R-AUD-6)."""
    key = (ledger.tenant, message_ref(record.message))
    if key not in ledger.tables.deleted:
        ledger.tables.deleted.put(key, Deleted(ledger.now))


def returned(ledger: Ledger, record: ToolReturned) -> bool:
    """A tool's result is evidence of its own (R-AUD-8); whether it is new.

    The same again changes nothing. Another result under a call that was used before adds its leaf, so that whoever
    heard of the call heard of both.
    """
    ref = tool_ref(record.call)
    known = evidence_of(ledger, ref, record.agent)
    content = _content(record.model_dump(mode="json", exclude={"at"}))
    if known is not None and content in known.contents:
        return False
    if known is None and not takes_up(ledger, ref, record.agent, record.room, record.at):
        return False
    ledger.active(record.room)
    values = values_of(ledger, record)
    leaf = _result_leaf(ledger, record, bool(values))
    texts = [field.value for field in record.fields]
    before = known or Evidence((), record.room, record.at, ledger.now)
    leaves = before.leaves if leaf in before.leaves else (*before.leaves, leaf)
    made = replace(
        bounded(ledger, before, leaves),
        contents=(*before.contents, content)[-MOST_RESULTS:],
        values=tuple(dict.fromkeys((*before.values, *values))),
        proves=tuple(dict.fromkeys((*before.proves, *proofs(ledger, record.room, texts)))),
        links=tuple(dict.fromkeys((*before.links, *link_marks(texts)))),
        server=record.server if known is None or known.server == record.server else None,
    )
    if values:
        note(ledger, record, ref)
    if record.error is None:
        _read(ledger, record)
    keep_evidence(ledger, ref, record.agent, made)
    if known is None or made.leaves != known.leaves:
        emit_evidence(ledger, ref, record.agent, made)
    return True


def _read(ledger: Ledger, record: ToolReturned) -> None:
    """The room has read this operation now, or when the result says, if that is earlier (R-ACT-5)."""
    key = (ledger.tenant, record.agent, record.room, f"{record.server}.{record.operation}")
    at = min(record.at, ledger.now)
    if at > (ledger.tables.reads.get(key) or 0):
        ledger.tables.reads.put(key, at)


def _result_leaf(ledger: Ledger, record: ToolReturned, classified: bool) -> str:
    terms = tool_terms(ledger.policy(record.room).tools.get(record.server), record.audience, ledger.caches.sets)
    return ledger.keep_leaf(
        LeafRow(
            agent=record.agent,
            audience=ledger.keep_audience(keyed(terms.audience)),
            call=record.call if classified else None,
            restrictions=terms.restrictions,
            private=terms.private or record.private is True,  # R-TNT-3
            untrusted=terms.untrusted or record.untrusted is True,  # an error is as foreign as its tool (R-TNT-2)
            each=tuple(ledger.keep_audience(keyed(audience)) for audience in terms.each),
        )
    )


def evidence_of(ledger: Ledger, ref: str, agent: str) -> Evidence | None:
    """What the agent knows of a ref; past its time that is nothing, whether or not it was removed yet (R-RET-4)."""
    row: Evidence | None = ledger.tables.evidence.get((ledger.tenant, ref, agent))
    return None if row is None or over_age(ledger, row.room, row.seen) else row


def keep_evidence(ledger: Ledger, ref: str, agent: str, made: Evidence) -> None:
    """Remember the evidence of a ref."""
    key = (ledger.tenant, ref, agent)
    if evidence_of(ledger, ref, agent) is None:
        ledger.tables.evidence.drop(key)  # one that is past its time must not keep its place in the order of age
    ledger.tables.evidence.put(key, made)


def bounded(ledger: Ledger, row: Evidence, leaves: tuple[str, ...]) -> Evidence:
    """The evidence with these leaves; with too many distinct ones, none: it is unknown, never a subset (R-EVI-5)."""
    if row.over or len(set(leaves)) > ledger.policy(row.room).settings.evidence.max_leaves:
        return replace(row, leaves=(), over=True)
    return replace(row, leaves=leaves)


def emit_evidence(ledger: Ledger, ref: str, agent: str, made: Evidence) -> None:
    """Emit `EvidenceRecorded` (R-EVI-1)."""
    keys = [ledger.unknown_leaf(agent)] if made.over else sorted(set(made.leaves))
    rows = [ledger.leaf(key) for key in keys]
    unknown = not rows or any(ledger.audience(row.audience).scope is Scope.UNKNOWN for row in rows)
    ledger.emit(
        EvidenceRecorded.model_construct(
            tenant=ledger.tenant,
            at=ledger.now,
            ref=ref,
            agent=agent,
            leaves=ledger.leaf_shapes(keys),
            restrictions=tuple(sorted({room for row in rows for room in row.restrictions})),
            private=unknown or any(row.private for row in rows),
            untrusted=unknown or any(row.untrusted for row in rows),
            status=EvidenceStatus.UNKNOWN if unknown else EvidenceStatus.KNOWN,
        )
    )
