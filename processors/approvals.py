"""Decides whose yes lets out which bytes, for how long and how often (R-TNT-6, R-ACT-3)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.audience import covers, full_in
from turngate.processors.bounds import standing
from turngate.processors.ledger import Ledger
from turngate.processors.rows import Approval
from turngate.processors.taint import of_conversation
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import ActionApproved, ApprovalWithdrawn, TurnDrafted
from turngate.schemas.outputs import TurnAuthorized
from turngate.schemas.shapes import Action


def action_fingerprint(action: Action) -> str:
    """SHA-256 of the operation, the skill and the parameters as they were drafted (contract section 2)."""
    params = {param.name: param.value for param in action.params}
    return digest({"operation": action.operation, "skill": action.skill, "params": params})


def turn_fingerprint(draft: TurnDrafted | TurnAuthorized, text: str | None) -> str:
    """SHA-256 of exactly what would be sent, and where (contract section 2)."""
    action = None if draft.action is None else action_fingerprint(draft.action)
    where = {"room": draft.room, "thread": draft.thread, "broadcast": draft.broadcast}
    return digest({"text": text, "action": action, **where})


def approved(ledger: Ledger, record: ActionApproved) -> bool:
    """Remember a yes, once; whether it is new. A withdrawal that came before it stands (R-POL-2)."""
    key = (ledger.tenant, record.approval)
    if key in ledger.tables.approvals:
        return False
    row = Approval(record.room, record.by, record.fingerprint, ledger.arrival, ledger.now, record.expires_at)
    ledger.tables.approvals.put(key, row)
    of_it = (ledger.tenant, record.fingerprint)
    ledger.tables.approved.put(of_it, (*(ledger.tables.approved.get(of_it) or ()), record.approval))
    return True


def withdrawn(ledger: Ledger, record: ApprovalWithdrawn) -> None:
    """Take a yes back, also one that has not been seen yet."""
    key = (ledger.tenant, record.approval)
    row = ledger.tables.approvals.get(key) or Approval("", "", "", ledger.arrival, ledger.now, None)
    ledger.tables.approvals.put(key, replace(row, withdrawn=True))


def covering(ledger: Ledger, draft: TurnDrafted, fingerprint: str) -> str | None:
    """The first approval that covers these bytes for this draft: unused, in time, after the taint, by who may."""
    for name in ledger.tables.approved.get((ledger.tenant, fingerprint)) or ():
        if covers_draft(ledger, draft, name):
            return name
    return None


def covers_draft(ledger: Ledger, draft: TurnDrafted, approval: str) -> bool:
    """Whether an approval, of whatever bytes, counts for a draft in this place now."""
    row = ledger.tables.approvals.rows[ledger.tenant, approval]
    if row.withdrawn or row.used not in (None, draft.turn) or row.room != draft.room:
        return False
    until = row.at + ledger.policy(row.room).settings.interlock.ask_ttl
    if ledger.now >= (until if row.expires_at is None else min(until, row.expires_at)):
        return False
    since = of_conversation(ledger, draft.agent, draft.room, draft.thread)[1]
    return row.arrival > since and _may_approve(ledger, draft.agent, draft.room, row.by)


def _may_approve(ledger: Ledger, agent: str, room: str, reader: str) -> bool:
    named = ledger.policy(room).settings.interlock.approvers
    return reader in named or member(ledger, agent, room, reader)


def member(ledger: Ledger, agent: str, room: str, reader: str) -> bool:
    """Whether somebody is certain to read the room now and is neither a guest there nor an agent of any version.

    Of an `open` room nobody is known to be that (R-ACT-1, R-TNT-6).
    """
    bounds = standing(ledger, agent, room).bounds
    if bounds is None or reader in ledger.policy(room).agents_accounts:
        return False
    lower = bounds.lower.audience
    if reader in lower.guests or reader in bounds.upper.audience.guests:
        return False
    return covers(lower, reader, full_in(lower, reader))


def known(ledger: Ledger, approval: str) -> Approval | None:
    """An approval that was given; None where there is none, or only its withdrawal."""
    row = ledger.tables.approvals.get((ledger.tenant, approval))
    return None if row is None or not row.fingerprint else row


def use(ledger: Ledger, approvals: tuple[str, ...], turn: str | None) -> None:
    """These approvals let a turn out, or, with None, are given back."""
    for name in approvals:
        row = ledger.tables.approvals.rows[ledger.tenant, name]
        ledger.tables.approvals.put((ledger.tenant, name), replace(row, used=turn))
