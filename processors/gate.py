"""Decides what becomes of a draft (rules TURN)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.agents import named, paused
from turngate.processors.approvals import covers_draft, use
from turngate.processors.ledger import Ledger
from turngate.processors.permits import Destination, destination, ends, nowhere
from turngate.processors.retention import over_age
from turngate.processors.rows import Approval, Turn, Waiting, WaitKind
from turngate.processors.taint import BOTH, arm
from turngate.processors.trial import Tried, best, exposure
from turngate.processors.turns import but, close, put_turn, turn_of
from turngate.processors.verdicts import authorize, decide
from turngate.schemas.digests import content_digest
from turngate.schemas.inputs import DeliveryStatus, TurnDelivered, TurnDrafted
from turngate.schemas.outputs import Because, Verdict
from turngate.schemas.policy import Then
from turngate.schemas.shapes import Action, Code, Reason


def turn_drafted(ledger: Ledger, draft: TurnDrafted, *, late: bool = False) -> Waiting | None:
    """Decide a draft once (R-TURN-8), or let it wait for its room or for somebody's yes."""
    known = ledger.tables.turns.get((ledger.tenant, draft.turn))
    content = content_digest(draft)
    if known is not None and known.content is not None:
        _again(ledger, draft, known, content)
        return None
    ledger.active(draft.room)
    if known is None:
        row = Turn(draft.agent, content, draft.trigger, seen=ledger.now, arrived=ledger.now)
    else:
        row = but(known, agent=draft.agent, content=content, trigger=draft.trigger, arrived=ledger.now)
    _expose(ledger, draft, row)
    code = Code.BARRIER_LATE if late else _at_once(ledger, draft)
    if code is not None:
        drop(ledger, draft, row, [Reason(code=code)])
        return None
    return _as_new(ledger, draft, row)


def _again(ledger: Ledger, draft: TurnDrafted, row: Turn, content: str) -> None:
    """The same content changes nothing; any other is dropped, once (R-TURN-8)."""
    if content != row.content and content not in row.conflicts:
        put_turn(ledger, draft.turn, replace(row, conflicts=(*row.conflicts, content)))
        _expose(ledger, draft, row)
        decide(ledger, draft, Verdict.DROP, [Reason(code=Code.TURN_CONFLICT)], content=content)


def _expose(ledger: Ledger, draft: TurnDrafted, row: Turn) -> None:
    """What a draft read arms its conversation, whether it is delivered or not (R-TNT-1)."""
    arm(ledger, draft.agent, draft.room, draft.thread, exposure(ledger, draft, row).read)


def _as_new(ledger: Ledger, draft: TurnDrafted, row: Turn) -> Waiting | None:
    """Decide against the room as it is now, or wait for a listing of it (R-TURN-6)."""
    to, codes, now = destination(ledger, draft.agent, draft.room)
    if to is not None:
        return _against(ledger, draft, row, to)
    if now.open:
        return _downgrade(ledger, draft, row, codes, ended_by_deadline=False)
    return _hold(ledger, draft, row, codes)


def _at_once(ledger: Ledger, draft: TurnDrafted) -> Code | None:
    """What ends a draft before anything is looked at; the first is the only reason (R-TURN-9)."""
    agent, room, deadline = draft.agent, draft.room, draft.deadline
    if not named(ledger, agent, room):
        return Code.AGENT_UNKNOWN
    if paused(ledger, agent, room):
        return Code.PAUSED
    if deadline is not None and deadline <= ledger.now:
        return Code.DEADLINE_PASSED
    if over_age(ledger, room, draft.at):
        return Code.DEADLINE_PASSED  # R-RET-4
    if not draft.renderings and draft.action is None:
        return Code.NO_RENDERING
    return None


def _hold(ledger: Ledger, draft: TurnDrafted, row: Turn, codes: tuple[Code, ...]) -> Waiting:
    until = ledger.now + ledger.policy(draft.room).settings.stale.hold
    if draft.deadline is not None:
        until = min(until, draft.deadline)
    put_turn(ledger, draft.turn, replace(row, waiting=draft, asks=None))
    refs = exposure(ledger, draft, row).refs
    decide(ledger, draft, Verdict.HOLD, _of_room(draft.room, codes), provenance=refs)
    ledger.ask(draft.agent, draft.room, Because.DRAFT, until)
    return _wait(ledger, draft, WaitKind.DRAFT, until)


def _wait(ledger: Ledger, draft: TurnDrafted, kind: WaitKind, until: int) -> Waiting:
    return Waiting(ledger.arrival, until, kind, ledger.tenant, draft.turn, draft.agent, draft.room)


def _of_room(room: str, codes: tuple[Code, ...]) -> list[Reason]:
    return [Reason(code=code, ref=room) for code in codes]


def room_known(ledger: Ledger, waiting: Waiting) -> Waiting | None:
    """The room that a draft waits for is known and fresh, or shown to be open: decide (R-TURN-6)."""
    row, draft = _waiting(ledger, waiting)
    if _forsaken(ledger, draft, row):
        return None
    to, codes, _ = destination(ledger, draft.agent, draft.room)
    if to is None:
        return _downgrade(ledger, draft, row, codes, ended_by_deadline=False)
    return _against(ledger, draft, row, to)


def time_is_up(ledger: Ledger, waiting: Waiting) -> Waiting | None:
    """The wait has ended: decide with the destination as unknown, or drop (R-TURN-6)."""
    row, draft = _waiting(ledger, waiting)
    if _forsaken(ledger, draft, row):
        return None
    # A room of nobody into which somebody joined has no code against it, and still no listing that says who is there.
    codes = destination(ledger, draft.agent, draft.room)[1] or (Code.DESTINATION_UNKNOWN,)
    if ledger.policy(draft.room).settings.stale.then is Then.DROP:
        drop(ledger, draft, row, _of_room(draft.room, codes))
        return None
    return _downgrade(ledger, draft, row, codes, ended_by_deadline=draft.deadline == waiting.until)


def never_approved(ledger: Ledger, waiting: Waiting) -> None:
    """Nobody said yes in time: the draft is dropped for what it asked (R-TNT-6, R-TURN-2)."""
    row, draft = _waiting(ledger, waiting)
    drop(ledger, draft, row, [] if row.asks is None else list(row.asks.reasons))


def covered(ledger: Ledger, waiting: Waiting, name: str, approval: Approval) -> bool:
    """Whether an approval that has come would let an asking draft out (R-TNT-6)."""
    row, draft = _waiting(ledger, waiting)
    if row.asks is None or approval.fingerprint not in row.asks.fingerprints:
        return False
    return covers_draft(ledger, draft, name)


def said_yes(ledger: Ledger, waiting: Waiting) -> Waiting | None:
    """An approval covers an asking draft: decide it again as if new (R-TNT-6)."""
    row, draft = _waiting(ledger, waiting)
    return None if _forsaken(ledger, draft, row) else _as_new(ledger, draft, row)


def _forsaken(ledger: Ledger, draft: TurnDrafted, row: Turn) -> bool:
    """Drop a draft whose agent a policy that came meanwhile does not name; whether that was so (R-POL-1, R-ROOM-7)."""
    if named(ledger, draft.agent, draft.room):
        return False
    drop(ledger, draft, row, [Reason(code=Code.AGENT_UNKNOWN)])
    return True


def fail(ledger: Ledger, draft: TurnDrafted) -> None:
    """An error inside a decision is a drop, never a delivery, and changes nothing (R-RUN-6)."""
    decide(ledger, draft, Verdict.DROP, [Reason(code=Code.DECISION_ERROR)], content="")


def end(ledger: Ledger, waiting: Waiting, code: Code) -> None:
    """Drop what waits, for one reason, such as that its agent was paused."""
    row, draft = _waiting(ledger, waiting)
    drop(ledger, draft, row, [Reason(code=code)])


def fail_waiting(ledger: Ledger, waiting: Waiting) -> None:
    """An error in deciding what waits ends it as a drop (R-RUN-6).

    What it had is not looked at, since that may be what failed; it may have been anything (R-TNT-1).
    """
    row, draft = _waiting(ledger, waiting)
    arm(ledger, draft.agent, draft.room, draft.thread, BOTH)
    put_turn(ledger, draft.turn, replace(row, final=True, waiting=None, asks=None))
    close(ledger, draft)
    decide(ledger, draft, Verdict.DROP, [Reason(code=Code.DECISION_ERROR)])


def _waiting(ledger: Ledger, waiting: Waiting) -> tuple[Turn, TurnDrafted]:
    """The draft that waits, and its turn. Raises `LookupError` where none does."""
    row = turn_of(ledger, waiting.subject)
    if row.waiting is None:
        raise LookupError("what waits is not there")
    return row, row.waiting


def _against(ledger: Ledger, draft: TurnDrafted, row: Turn, to: Destination) -> Waiting | None:
    """Decide against a destination that is known and fresh: the first rendering that passes is let out, whole."""
    found = best(ledger, draft, row, to)
    if isinstance(found, list):
        drop(ledger, draft, row, found)
        return None
    number, tried = found
    if tried.ask is not None:
        return _ask(ledger, draft, row, tried)
    _let_out(ledger, draft, row, Verdict.DELIVER, number, tried, to, [to.valid_until, draft.deadline])
    return None


def _downgrade(
    ledger: Ledger, draft: TurnDrafted, row: Turn, codes: tuple[Code, ...], *, ended_by_deadline: bool
) -> Waiting | None:
    """Decide with an unknown destination: public evidence, else the policy's notice, else nothing (R-TURN-6)."""
    to = nowhere(ledger, draft.agent, draft.room)
    until = None if ended_by_deadline else draft.deadline
    found = best(ledger, draft, row, to)
    if not isinstance(found, list):
        number, tried = found
        if tried.ask is not None:
            return _ask(ledger, draft, row, tried)
        _let_out(ledger, draft, row, Verdict.DOWNGRADE, number, tried, to, [until])
        return None
    against = _of_room(draft.room, codes) + found
    notice = ledger.policy(draft.room).settings.notice
    if notice is None or not draft.renderings:
        drop(ledger, draft, row, against)
        return None
    nothing = Tried(())
    _finish(ledger, draft, row, against, authorized=draft.room, tried=nothing)
    authorize(ledger, draft, Verdict.DOWNGRADE, nothing, notice, to, until, action=None, against=against)
    return None


def _ask(ledger: Ledger, draft: TurnDrafted, row: Turn, tried: Tried) -> Waiting | None:
    """Wait for a yes to exactly these bytes, until `ask_ttl` after the draft arrived (R-TNT-6)."""
    until = _ask_ends(ledger, draft, row)
    if until <= ledger.now:
        drop(ledger, draft, row, tried.reasons)
        return None
    put_turn(ledger, draft.turn, replace(row, waiting=draft, asks=tried.ask))
    fingerprint = None if tried.ask is None else tried.ask.fingerprints[0]
    refs = exposure(ledger, draft, row).refs
    decide(ledger, draft, Verdict.ASK, tried.reasons, provenance=refs, fingerprint=fingerprint)
    return _wait(ledger, draft, WaitKind.ASK, until)


def _ask_ends(ledger: Ledger, draft: TurnDrafted, row: Turn) -> int:
    until = row.arrived + ledger.policy(draft.room).settings.interlock.ask_ttl
    return until if draft.deadline is None else min(until, draft.deadline)


def ask_ends(ledger: Ledger, waiting: Waiting) -> int:
    """When a draft asks no more, by the policy in force now; a tightening applies at once (R-POL-1)."""
    row, draft = _waiting(ledger, waiting)
    return _ask_ends(ledger, draft, row)


def _let_out(
    ledger: Ledger,
    draft: TurnDrafted,
    row: Turn,
    verdict: Verdict,
    number: int | None,
    tried: Tried,
    to: Destination,
    until: list[int | None],
) -> None:
    limits = [t for t in until if t is not None] + ends(ledger, tried.grants, tried.proofs) + list(tried.until)
    _finish(ledger, draft, row, [], authorized=draft.room, tried=tried, action=draft.action)
    text = None if number is None else draft.renderings[number].text
    ends_at = min(limits, default=None)
    authorize(ledger, draft, verdict, tried, text, to, ends_at, action=draft.action, rendering=number)


def drop(ledger: Ledger, draft: TurnDrafted, row: Turn, against: list[Reason]) -> None:
    """End a draft without sending anything; its provenance is all that it had (R-EVI-6)."""
    refs = exposure(ledger, draft, row).refs
    _finish(ledger, draft, row, against, authorized=None, tried=Tried(()))
    decide(ledger, draft, Verdict.DROP, against, provenance=refs)


def _finish(
    ledger: Ledger,
    draft: TurnDrafted,
    row: Turn,
    against: list[Reason],
    *,
    authorized: str | None,
    tried: Tried,
    action: Action | None = None,
) -> None:
    """The final decision of a turn: remember where it was let out to, with the leaves of what was sent (R-AUD-7).

    A missing ref for which the draft was not refused may have been anything (R-TNT-1).
    """
    missing = exposure(ledger, draft, row).missing
    if missing:
        refused = {reason.ref for reason in against if reason.code == Code.SOURCE_MISSING and authorized is None}
        if any(ref not in refused for ref in missing):
            arm(ledger, draft.agent, draft.room, draft.thread, BOTH)
    use(ledger, tried.approvals, draft.turn)
    for claim in tried.claims:
        ledger.tables.claims.put((ledger.tenant, *claim), draft.turn)
    done = but(
        row,
        final=True,
        waiting=None,
        asks=None,
        authorized=authorized,
        refs=tried.refs,
        leaves=tried.leaves,
        approvals=tried.approvals,
        claims=tried.claims,
        operation=None if action is None else action.operation,
    )
    put_turn(ledger, draft.turn, done)
    close(ledger, draft)


def delivered(ledger: Ledger, record: TurnDelivered) -> None:
    """What the sink did: the first record stands, but for `uncertain`, which a later one resolves (R-ACT-4).

    What was never sent gives back what it claimed and the approvals that let it out (R-TNT-6).
    """
    row = turn_of(ledger, record.turn)
    if row.authorized != record.room or row.delivered not in (None, DeliveryStatus.UNCERTAIN):
        return
    put_turn(ledger, record.turn, replace(row, delivered=record.status))
    if record.status in (DeliveryStatus.WITHHELD, DeliveryStatus.FAILED):
        use(ledger, row.approvals, None)
        for claim in row.claims:
            ledger.tables.claims.drop((ledger.tenant, *claim))
