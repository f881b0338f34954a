"""A partition that decides by a rule of its own, so that the runner can be held to its word without the real engine.

A message's evidence is known where its text says so, a draft is delivered where it has a rendering, an operator's grant
answers with a code, and everything else is silent. What cannot be decoded is refused as by the real engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from turngate.schemas.codec import Codec
from turngate.schemas.inputs import GrantCommanded, MessageObserved, PolicyPublished, Record, TurnDrafted
from turngate.schemas.outputs import (
    DecisionTraced,
    EvidenceRecorded,
    EvidenceStatus,
    RecordRefused,
    SharingOffered,
    TurnAuthorized,
    TurnDecided,
    Verdict,
)
from turngate.schemas.shapes import Audience, Leaf, Position, Reason
from turngate.streams.fold import Fold
from turngate.streams.log import Message, Stretch
from turngate.streams.scenarios.backend import Incoming


class StandInEngine:
    """Decides by what a record says, and remembers the records that it saw."""

    version = "stand-in"

    def __init__(self) -> None:
        self.now = 0
        self.seen: list[tuple[str, Record, int]] = []

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        self.now = max(self.now, timestamp)
        self.seen.append((position.topic, record, timestamp))
        if isinstance(record, MessageObserved):
            return [self._evidence(record)]
        if isinstance(record, TurnDrafted):
            return self._decided(record)
        if isinstance(record, GrantCommanded):
            return [self._offered(record)]
        return []

    def late(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        raise NotImplementedError("the runner waits for every record")

    def refuse(self, tenant: str, schema: str | None, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        sha = hashlib.sha256(raw).hexdigest()
        return [
            RecordRefused(
                tenant=tenant, at=timestamp, code="invalid", size=len(raw), sha256=sha, **self._place(position)
            )
        ]

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        return []

    @staticmethod
    def _place(position: Position) -> dict[str, object]:
        return {**position.model_dump(), "timestamp": 0}

    def _evidence(self, m: MessageObserved) -> EvidenceRecorded:
        readers = Audience(readers=("slack:T1/UALEX", "slack:T1/UKIM"))
        leaf = Leaf(agent=m.agent, author=m.author, room=m.room, audience=readers)
        status = EvidenceStatus.KNOWN if m.text == "known" else EvidenceStatus.UNKNOWN
        return EvidenceRecorded(
            tenant=m.tenant, at=self.now, ref=f"message:{m.message}", agent=m.agent, leaves=(leaf,), status=status
        )

    def _decided(self, d: TurnDrafted) -> list[Record]:
        common = {"tenant": d.tenant, "at": self.now, "turn": d.turn, "agent": d.agent, "room": d.room, "decision": "d"}
        verdict = Verdict.DELIVER if d.renderings else Verdict.DROP
        reasons = () if d.renderings else (Reason(code="no_rendering"), Reason(code="source_missing", ref="tool:c1"))
        trace = DecisionTraced(tenant=d.tenant, at=self.now, decision="d", turn=d.turn, policy="1", destination="x")
        out: list[Record] = [
            TurnDecided(verdict=verdict, reasons=reasons, leaves_digest="x", policy="1", **common),
            trace,
        ]
        if d.renderings:
            destination = Audience(workspaces=("slack:T1",))
            out.append(
                TurnAuthorized(destination=destination, text=d.renderings[0].text, valid_until=d.deadline, **common)
            )
        return out

    def _offered(self, g: GrantCommanded) -> SharingOffered:
        who = {"tenant": g.tenant, "at": self.now, "request": g.command, "agent": g.agent}
        where = {"room": "slack:T1/D1", "revision": "r@1", "audience": Audience(scope="public")}
        return SharingOffered(text="x", code="ABCDEFGH2345", expires_at=self.now, **who, **where)


class StandIn:
    """A back end and its one session; what was sent stays readable after the run."""

    partition = 3

    def __init__(self) -> None:
        self.engine = StandInEngine()
        self.sent: list[Incoming] = []
        self._fold = Fold(self.partition, self.engine, Codec())
        self._ends: dict[str, int] = {}

    @contextmanager
    def session(self) -> Iterator[StandIn]:
        yield self

    def send(self, records: Sequence[Incoming]) -> list[Message]:
        out = []
        for r in records:
            self.sent.append(r)
            at = self._ends.get(r.topic, 0)
            self._ends[r.topic] = at + 1
            message = Message(r.topic, self.partition, at, r.timestamp, r.key, r.value)
            commit = self._fold.apply(Stretch({r.topic: at}, {r.topic: at + 1}, [message]))
            out += [Message(o.topic, self.partition, 0, 0, o.key, o.value, o.headers) for o in commit.outputs]
        return out

    @property
    def records(self) -> list[Record]:
        """The records that reached the engine, but for policies."""
        return [r for _, r, _ in self.engine.seen if not isinstance(r, PolicyPublished)]
