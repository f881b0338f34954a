"""Decides what an operator's grants and revocations do, and when a grant ends (R-GRT-6, R-GRT-9)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.agents import already
from turngate.processors.audience import keyed
from turngate.processors.ledger import Ledger
from turngate.processors.lineage import known
from turngate.processors.rows import Grant, Revision, Waiting, WaitKind
from turngate.processors.sources import REVISION
from turngate.schemas.inputs import GrantCommanded, GrantOp
from turngate.schemas.outputs import CommandRefused, GrantChanged, GrantState, RevisionState
from turngate.schemas.shapes import Audience, Code, Reason, Scope

#: `CommandRefused.status` by code; of any other, 422 (R-GRT-6).
_STATUS = {
    Code.CODE_UNKNOWN: 404,
    Code.SOURCE_MISSING: 404,
    Code.ALREADY_GRANTED: 409,
    Code.BASE_NOT_CURRENT: 409,
}


def refuse_command(ledger: Ledger, command: str, code: Code) -> None:
    """Emit `CommandRefused` with the status of its code."""
    reasons = (Reason(code=code),)
    status = _STATUS.get(code, 422)
    ledger.emit(CommandRefused(tenant=ledger.tenant, at=ledger.now, command=command, status=status, reasons=reasons))


def commanded(ledger: Ledger, record: GrantCommanded) -> Waiting | None:
    """An operator grants or revokes; the same command again changes nothing (R-GRT-3)."""
    if already(ledger, record.command):
        return None
    if record.op is GrantOp.REVOKE:
        _revoke(ledger, record)
        return None
    code = _against(ledger, record)
    if code is not None or record.audience is None or record.revision is None:
        refuse_command(ledger, record.command, code or Code.PARAM_INVALID)
        return None
    row = ledger.tables.revisions.rows[ledger.tenant, record.revision]
    made = Grant(
        record.agent,
        row.memory,
        record.revision,
        ledger.keep_audience(keyed(record.audience)),
        GrantState.ACTIVE,
        "operator",
        record.expires_at,
    )
    return add_grant(ledger, record.command, made)


def taken(ledger: Ledger, grant: str) -> bool:
    """Whether an id is a grant's or an offer's already; agents choose those of requests, operators of commands."""
    key = (ledger.tenant, grant)
    return key in ledger.tables.grants or key in ledger.tables.offers


def _against(ledger: Ledger, record: GrantCommanded) -> Code | None:
    row: Revision | None = None
    if record.revision is not None:
        row = ledger.tables.revisions.get((ledger.tenant, record.revision))
    if row is None or row.agent != record.agent or row.memory != record.memory or not usable(ledger, record.revision):
        return Code.BASE_NOT_CURRENT
    if row.over or not row.leaves or not known(ledger, row.leaves):
        return Code.SOURCE_UNKNOWN
    if record.audience is None or not explicit(record.audience):
        return Code.PARAM_INVALID
    return Code.ALREADY_GRANTED if taken(ledger, record.command) else None


def explicit(audience: Audience) -> bool:
    """Listed readers, a workspace, or public."""
    return audience.scope is Scope.PUBLIC or bool(audience.readers) or bool(audience.workspaces)


def usable(ledger: Ledger, revision: str | None) -> bool:
    """Whether a revision is its memory's current one, and not erased (R-RET-3)."""
    row = None if revision is None else ledger.tables.revisions.get((ledger.tenant, revision))
    if row is None or row.state is not RevisionState.CURRENT:
        return False
    return (ledger.tenant, f"{REVISION}{revision}") not in ledger.tables.deleted


def add_grant(ledger: Ledger, grant: str, made: Grant) -> Waiting | None:
    """Put a grant in force, and say when it ends of itself."""
    ledger.tables.grants.put((ledger.tenant, grant), made)
    of = (ledger.tenant, made.revision)
    ledger.tables.grants_of.put(of, (*(ledger.tables.grants_of.get(of) or ()), grant))
    _emit(ledger, grant, made)
    if made.expires_at is None:
        return None
    return Waiting(ledger.arrival, made.expires_at, WaitKind.GRANT, ledger.tenant, grant, made.agent)


def _revoke(ledger: Ledger, record: GrantCommanded) -> None:
    grant = None if record.grant is None else ledger.tables.grants.get((ledger.tenant, record.grant))
    if record.grant is None or grant is None or grant.state is not GrantState.ACTIVE:
        refuse_command(ledger, record.command, Code.SOURCE_MISSING)
        return
    end_grant(ledger, record.grant, GrantState.REVOKED, "operator")


def end_grant(ledger: Ledger, grant: str, state: GrantState, by: str) -> None:
    """A grant counts no more, for every decision from now on (R-GRT-9)."""
    key = (ledger.tenant, grant)
    row = replace(ledger.tables.grants.rows[key], state=state, by=by)
    ledger.tables.grants.put(key, row)
    _emit(ledger, grant, row)


def grant_ran_out(ledger: Ledger, waiting: Waiting) -> None:
    """A grant's own end has come."""
    row = ledger.tables.grants.get((ledger.tenant, waiting.subject))
    if row is not None and row.state is GrantState.ACTIVE:
        end_grant(ledger, waiting.subject, GrantState.EXPIRED, "time")


def _emit(ledger: Ledger, grant: str, row: Grant) -> None:
    ledger.emit(
        GrantChanged(
            tenant=ledger.tenant,
            at=ledger.now,
            grant=grant,
            agent=row.agent,
            memory=row.memory,
            revision=row.revision,
            audience=ledger.audience(row.audience),
            state=row.state,
            by=row.by,
        )
    )
