"""Decides what has ended since a turn was authorized, so that nobody may claim it any more (R-DLV-1, R-POL-2, R-POL-4).

It goes by what the gateway has read of the log. A turn's room is not listed here; who sends into rooms lists them.
"""

from __future__ import annotations

from collections import OrderedDict

from turngate.gateway.book import LetOut
from turngate.schemas.inputs import (
    ActionApproved,
    AgentPaused,
    ApprovalWithdrawn,
    GrantCommanded,
    GrantOp,
    ProofRevoked,
    Record,
)
from turngate.schemas.outputs import GrantChanged, GrantState

#: Milliseconds for which a turn may be claimed that names no end (docs/decisions.md, Delivery).
WORTH_MS = 60_000
#: Milliseconds by which a connector's clock may be behind: a yes taken back so long before a decision still counts.
_SKEW = 5_000
#: Approvals of which it is remembered to which bytes they are.
_APPROVALS = 100_000


class Stops:
    """Pauses, and grants, proofs and approvals that have ended, of all tenants. For one event loop."""

    def __init__(self) -> None:
        self._commands: set[tuple[str, str]] = set()
        self._paused: set[tuple[str, str, str]] = set()
        self._ended: set[tuple[str, type, str]] = set()
        self._approved: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._withdrawn: dict[tuple[str, str], int] = {}

    def learn(self, record: Record) -> None:
        """Take notice of a record that is on the log; again, it changes nothing."""
        tenant = record.tenant
        match record:
            case AgentPaused() if (tenant, record.command) not in self._commands:  # told again, it undoes nothing
                self._commands.add((tenant, record.command))
                key = (tenant, record.agent, record.room or "")
                (self._paused.add if record.paused else self._paused.discard)(key)
            case GrantCommanded(op=GrantOp.REVOKE, grant=str(grant)):
                self._ended.add((tenant, GrantChanged, grant))
            case GrantChanged(grant=grant, state=state) if state is not GrantState.ACTIVE:
                self._ended.add((tenant, GrantChanged, grant))
            case ProofRevoked(proof=proof):
                self._ended.add((tenant, ProofRevoked, proof))
            case ActionApproved(approval=approval, fingerprint=fingerprint):
                self._approved.setdefault((tenant, approval), fingerprint)
                if len(self._approved) > _APPROVALS:
                    self._approved.popitem(last=False)
            case ApprovalWithdrawn(approval=approval):
                of = self._approved.get((tenant, approval))
                if of is not None:  # one that was withdrawn before it was given let out nothing
                    self._withdrawn[tenant, of] = max(record.at, self._withdrawn.get((tenant, of), 0))

    def ended(self, tenant: str, turn: LetOut, now: int) -> bool:
        """Whether a turn may not be claimed any more; `now` in milliseconds."""
        until = turn.at + WORTH_MS if turn.until is None else turn.until
        return (
            now >= until
            or any((tenant, turn.agent, room) in self._paused for room in ("", turn.room))
            or any((tenant, GrantChanged, grant) in self._ended for grant in turn.grants)
            or any((tenant, ProofRevoked, proof) in self._ended for proof in turn.proofs)
            or any(self._withdrawn.get((tenant, one), 0) >= turn.at - _SKEW for one in turn.fingerprints)
        )
