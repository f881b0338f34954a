"""Decides what becomes of a draft and of a context request (rules TURN)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination, destination, judge, nowhere, reasons
from turngate.processors.rows import Context, Turn, Waiting
from turngate.processors.turns import asked, close, everything, put_turn, seen, turn_of
from turngate.processors.verdicts import authorize, decide
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import ContextRequested, TurnDrafted
from turngate.schemas.outputs import Attribution, Because, ContextDecided, Permitted, Verdict, Withheld
from turngate.schemas.policy import Then
from turngate.schemas.shapes import Code, Reason, Rendering


def context_requested(ledger: Ledger, record: ContextRequested, *, late: bool = False) -> Waiting | None:
    """Answer a context request, or let it wait for its room (R-TURN-1); a late one is answered with nothing."""
    key = (ledger.tenant, record.request)
    if key in ledger.tables.contexts:
        return None  # R-RUN-4
    ledger.tables.contexts.put(key, Context(record.agent, record.turn, record.trigger))
    asked(ledger, record)
    if late:  # R-RUN-2
        _withhold(ledger, record, Code.BARRIER_LATE)
        return None
    to, _, now = destination(ledger, record.agent, record.room)
    if to is not None or now.open or not _named(ledger, record.agent, record.room):
        _answer(ledger, record, to or nowhere(ledger, record.agent, record.room))
        return None
    until = ledger.now + ledger.policy(record.room).settings.stale.hold
    ledger.ask(record.agent, record.room, Because.CONTEXT, until)
    ledger.tables.contexts.put(key, Context(record.agent, record.turn, record.trigger, waiting=record))
    return Waiting(ledger.arrival, until, ledger.tenant, record.agent, record.room, record.turn, record.request)


def _answer(ledger: Ledger, record: ContextRequested, to: Destination) -> None:
    if not _named(ledger, record.agent, record.room):
        _withhold(ledger, record, Code.AGENT_UNKNOWN)
        return
    permitted: list[Permitted] = []
    withheld: list[Withheld] = []
    for ref in dict.fromkeys(record.candidates):
        judged = judge(ledger, ref, to)
        if judged.codes:
            withheld.append(Withheld(ref=ref, reasons=tuple(reasons(ref, judged, None))))
        else:
            permitted.append(_permitted(ref, judged.evidence.classified if judged.evidence is not None else ()))
    _answered(ledger, record, tuple(permitted), tuple(withheld))


def _permitted(ref: str, classified: tuple[tuple[str, str], ...]) -> Permitted:
    """R-EGR-4: the model must not see a secret."""
    redact = tuple(name for name, kind in classified if kind == "secret")
    return Permitted(ref=ref, attribution=Attribution.SHOWN, redact=redact)


def _withhold(ledger: Ledger, record: ContextRequested, code: Code) -> None:
    _answered(ledger, record, (), _nothing(record, code))


def _nothing(record: ContextRequested, code: Code) -> tuple[Withheld, ...]:
    """Every candidate withheld, for a reason that is the whole request's."""
    return tuple(Withheld(ref=ref, reasons=(Reason(code=code),)) for ref in dict.fromkeys(record.candidates))


def _answered(
    ledger: Ledger, record: ContextRequested, permitted: tuple[Permitted, ...], withheld: tuple[Withheld, ...]
) -> None:
    refs = tuple(p.ref for p in permitted)
    ledger.tables.contexts.put(
        (ledger.tenant, record.request), Context(record.agent, record.turn, record.trigger, permitted=refs)
    )
    _emit_context(ledger, record, permitted, withheld)


def _emit_context(
    ledger: Ledger, record: ContextRequested, permitted: tuple[Permitted, ...], withheld: tuple[Withheld, ...]
) -> None:
    ledger.emit(
        ContextDecided(
            tenant=ledger.tenant,
            at=ledger.now,
            request=record.request,
            turn=record.turn,
            permitted=permitted,
            withheld=withheld,
        )
    )


def _named(ledger: Ledger, agent: str, room: str) -> bool:
    """Whether the policy names the agent (R-ROOM-7)."""
    return agent in ledger.policy(room).settings.agents


def paused(ledger: Ledger, agent: str, room: str) -> bool:
    """Whether an operator has stopped the agent, everywhere or in this room (R-POL-4)."""
    held = ledger.tables.paused
    return (ledger.tenant, agent, "") in held or (ledger.tenant, agent, room) in held


def turn_drafted(ledger: Ledger, draft: TurnDrafted, *, late: bool = False) -> Waiting | None:
    """Decide a draft once (R-TURN-8), or let it wait for its room."""
    row = turn_of(ledger, draft.turn)
    content = digest(draft.model_dump(mode="json", exclude={"at"}))
    if row.content is not None:
        if content != row.content and content not in row.conflicts:
            put_turn(ledger, draft.turn, replace(row, conflicts=(*row.conflicts, content)))
            decide(ledger, draft, Verdict.DROP, [Reason(code=Code.TURN_CONFLICT)], content=content)
        return None
    row = replace(row, agent=draft.agent, content=content)
    put_turn(ledger, draft.turn, row)
    code = Code.BARRIER_LATE if late else _at_once(ledger, draft)
    if code is not None:
        drop(ledger, draft, [Reason(code=code)])
        return None
    to, codes, now = destination(ledger, draft.agent, draft.room)
    if to is not None:
        _against(ledger, draft, to, ())
        return None
    if now.open:
        _downgrade(ledger, draft, codes, ended_by_deadline=False)
        return None
    return _hold(ledger, draft, codes)


def _at_once(ledger: Ledger, draft: TurnDrafted) -> Code | None:
    """What ends a draft before anything is looked at; the first is the only reason (R-TURN-9)."""
    if not _named(ledger, draft.agent, draft.room):
        return Code.AGENT_UNKNOWN
    if paused(ledger, draft.agent, draft.room):
        return Code.PAUSED
    if draft.deadline is not None and draft.deadline <= ledger.now:
        return Code.DEADLINE_PASSED
    if not draft.renderings and draft.action is None:
        return Code.NO_RENDERING
    return None


def _hold(ledger: Ledger, draft: TurnDrafted, codes: tuple[Code, ...]) -> Waiting:
    until = ledger.now + ledger.policy(draft.room).settings.stale.hold
    if draft.deadline is not None:
        until = min(until, draft.deadline)
    row = turn_of(ledger, draft.turn)
    put_turn(ledger, draft.turn, replace(row, waiting=draft))
    refs = everything(ledger, draft, row)
    decide(ledger, draft, Verdict.HOLD, _of_room(draft.room, codes), provenance=refs)
    ledger.ask(draft.agent, draft.room, Because.DRAFT, until)
    return Waiting(ledger.arrival, until, ledger.tenant, draft.agent, draft.room, draft.turn)


def _of_room(room: str, codes: tuple[Code, ...]) -> list[Reason]:
    return [Reason(code=code, ref=room) for code in codes]


def try_again(ledger: Ledger, waiting: Waiting) -> bool:
    """A listing has come: decide what waits, if its room is known and fresh now, or open; whether it was (R-TURN-6)."""
    to, codes, now = destination(ledger, waiting.agent, waiting.room)
    if to is None and not now.open:
        return False
    if _forsaken(ledger, waiting):
        return True
    if waiting.request is not None:
        request = _waiting_request(ledger, waiting)
        _answer(ledger, request, to or nowhere(ledger, waiting.agent, waiting.room))
        return True
    draft = _waiting_draft(ledger, waiting)
    if to is None:
        _downgrade(ledger, draft, codes, ended_by_deadline=False)
    else:
        _against(ledger, draft, to, ())
    return True


def time_is_up(ledger: Ledger, waiting: Waiting) -> bool:
    """The wait has ended: decide with the destination as unknown, or drop (R-TURN-6)."""
    if waiting.request is not None:
        _answer(ledger, _waiting_request(ledger, waiting), nowhere(ledger, waiting.agent, waiting.room))
        return True
    if _forsaken(ledger, waiting):
        return True
    draft = _waiting_draft(ledger, waiting)
    # A room of nobody into which somebody joined has no code against it, and still no listing that says who is there.
    codes = destination(ledger, draft.agent, draft.room)[1] or (Code.DESTINATION_UNKNOWN,)
    if ledger.policy(draft.room).settings.stale.then is Then.DROP:
        drop(ledger, draft, _of_room(draft.room, codes))
    else:
        _downgrade(ledger, draft, codes, ended_by_deadline=draft.deadline == waiting.until)
    return True


def _forsaken(ledger: Ledger, waiting: Waiting) -> bool:
    """Drop a draft whose agent a policy that came meanwhile does not name; whether that was so (R-POL-1, R-ROOM-7)."""
    if waiting.request is not None or _named(ledger, waiting.agent, waiting.room):
        return False
    drop(ledger, _waiting_draft(ledger, waiting), [Reason(code=Code.AGENT_UNKNOWN)])
    return True


def fail(ledger: Ledger, draft: TurnDrafted) -> None:
    """An error inside a decision is a drop, never a delivery, and changes nothing (R-RUN-6)."""
    decide(ledger, draft, Verdict.DROP, [Reason(code=Code.DECISION_ERROR)], content="")


def context_failed(ledger: Ledger, record: ContextRequested) -> None:
    """An error inside a context decision: nothing is handed over, and nothing is changed (R-RUN-6)."""
    _emit_context(ledger, record, (), _nothing(record, Code.DECISION_ERROR))


def wait_failed(ledger: Ledger, waiting: Waiting) -> None:
    """The same for what waited: it waits no more."""
    if waiting.request is not None:
        _withhold(ledger, _waiting_request(ledger, waiting), Code.DECISION_ERROR)
    else:
        drop(ledger, _waiting_draft(ledger, waiting), [Reason(code=Code.DECISION_ERROR)])


def stop(ledger: Ledger, waiting: Waiting) -> bool:
    """The agent was paused: what waits is dropped (R-POL-4)."""
    drop(ledger, _waiting_draft(ledger, waiting), [Reason(code=Code.PAUSED)])
    return True


def _waiting_draft(ledger: Ledger, waiting: Waiting) -> TurnDrafted:
    draft = turn_of(ledger, waiting.turn).waiting
    if draft is None:
        raise LookupError("what waits is not there")
    return draft


def _waiting_request(ledger: Ledger, waiting: Waiting) -> ContextRequested:
    row = None if waiting.request is None else ledger.tables.contexts.get((ledger.tenant, waiting.request))
    if row is None or row.waiting is None:
        raise LookupError("what waits is not there")
    return row.waiting


@dataclass(frozen=True, slots=True)
class Tried:
    """What a way to say the turn came to: its refs, the reasons against it, and whether R-AUD-10 was needed."""

    refs: tuple[str, ...]
    leaves: tuple[str, ...]
    reasons: list[Reason]
    own_words: bool


def _try(ledger: Ledger, draft: TurnDrafted, row: Turn, rendering: Rendering | None, to: Destination) -> Tried:
    """Hold one rendering, or the action alone, against the destination (R-TURN-2)."""
    refs, some = seen(ledger, draft, row, rendering)
    against: list[Reason] = []
    own_words = False
    leaves: set[str] = set()
    classified: list[tuple[str, str]] = []
    if not some:
        against.append(Reason(code=Code.SOURCE_MISSING))  # R-TURN-4
    for ref in refs:
        judged = judge(ledger, ref, to)
        against += reasons(ref, judged, draft.trigger)
        own_words = own_words or judged.own_words
        if judged.evidence is not None:
            leaves.update(judged.evidence.leaves)
            classified += judged.evidence.classified
    if len(leaves) > ledger.policy(draft.room).settings.evidence.max_leaves:
        against.append(Reason(code=Code.LEAF_LIMIT))  # R-EVI-5
    if not against:
        against = _not_yet(draft, classified)
    return Tried(tuple(sorted(refs)), tuple(sorted(leaves)), against, own_words)


#: What later rules will look for in text and parameters, by the class of a value; until they exist it stays inside.
_CLASS_CODES = {
    "health": Code.HEALTH_NOT_RETAINED,
    "secret": Code.SECRET_EXPOSED,
    "personal": Code.PERSONAL_EGRESS,
    "confidential": Code.CLASS_EGRESS,
    "internal": Code.CLASS_EGRESS,
}


def _not_yet(draft: TurnDrafted, classified: list[tuple[str, str]]) -> list[Reason]:
    """Rules EGR, ACT and TNT are not there yet, so nothing is delivered that they might refuse."""
    against = [Reason(code=_CLASS_CODES[kind], ref=name) for name, kind in classified]
    if draft.action is not None:
        against.append(Reason(code=Code.OPERATION_UNKNOWN, ref=draft.action.operation))
    return against


def _ways(draft: TurnDrafted) -> list[tuple[int | None, Rendering | None]]:
    """The ways to say the turn in order of preference; an action alone is one without text (R-TURN-9)."""
    return list(enumerate(draft.renderings)) if draft.renderings else [(None, None)]


def _against(ledger: Ledger, draft: TurnDrafted, to: Destination, codes: tuple[Code, ...]) -> None:
    """Decide against a destination that is known and fresh: the first rendering that passes is let out, whole."""
    row = turn_of(ledger, draft.turn)
    against: list[Reason] = _of_room(draft.room, codes)
    for number, rendering in _ways(draft):
        tried = _try(ledger, draft, row, rendering, to)
        if not tried.reasons:
            until = [t for t in (to.valid_until, draft.deadline) if t is not None]
            _let_out(ledger, draft, Verdict.DELIVER, number, tried, to, min(until, default=None))
            return
        against += tried.reasons
    drop(ledger, draft, against)


def _downgrade(ledger: Ledger, draft: TurnDrafted, codes: tuple[Code, ...], *, ended_by_deadline: bool) -> None:
    """Decide with an unknown destination: public evidence, else the policy's notice, else nothing (R-TURN-6)."""
    row = turn_of(ledger, draft.turn)
    to = nowhere(ledger, draft.agent, draft.room)
    until = None if ended_by_deadline else draft.deadline
    against: list[Reason] = _of_room(draft.room, codes)
    for number, rendering in _ways(draft):
        tried = _try(ledger, draft, row, rendering, to)
        if not tried.reasons:
            _let_out(ledger, draft, Verdict.DOWNGRADE, number, tried, to, until)
            return
        against += tried.reasons
    notice = ledger.policy(draft.room).settings.notice
    if notice is None or not draft.renderings:
        drop(ledger, draft, against)
        return
    _finish(ledger, draft, authorized=draft.room, leaves=())
    decision = decide(ledger, draft, Verdict.DOWNGRADE, against)
    authorize(ledger, draft, notice, to, (), until, decision)


def _let_out(
    ledger: Ledger,
    draft: TurnDrafted,
    verdict: Verdict,
    number: int | None,
    tried: Tried,
    to: Destination,
    until: int | None,
) -> None:
    _finish(ledger, draft, authorized=draft.room, leaves=tried.leaves)
    decision = decide(ledger, draft, verdict, [], provenance=tried.refs, leaves=tried.leaves, rendering=number)
    text = None if number is None else draft.renderings[number].text
    authorize(ledger, draft, text, to, tried.refs, until, decision, own_words=tried.own_words)


def drop(ledger: Ledger, draft: TurnDrafted, against: list[Reason]) -> None:
    """End a draft without sending anything; its provenance is all that it had (R-EVI-6)."""
    refs = everything(ledger, draft, turn_of(ledger, draft.turn))
    _finish(ledger, draft, authorized=None, leaves=())
    decide(ledger, draft, Verdict.DROP, against, provenance=refs)


def _finish(ledger: Ledger, draft: TurnDrafted, *, authorized: str | None, leaves: tuple[str, ...]) -> None:
    """The final decision of a turn: remember where it was let out to, with the leaves of what was sent (R-AUD-7)."""
    row = turn_of(ledger, draft.turn)
    put_turn(ledger, draft.turn, replace(row, final=True, waiting=None, authorized=authorized, leaves=leaves))
    close(ledger, draft)
