"""Decides which candidates a destination may hear, before inference (R-TURN-1)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.agents import named
from turngate.processors.granting import usable
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination, Judged, destination, judge, nowhere, reasons
from turngate.processors.rows import Context, Waiting, WaitKind
from turngate.processors.sources import source
from turngate.processors.taint import arm, of_refs
from turngate.processors.tracing import trace_context
from turngate.processors.turns import asked
from turngate.schemas.digests import content_digest
from turngate.schemas.inputs import ContextRequested
from turngate.schemas.outputs import Attribution, Because, ContextDecided, Permitted, Withheld
from turngate.schemas.shapes import Code, FieldClass, Reason
from turngate.schemas.unchecked import unchecked


def context_requested(ledger: Ledger, record: ContextRequested, *, late: bool = False) -> Waiting | None:
    """Answer a context request, or let it wait for its room; a late one is answered with nothing (R-RUN-2)."""
    key = (ledger.tenant, record.request)
    content = content_digest(record)
    known = ledger.tables.contexts.get(key)
    if known is not None:
        _again(ledger, record, known, content)
        return None
    ledger.active(record.room)
    row = Context(record.agent, record.turn, record.room, ledger.now, record.trigger, content=content)
    ledger.tables.contexts.put(key, row)
    asked(ledger, record)
    if late:
        withhold(ledger, record, Code.BARRIER_LATE)
        return None
    to, _, now = destination(ledger, record.agent, record.room)
    if to is not None or now.open or not named(ledger, record.agent, record.room):
        answer(ledger, record, to)
        return None
    until = ledger.now + ledger.policy(record.room).settings.stale.hold
    ledger.ask(record.agent, record.room, Because.CONTEXT, until)
    ledger.tables.contexts.put(key, replace(row, waiting=record))
    return Waiting(ledger.arrival, until, WaitKind.CONTEXT, ledger.tenant, record.request, record.agent, record.room)


def _again(ledger: Ledger, record: ContextRequested, known: Context, content: str) -> None:
    """Its id was used before: a redelivery changes nothing (R-RUN-4), anything else gets nothing, once for each."""
    if known.content not in (None, content) and content not in known.conflicts:
        row = replace(known, conflicts=(*known.conflicts, content))
        ledger.tables.contexts.put((ledger.tenant, record.request), row)
        _emit(ledger, record, (), _nothing(record, Code.TURN_CONFLICT), None, content)


def waiting_request(ledger: Ledger, waiting: Waiting) -> ContextRequested:
    """The request that waits. Raises `LookupError` where none does."""
    row = ledger.tables.contexts.get((ledger.tenant, waiting.subject))
    if row is None or row.waiting is None:
        raise LookupError("what waits is not there")
    return row.waiting


def answer(ledger: Ledger, record: ContextRequested, to: Destination | None) -> None:
    """Say which candidates the destination may hear; None: it is unknown, and only public evidence goes there."""
    if not named(ledger, record.agent, record.room):
        withhold(ledger, record, Code.AGENT_UNKNOWN)
        return
    hearer = ledger.hearer = to or nowhere(ledger, record.agent, record.room)
    ledger.nothing_changes(hearer.agent)
    permitted: list[Permitted] = []
    withheld: list[Withheld] = []
    for ref in dict.fromkeys(record.candidates):
        judged = judge(ledger, ref, hearer)
        if judged.codes:
            withheld.append(unchecked(Withheld, ref=ref, reasons=tuple(reasons(ref, judged, None))))
        else:
            permitted.append(_permitted(ledger, ref, judged, hearer.agent))
    _answered(ledger, record, tuple(permitted), tuple(withheld), _questions(ledger, hearer))


def _permitted(ledger: Ledger, ref: str, judged: Judged, agent: str) -> Permitted:
    """Where only a grant permits it, nothing tells whose it is (R-GRT-8); the model must not see a secret (R-EGR-4)."""
    found = source(ledger, ref, agent)
    values = () if found is None else found.values
    redact = tuple(dict.fromkeys(value.name for value in values if value.kind is FieldClass.SECRET))
    grant = judged.grants[0] if judged.grants else None
    attribution = Attribution.SHOWN if grant is None else Attribution.HIDDEN
    return unchecked(Permitted, ref=ref, attribution=attribution, grant=grant, redact=redact)


def _questions(ledger: Ledger, to: Destination) -> tuple[str, ...] | None:
    """Revisions about whose sharing to ask their sole author, once, in that person's direct room (R-SEN-3)."""
    if to.sole is None:
        return None
    key = (ledger.tenant, to.agent, to.sole)
    waiting = ledger.tables.questions.get(key)
    if waiting is None:
        return None
    ledger.tables.questions.drop(key)
    current = tuple(name for name in waiting if usable(ledger, name))
    return current or None


def withhold(ledger: Ledger, record: ContextRequested, code: Code) -> None:
    """Answer with nothing, for one reason."""
    _answered(ledger, record, (), _nothing(record, code), None)


def context_failed(ledger: Ledger, record: ContextRequested) -> None:
    """An error inside a context decision: nothing is handed over, and nothing is changed (R-RUN-6)."""
    _emit(ledger, record, (), _nothing(record, Code.DECISION_ERROR), None, "")


def _nothing(record: ContextRequested, code: Code) -> tuple[Withheld, ...]:
    why = (Reason(code=code),)
    return tuple(unchecked(Withheld, ref=ref, reasons=why) for ref in dict.fromkeys(record.candidates))


def _answered(
    ledger: Ledger,
    record: ContextRequested,
    permitted: tuple[Permitted, ...],
    withheld: tuple[Withheld, ...],
    questions: tuple[str, ...] | None,
) -> None:
    refs = tuple(p.ref for p in permitted)
    arm(ledger, record.agent, record.room, record.thread, of_refs(ledger, record.agent, record.room, refs)[0])
    key = (ledger.tenant, record.request)
    row = replace(ledger.tables.contexts.rows[key], seen=ledger.now, permitted=refs, waiting=None)
    ledger.tables.contexts.put(key, row)
    _emit(ledger, record, permitted, withheld, questions, row.content or "")


def _emit(
    ledger: Ledger,
    record: ContextRequested,
    permitted: tuple[Permitted, ...],
    withheld: tuple[Withheld, ...],
    questions: tuple[str, ...] | None,
    content: str,
) -> None:
    decided = ContextDecided(
        tenant=ledger.tenant,
        at=ledger.now,
        request=record.request,
        turn=record.turn,
        permitted=permitted,
        withheld=withheld,
        questions=questions,
    )
    ledger.emit(decided)
    trace_context(ledger, record, decided, content)
