"""Decides what the log has said, up to its end, that bears on a turn authorized before (R-DLV-1, R-POL-2, R-POL-4)."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from turngate.processors.policy import Effective, effective
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import (
    AccountProven,
    ActionApproved,
    AgentPaused,
    ApprovalWithdrawn,
    DeliveryStatus,
    ErasureCommanded,
    GrantCommanded,
    GrantOp,
    MembershipChanged,
    PolicyPublished,
    ProofRevoked,
    Record,
    RoomChanged,
    TurnDelivered,
)
from turngate.schemas.outputs import ErasureApplied, GrantChanged, GrantState, StretchApplied, TurnDecided, Verdict
from turngate.schemas.policy import Policy, PolicyInvalid, parse_policy
from turngate.schemas.shapes import Code, Position
from turngate.streams.log import Message

COMMANDS, MESSAGES = "operator-commands", "observed-messages"
#: What is read for them: from the beginning, or only of late.
WHOLE = (COMMANDS, "policies", "grants", "identity-proofs", "room-lifecycle")
LATE = ("membership-refreshes", "turn-verdicts", "deliveries", "approvals")
#: Milliseconds for which events of rooms are remembered; no listing older than this decides anything.
KEPT_MS = 3_600_000
#: Decisions of which the policy is remembered, turns of which it is that they have ended, and approvals.
MOST = 10_000

V = TypeVar("V")
_Event = MembershipChanged | RoomChanged
_OF = INPUT_TOPICS | OUTPUT_TOPICS
FINAL = (Verdict.DELIVER, Verdict.DOWNGRADE, Verdict.DROP)


@dataclass(frozen=True, slots=True)
class _Proof:
    subject: str
    expires_at: int


class Facts:
    """What was said on `WHOLE` and `LATE`, of every tenant.

    Of a grant or a proof only the end is looked for: it was live when the turn was authorized, and its beginning may
    lie farther back than its topic does.
    """

    def __init__(self) -> None:
        #: The greatest broker timestamp seen, in milliseconds.
        self.now = 0
        #: Who else is told of every record.
        self.listener: Callable[[Record], None] = lambda record: None
        self._policies: dict[str, list[Policy]] = {}
        self._labels: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._asked: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._ended: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._approved: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._withdrawn: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._delivered: OrderedDict[tuple[str, str], DeliveryStatus] = OrderedDict()
        self._commands: set[tuple[str, str]] = set()
        self._paused: set[tuple[str, str, str]] = set()
        self._grants: dict[tuple[str, str], Code] = {}
        self._proofs: dict[tuple[str, str], tuple[str, str]] = {}
        self._proofs_of: dict[tuple[str, str, str], dict[str, _Proof]] = {}
        self._revoked: set[tuple[str, str]] = set()
        self._endings: defaultdict[str, list[tuple[int, Code]]] = defaultdict(list)
        self._told: defaultdict[tuple[str, str], deque[tuple[int, _Event]]] = defaultdict(deque)
        self._oldest: deque[tuple[int, tuple[str, str]]] = deque()
        self._erased: defaultdict[str, set[str]] = defaultdict(set)
        self._erasing: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        self._carried_out: set[tuple[str, str]] = set()
        self._applied: dict[tuple[str, int], int] = {}

    def read(self, codec: Codec, message: Message) -> None:
        """Take notice of what lies on the log, if it is on its own topic and under its tenant's key (R-EVI-10)."""
        with suppress(Undecodable):
            record = codec.decode(message.value)
            if isinstance(record, _OF[message.topic]) and message.key == record.tenant.encode():
                self.learn(record, message.timestamp)
                if isinstance(record, ErasureCommanded):
                    self._erasing[record.tenant][record.command] = (message.partition, message.offset)

    def learn(self, record: Record, timestamp: int) -> None:
        """Take notice of a record; `timestamp` is the log's own."""
        self.now = max(self.now, timestamp)
        self.listener(record)
        match record:
            case PolicyPublished():
                self._published(record)
            case AgentPaused():
                self._pause(record)
            case GrantCommanded(op=GrantOp.REVOKE, grant=str(grant)):
                # Also before a worker has carried it out: a revocation never waits (R-POL-2).
                self._grants[record.tenant, grant] = Code.GRANT_REVOKED
                self._endings[record.tenant].append((timestamp, Code.GRANT_REVOKED))
            case GrantCommanded(expires_at=int(end)):
                self._endings[record.tenant].append((end, Code.GRANT_EXPIRED))
            case GrantChanged():
                self._grant(record, timestamp)
            case ActionApproved() if (record.tenant, record.approval) not in self._approved:
                _remember(self._approved, (record.tenant, record.approval), record.fingerprint)
            case ApprovalWithdrawn():
                of = self._approved.get((record.tenant, record.approval))
                if of is not None:  # one that was withdrawn before it was given let out nothing
                    _remember(self._withdrawn, (record.tenant, of), timestamp)
            case AccountProven():
                self._proven(record, timestamp)
            case ProofRevoked():
                self._revoked.add((record.tenant, record.proof))
                self._endings[record.tenant].append((timestamp, Code.PROOF_NOT_LIVE))
            case MembershipChanged() | RoomChanged():
                self._happened(record, timestamp)
            case TurnDelivered():
                if self.delivered(record.tenant, record.turn) in (None, DeliveryStatus.UNCERTAIN):  # R-ACT-4
                    _remember(self._delivered, (record.tenant, record.turn), record.status)
            case ErasureApplied():
                self._erased[record.tenant].update(record.refs)
                self._carried_out.add((record.tenant, record.command))
            case StretchApplied():
                self._reached(record.to)
            case TurnDecided():
                self._reached(record.as_of)
                _remember(self._labels, (record.tenant, record.decision), record.policy)
                if record.verdict is Verdict.ASK:
                    _remember(self._asked, (record.tenant, record.turn), None)
                if record.verdict in FINAL:
                    _remember(self._ended, (record.tenant, record.turn), None)

    def policy(self, tenant: str, decision: str | None) -> Effective:
        """The policy in force for a decision's room: the version it was pinned to and every later one (R-POL-1).

        Where the decision is not known, all versions there are: that can only restrict.
        """
        versions = self._policies.get(tenant, [])
        label = None if decision is None else self._labels.get((tenant, decision))
        pinned = re.match(r"[0-9]+", label) if label is not None else None
        if pinned is not None:
            versions = [v for v in versions if v.version >= int(pinned[0])]
        return effective(tuple(versions))

    def paused(self, tenant: str, agent: str, room: str) -> bool:
        """Whether an operator has stopped the agent, everywhere or in this room (R-POL-4)."""
        return (tenant, agent, "") in self._paused or (tenant, agent, room) in self._paused

    def ended_grant(self, tenant: str, grant: str) -> Code | None:
        """With which code a grant has ended; None where it has not."""
        return self._grants.get((tenant, grant))

    def live_proof(self, tenant: str, proof: str, now: int) -> bool:
        """Whether a proof still binds its account: neither revoked nor expired, nor beside one of another subject."""
        if (tenant, proof) in self._revoked:
            return False
        owner = self._proofs.get((tenant, proof))
        if owner is None:
            return True
        proofs = self._proofs_of[tenant, *owner]
        live = {p.subject for i, p in proofs.items() if (tenant, i) not in self._revoked and now < p.expires_at}
        return now < proofs[proof].expires_at and len(live) == 1

    def withdrawn_since(self, tenant: str, fingerprint: str, since: int) -> bool:
        """Whether somebody has taken back their yes to these bytes at or after a time (R-POL-2)."""
        return self._withdrawn.get((tenant, fingerprint), -1) >= since

    def ended_since(self, tenant: str, since: int, now: int) -> Code | None:
        """With which code some grant or proof of the tenant's ended at or after a time; None where none did."""
        return next((code for at, code in self._endings[tenant] if since <= at <= now), None)

    def ended(self, tenant: str, turn: str) -> bool:
        """Whether a turn is known to have had its final decision."""
        return (tenant, turn) in self._ended

    def asked(self, tenant: str, turn: str) -> bool:
        """Whether a turn is known to have asked for somebody's yes."""
        return (tenant, turn) in self._asked

    def delivered(self, tenant: str, turn: str) -> DeliveryStatus | None:
        """What was recorded of a turn of late; None where nothing was."""
        return self._delivered.get((tenant, turn))

    def joined_since(self, tenant: str, room: str, since: int) -> list[MembershipChanged]:
        """Who came or went at or after this time, or was said to."""
        events = self._told.get((tenant, room), ())
        return [event for at, event in events if isinstance(event, MembershipChanged) and at >= since]

    def changed_since(self, tenant: str, agent: str, room: str, since: int) -> bool:
        """Whether the room became something else at or after this time (R-ROOM-5)."""
        return any(
            isinstance(event, RoomChanged) and event.agent in (None, agent) and at >= since
            for at, event in self._told.get((tenant, room), ())
        )

    def erased(self, tenant: str, refs: Iterable[str]) -> list[str]:
        """Those of these refs whose texts were erased (R-RET-3), in their order."""
        return [ref for ref in refs if ref in self._erased.get(tenant, ())]

    def erasing(self, tenant: str) -> bool:
        """Whether something is to be erased of which no worker has said yet what it reaches."""
        return any(
            (tenant, command) not in self._carried_out and self.applied(COMMANDS, partition) <= offset
            for command, (partition, offset) in self._erasing[tenant].items()
        )

    def applied(self, topic: str, partition: int) -> int:
        """The position before which everything on an input topic is known to have been applied."""
        return self._applied.get((topic, partition), 0)

    def _reached(self, positions: Iterable[Position]) -> None:
        for position in positions:
            place = (position.topic, position.partition)
            self._applied[place] = max(position.offset, self.applied(*place))

    def _happened(self, record: _Event, timestamp: int) -> None:
        key = (record.tenant, record.room)
        self._told[key].append((max(record.at, timestamp), record))
        self._oldest.append((timestamp, key))
        while self._oldest and self._oldest[0][0] <= self.now - KEPT_MS:
            _, old = self._oldest.popleft()
            self._told[old].popleft()
            if not self._told[old]:
                del self._told[old]

    def _published(self, record: PolicyPublished) -> None:
        try:
            policy = parse_policy(record.document)
        except PolicyInvalid:
            return
        known = self._policies.setdefault(record.tenant, [])
        if record.version == str(policy.version) and all(policy.version > v.version for v in known):
            known.append(policy)

    def _pause(self, record: AgentPaused) -> None:
        """A command that is told again does nothing (R-RUN-4)."""
        if (record.tenant, record.command) in self._commands:
            return
        self._commands.add((record.tenant, record.command))
        key = (record.tenant, record.agent, record.room or "")
        (self._paused.add if record.paused else self._paused.discard)(key)

    def _grant(self, record: GrantChanged, timestamp: int) -> None:
        if record.state is not GrantState.ACTIVE:
            expired = record.state is GrantState.EXPIRED
            code = Code.GRANT_EXPIRED if expired else Code.GRANT_REVOKED
            self._grants.setdefault((record.tenant, record.grant), code)
            self._endings[record.tenant].append((timestamp, code))

    def _proven(self, record: AccountProven, timestamp: int) -> None:
        """The same proof again changes nothing (R-IDN-1)."""
        if (record.tenant, record.proof) not in self._proofs:
            self._proofs[record.tenant, record.proof] = (record.agent, record.reader)
            proofs = self._proofs_of.setdefault((record.tenant, record.agent, record.reader), {})
            at = timestamp if any(p.subject != record.subject for p in proofs.values()) else record.expires_at
            self._endings[record.tenant].append((at, Code.PROOF_NOT_LIVE))
            proofs[record.proof] = _Proof(record.subject, record.expires_at)


def _remember(rows: OrderedDict[tuple[str, str], V], key: tuple[str, str], value: V) -> None:
    rows[key] = value
    rows.move_to_end(key)
    if len(rows) > MOST:
        rows.popitem(last=False)
