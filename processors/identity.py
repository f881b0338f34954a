"""Decides whether two accounts are one person: live proofs of both, for one agent (rules IDN)."""

from __future__ import annotations

from turngate.processors.ledger import Ledger
from turngate.processors.rows import Proof
from turngate.schemas.inputs import AccountProven, ProofRevoked


def proven(ledger: Ledger, record: AccountProven) -> None:
    """An account was proven to be a subject's (R-IDN-1). The same proof again changes nothing, revoked or not."""
    key = (ledger.tenant, record.proof)
    known = ledger.tables.proofs.get(key)
    if known is not None and known.reader:
        return
    revoked = known is not None
    ledger.tables.proofs.put(key, Proof(record.agent, record.reader, record.subject, record.expires_at, revoked))
    owner = (ledger.tenant, record.agent, record.reader)
    ledger.tables.proofs_of.put(owner, (*_still_needed(ledger, owner), record.proof))


def _still_needed(ledger: Ledger, owner: tuple[str, str, str]) -> list[str]:
    """An account's proofs but for those that have ended and say no more than a later one: removed, lest they pile up.

    The last of each subject stays, since it tells `proof_not_live` from never having been proven.
    """
    kept: list[str] = []
    said: set[str] = set()
    for proof in reversed(ledger.tables.proofs_of.get(owner) or ()):
        row = ledger.tables.proofs.rows[ledger.tenant, proof]
        if row.subject in said and row.expires_at <= ledger.now:
            ledger.tables.proofs.drop((ledger.tenant, proof))
        else:
            kept.append(proof)
        said.add(row.subject)
    return kept[::-1]


def revoked(ledger: Ledger, record: ProofRevoked) -> None:
    """A proof counts no more, also one that has not come yet (R-POL-2)."""
    key = (ledger.tenant, record.proof)
    known = ledger.tables.proofs.get(key) or Proof("", "", "", 0)
    ledger.tables.proofs.put(key, Proof(known.agent, known.reader, known.subject, known.expires_at, revoked=True))


def continuity(ledger: Ledger, agent: str, a: str, b: str) -> tuple[str, str] | None:
    """The live proofs that bind both accounts to one subject, or None (R-IDN-2)."""
    first, second = _bound(ledger, agent, a), _bound(ledger, agent, b)
    if first is None or second is None or first[0] != second[0]:
        return None
    return (first[1], second[1])


def lapsed(ledger: Ledger, agent: str, a: str, b: str) -> bool:
    """Whether proofs that are no longer live would have bound both accounts to one subject (`proof_not_live`)."""
    return not _subjects(ledger, agent, a).isdisjoint(_subjects(ledger, agent, b))


def _proofs(ledger: Ledger, agent: str, reader: str) -> list[tuple[str, Proof]]:
    ids = ledger.tables.proofs_of.get((ledger.tenant, agent, reader)) or ()
    return [(i, ledger.tables.proofs.rows[ledger.tenant, i]) for i in ids]


def _bound(ledger: Ledger, agent: str, reader: str) -> tuple[str, str] | None:
    """The one subject that an account's live proofs name, with the first of them; of two, it is bound to none."""
    live = sorted(
        ((i, p) for i, p in _proofs(ledger, agent, reader) if not p.revoked and ledger.now < p.expires_at),
        key=lambda x: x[0],
    )
    subjects = {p.subject for _, p in live}
    return (subjects.pop(), live[0][0]) if len(subjects) == 1 else None


def _subjects(ledger: Ledger, agent: str, reader: str) -> set[str]:
    return {p.subject for _, p in _proofs(ledger, agent, reader)}


def expiry(ledger: Ledger, proofs: tuple[str, ...]) -> list[int]:
    """When each of these proofs ends."""
    return [ledger.tables.proofs.rows[ledger.tenant, proof].expires_at for proof in proofs]
