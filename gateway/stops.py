"""Decides what has ended since a turn was authorized, so that nobody may claim it any more (R-DLV-1, R-POL-2, R-POL-4).

It goes by what the gateway has read of the log. A turn's room is not listed here; who sends into rooms lists them.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

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
#: Milliseconds by which a yes may have been taken back before a decision that had not heard of it.
_SKEW = 5_000
#: Of each tenant, how much that has ended is known of each kind, and of how many approvals to which bytes they are.
MOST = 100_000


class _Ended:
    """What ended last, by name, and when. Of what is not known any more, everything has ended."""

    def __init__(self) -> None:
        self._at: OrderedDict[str, int] = OrderedDict()
        self._gone = -1

    def add(self, name: str, at: int) -> None:
        """It has ended at this time; again, the later one counts."""
        self._at[name] = max(at, self._at.pop(name, at))
        if len(self._at) > MOST:
            self._gone = max(self._gone, self._at.popitem(last=False)[1])

    def has(self, name: str, since: int) -> bool:
        """Whether it has ever ended, or may have `since` then."""
        return name in self._at or self._gone >= since

    def has_since(self, name: str, since: int) -> bool:
        """Whether it has ended `since` then, or may have."""
        return self._at.get(name, self._gone) >= since


@dataclass(frozen=True, slots=True)
class _Tenant:
    """What has ended of one tenant. `approved`: the bytes of each approval."""

    grants: _Ended = field(default_factory=_Ended)
    proofs: _Ended = field(default_factory=_Ended)
    withdrawn: _Ended = field(default_factory=_Ended)
    approved: OrderedDict[str, str] = field(default_factory=OrderedDict)


class Stops:
    """Pauses, and grants, proofs and approvals that have ended, of all tenants. For one event loop."""

    def __init__(self) -> None:
        self._commands: set[tuple[str, str]] = set()
        self._paused: set[tuple[str, str, str]] = set()
        self._tenants: defaultdict[str, _Tenant] = defaultdict(_Tenant)

    def learn(self, record: Record, at: int) -> None:
        """Take notice of a record that came onto the log `at` (ms); again, it changes nothing.

        When it happened as its writer saw it does not count: one that lies in the future would end what is yet to come.
        """
        tenant = record.tenant
        match record:
            case AgentPaused() if (tenant, record.command) not in self._commands:  # told again, it undoes nothing
                self._commands.add((tenant, record.command))
                key = (tenant, record.agent, record.room or "")
                (self._paused.add if record.paused else self._paused.discard)(key)
            case GrantCommanded(op=GrantOp.REVOKE, grant=str(grant)):
                self._tenants[tenant].grants.add(grant, at)
            case GrantChanged(grant=grant, state=state) if state is not GrantState.ACTIVE:
                self._tenants[tenant].grants.add(grant, at)
            case ProofRevoked(proof=proof):
                self._tenants[tenant].proofs.add(proof, at)
            case ActionApproved(approval=approval, fingerprint=fingerprint):
                approved = self._tenants[tenant].approved
                approved.setdefault(approval, fingerprint)
                if len(approved) > MOST:
                    approved.popitem(last=False)
            case ApprovalWithdrawn(approval=approval):
                of = self._tenants[tenant].approved.get(approval)
                if of is not None:  # one that was withdrawn before it was given let out nothing
                    self._tenants[tenant].withdrawn.add(of, at)

    def ended(self, tenant: str, turn: LetOut, now: int) -> bool:
        """Whether a turn may not be claimed any more; `now` in milliseconds."""
        until = turn.at + WORTH_MS if turn.until is None else turn.until
        of, since = self._tenants[tenant], turn.at - _SKEW
        return (
            now >= until
            or any((tenant, turn.agent, room) in self._paused for room in ("", turn.room))
            or any(of.grants.has(grant, since) for grant in turn.grants)
            or any(of.proofs.has(proof, since) for proof in turn.proofs)
            or any(of.withdrawn.has_since(one, since) for one in turn.fingerprints)
        )
