"""Decides which requests are the same: by the ids of the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from turngate.schemas import inputs, outputs
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import Record


class Kind(StrEnum):
    """What is asked for; the names of those that are answered stand in URLs."""

    CONTEXT = "context"
    DRAFT = "drafts"
    MEMORY = "memory"
    SHARING = "sharing"
    RESULT = "tool-results"
    PAGE = "listings"
    PROOF = "proofs"
    REVOCATION = "revocations"
    APPROVAL = "approvals"
    WITHDRAWAL = "withdrawals"
    CLAIM = "claims"
    DELIVERY = "deliveries"


class Key(NamedTuple):
    """What one request has for itself: an id means nothing in another tenant (R-ROOM-11)."""

    tenant: str
    kind: Kind
    id: str


_Of = Mapping[type[Record], tuple[Kind, Callable[[Any], str]]]
_ASKED: _Of = {
    inputs.ContextRequested: (Kind.CONTEXT, lambda r: r.request),
    inputs.TurnDrafted: (Kind.DRAFT, lambda r: r.turn),
    inputs.MemoryWrite: (Kind.MEMORY, lambda r: r.write),
    inputs.SharingRequested: (Kind.SHARING, lambda r: r.request),
    inputs.ToolReturned: (Kind.RESULT, lambda r: digest([r.agent, r.call])),  # evidence is one agent's (R-AUD-3)
    inputs.MembershipPage: (Kind.PAGE, lambda r: digest([r.agent, r.room, r.refresh, r.page])),  # R-ROOM-2
    inputs.AccountProven: (Kind.PROOF, lambda r: r.proof),
    inputs.ProofRevoked: (Kind.REVOCATION, lambda r: r.proof),
    inputs.ActionApproved: (Kind.APPROVAL, lambda r: r.approval),
    inputs.ApprovalWithdrawn: (Kind.WITHDRAWAL, lambda r: r.approval),
}
_ANSWERS: _Of = {
    outputs.ContextDecided: (Kind.CONTEXT, lambda r: r.request),
    outputs.TurnDecided: (Kind.DRAFT, lambda r: r.turn),
    outputs.RevisionRecorded: (Kind.MEMORY, lambda r: r.write),
    outputs.WriteRefused: (Kind.MEMORY, lambda r: r.write),
    outputs.SharingOffered: (Kind.SHARING, lambda r: r.request),
    outputs.CommandRefused: (Kind.SHARING, lambda r: r.command),
}


def asked(record: Record) -> Key | None:
    """What a request is known by; None for one that has no id of its own and may come any number of times.

    A delivery that is uncertain claims the turn, and one that says more comes after it (R-ACT-4, R-DLV-2).
    """
    if isinstance(record, inputs.TurnDelivered):
        claim = record.status is inputs.DeliveryStatus.UNCERTAIN
        return Key(record.tenant, Kind.CLAIM if claim else Kind.DELIVERY, record.turn)
    return _key(_ASKED, record)


def answers(record: Record) -> Key | None:
    """What an answer answers; None for any other record."""
    return _key(_ANSWERS, record)


def _key(of: _Of, record: Record) -> Key | None:
    known = of.get(type(record))
    return None if known is None else Key(record.tenant, known[0], known[1](record))
