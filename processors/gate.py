"""Decides what becomes of a draft (rules TURN)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from turngate.processors.agents import named, paused
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination, destination, ends, judge, nowhere, reasons
from turngate.processors.retention import over_age
from turngate.processors.rows import Turn, Waiting, WaitKind
from turngate.processors.sources import Exempt, as_seen
from turngate.processors.turns import close, everything, put_turn, seen, turn_of
from turngate.processors.verdicts import authorize, decide
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.outputs import Because, Verdict
from turngate.schemas.policy import Then
from turngate.schemas.shapes import Code, Reason, Rendering


def turn_drafted(ledger: Ledger, draft: TurnDrafted, *, late: bool = False) -> Waiting | None:
    """Decide a draft once (R-TURN-8), or let it wait for its room."""
    row = turn_of(ledger, draft.turn)
    content = digest(draft.model_dump(mode="json", exclude={"at"}))
    if row.content is not None:
        if content != row.content and content not in row.conflicts:
            put_turn(ledger, draft.turn, replace(row, conflicts=(*row.conflicts, content)))
            decide(ledger, draft, Verdict.DROP, [Reason(code=Code.TURN_CONFLICT)], content=content)
        return None
    ledger.active(draft.room)
    row = replace(row, agent=draft.agent, content=content, trigger=draft.trigger)
    put_turn(ledger, draft.turn, row)
    code = Code.BARRIER_LATE if late else _at_once(ledger, draft)
    if code is not None:
        drop(ledger, draft, [Reason(code=code)])
        return None
    to, codes, now = destination(ledger, draft.agent, draft.room)
    if to is not None:
        _against(ledger, draft, to)
        return None
    if now.open:
        _downgrade(ledger, draft, codes, ended_by_deadline=False)
        return None
    return _hold(ledger, draft, codes)


def _at_once(ledger: Ledger, draft: TurnDrafted) -> Code | None:
    """What ends a draft before anything is looked at; the first is the only reason (R-TURN-9)."""
    if not named(ledger, draft.agent, draft.room):
        return Code.AGENT_UNKNOWN
    if paused(ledger, draft.agent, draft.room):
        return Code.PAUSED
    if draft.deadline is not None and draft.deadline <= ledger.now:
        return Code.DEADLINE_PASSED
    if over_age(ledger, draft.room, draft.at):
        return Code.DEADLINE_PASSED  # R-RET-4
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
    return Waiting(ledger.arrival, until, WaitKind.DRAFT, ledger.tenant, draft.turn, draft.agent, draft.room)


def _of_room(room: str, codes: tuple[Code, ...]) -> list[Reason]:
    return [Reason(code=code, ref=room) for code in codes]


def room_known(ledger: Ledger, waiting: Waiting) -> None:
    """The room that a draft waits for is known and fresh, or shown to be open: decide (R-TURN-6)."""
    draft = waiting_draft(ledger, waiting)
    if _forsaken(ledger, draft):
        return
    to, codes, _ = destination(ledger, draft.agent, draft.room)
    if to is None:
        _downgrade(ledger, draft, codes, ended_by_deadline=False)
    else:
        _against(ledger, draft, to)


def time_is_up(ledger: Ledger, waiting: Waiting) -> None:
    """The wait has ended: decide with the destination as unknown, or drop (R-TURN-6)."""
    draft = waiting_draft(ledger, waiting)
    if _forsaken(ledger, draft):
        return
    # A room of nobody into which somebody joined has no code against it, and still no listing that says who is there.
    codes = destination(ledger, draft.agent, draft.room)[1] or (Code.DESTINATION_UNKNOWN,)
    if ledger.policy(draft.room).settings.stale.then is Then.DROP:
        drop(ledger, draft, _of_room(draft.room, codes))
    else:
        _downgrade(ledger, draft, codes, ended_by_deadline=draft.deadline == waiting.until)


def _forsaken(ledger: Ledger, draft: TurnDrafted) -> bool:
    """Drop a draft whose agent a policy that came meanwhile does not name; whether that was so (R-POL-1, R-ROOM-7)."""
    if named(ledger, draft.agent, draft.room):
        return False
    drop(ledger, draft, [Reason(code=Code.AGENT_UNKNOWN)])
    return True


def fail(ledger: Ledger, draft: TurnDrafted) -> None:
    """An error inside a decision is a drop, never a delivery, and changes nothing (R-RUN-6)."""
    decide(ledger, draft, Verdict.DROP, [Reason(code=Code.DECISION_ERROR)], content="")


def end(ledger: Ledger, waiting: Waiting, code: Code) -> None:
    """Drop what waits, for one reason: its agent was paused, or its decision failed."""
    drop(ledger, waiting_draft(ledger, waiting), [Reason(code=code)])


def waiting_draft(ledger: Ledger, waiting: Waiting) -> TurnDrafted:
    """The draft that waits. Raises `LookupError` where none does."""
    draft = turn_of(ledger, waiting.subject).waiting
    if draft is None:
        raise LookupError("what waits is not there")
    return draft


@dataclass(frozen=True, slots=True)
class Tried:
    """What a way to say the turn came to: its refs and leaves, the reasons against it, and what had to help."""

    refs: tuple[str, ...]
    leaves: tuple[str, ...]
    reasons: list[Reason]
    own_words: bool
    grants: tuple[str, ...]
    proofs: tuple[str, ...]


def _exempt(ledger: Ledger, draft: TurnDrafted) -> Exempt:
    """Of the revisions that the draft names, those that this turn wrote or retired by itself (R-TURN-5)."""
    if not draft.wrote and not draft.retired:
        return Exempt()
    rows = ledger.tables.revisions
    wrote = {r for r in draft.wrote if (x := rows.get((ledger.tenant, r))) is not None and x.turn == draft.turn}
    retired = {
        r for r in draft.retired if (x := rows.get((ledger.tenant, r))) is not None and x.retired_by == draft.turn
    }
    return Exempt(frozenset(wrote), frozenset(retired))


def _try(ledger: Ledger, draft: TurnDrafted, row: Turn, rendering: Rendering | None, to: Destination) -> Tried:
    """Hold one rendering, or the action alone, against the destination (R-TURN-2)."""
    refs, some = seen(ledger, draft, row, rendering)
    exempt = _exempt(ledger, draft)
    against: list[Reason] = []
    own_words = False
    classified: list[tuple[str, str]] = []
    grants: set[str] = set()
    proofs: set[str] = set()
    if not some:  # R-TURN-4
        return Tried(tuple(sorted(refs)), (), [Reason(code=Code.SOURCE_MISSING)], own_words=False, grants=(), proofs=())
    for ref in refs:
        judged = judge(ledger, ref, to, exempt)
        if judged.codes:
            against += reasons(ref, judged, draft.trigger)
        own_words = own_words or judged.own_words
        grants.update(judged.grants)
        proofs.update(judged.proofs)
        if judged.source is not None:
            classified += judged.source.classified
    leaves = as_seen(ledger, refs, draft.agent)
    if len(leaves) > ledger.policy(draft.room).settings.evidence.max_leaves:
        against.append(Reason(code=Code.LEAF_LIMIT))  # R-EVI-5
    if not against:
        against = _not_yet(draft, classified)
    return Tried(
        tuple(sorted(refs)), tuple(sorted(leaves)), against, own_words, tuple(sorted(grants)), tuple(sorted(proofs))
    )


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


def _against(ledger: Ledger, draft: TurnDrafted, to: Destination) -> None:
    """Decide against a destination that is known and fresh: the first rendering that passes is let out, whole."""
    row = turn_of(ledger, draft.turn)
    against: list[Reason] = []
    for number, rendering in _ways(draft):
        tried = _try(ledger, draft, row, rendering, to)
        if not tried.reasons:
            _let_out(ledger, draft, Verdict.DELIVER, number, tried, to, [to.valid_until, draft.deadline])
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
            _let_out(ledger, draft, Verdict.DOWNGRADE, number, tried, to, [until])
            return
        against += tried.reasons
    notice = ledger.policy(draft.room).settings.notice
    if notice is None or not draft.renderings:
        drop(ledger, draft, against)
        return
    _finish(ledger, draft, authorized=draft.room, refs=(), leaves=())
    decision = decide(ledger, draft, Verdict.DOWNGRADE, against)
    authorize(ledger, draft, notice, to, (), until, decision)


def _let_out(
    ledger: Ledger,
    draft: TurnDrafted,
    verdict: Verdict,
    number: int | None,
    tried: Tried,
    to: Destination,
    until: list[int | None],
) -> None:
    limits = [t for t in until if t is not None] + ends(ledger, tried.grants, tried.proofs)
    _finish(ledger, draft, authorized=draft.room, refs=tried.refs, leaves=tried.leaves)
    decision = decide(ledger, draft, verdict, [], provenance=tried.refs, leaves=tried.leaves, rendering=number)
    authorize(
        ledger,
        draft,
        None if number is None else draft.renderings[number].text,
        to,
        tried.refs,
        min(limits, default=None),
        decision,
        own_words=tried.own_words,
        grants=tried.grants,
        proofs=tried.proofs,
    )


def drop(ledger: Ledger, draft: TurnDrafted, against: list[Reason]) -> None:
    """End a draft without sending anything; its provenance is all that it had (R-EVI-6)."""
    refs = everything(ledger, draft, turn_of(ledger, draft.turn))
    _finish(ledger, draft, authorized=None, refs=(), leaves=())
    decide(ledger, draft, Verdict.DROP, against, provenance=refs)


def _finish(
    ledger: Ledger, draft: TurnDrafted, *, authorized: str | None, refs: tuple[str, ...], leaves: tuple[str, ...]
) -> None:
    """The final decision of a turn: remember where it was let out to, with the leaves of what was sent (R-AUD-7)."""
    row = turn_of(ledger, draft.turn)
    done = replace(row, final=True, waiting=None, authorized=authorized, refs=refs, leaves=leaves)
    put_turn(ledger, draft.turn, done)
    close(ledger, draft)
