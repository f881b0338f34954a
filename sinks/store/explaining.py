"""Decides where the story of a turn is read: who could read its destination, what fed it, failed, and came of it.

Everything is read from records: nothing is decided anew. What no record says is named in `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row

from turngate.processors.audience import covers, full_in
from turngate.schemas.digests import audience_digest
from turngate.schemas.outputs import DecisionTraced, TracedRef
from turngate.schemas.shapes import Audience, Reason, Scope
from turngate.sinks.store.asking import Asked, Piece, leaf_names, words_of
from turngate.sinks.store.tables import (
    AUTHORIZATIONS,
    CANDIDATES,
    DECISIONS,
    DELIVERIES,
    GRANTS,
    MEMORIES,
    REASONS,
    TRACES,
)
from turngate.sinks.store.told import Decided, Delivered, Destination, Fed, Heard, Shared, Told

#: Milliseconds after a decision in which a broker may have stamped what was written together with it.
TOGETHER_MS = 1_000


def explain(connection: Connection, tenant: str, turn: str) -> Told | None:
    """What there is to tell of a tenant's turn; None where the store has no decision of it."""
    asked = Asked(connection, tenant)
    decided = asked.rows(DECISIONS, DECISIONS.c.turn == turn, DECISIONS.c.kind == "turn")
    if not decided:
        return None
    return _Story(asked, tenant, decided).told()


class _Story:
    def __init__(self, asked: Asked, tenant: str, decided: Iterable[Row[Any]]) -> None:
        self._asked = asked
        self._tenant = tenant
        # Another draft under the turn's id was answered, and is not the turn's decision (R-TURN-8).
        self._all = list(decided)
        own = [row for row in self._all if not self._conflict(row)]
        self._decided = own or self._all
        self._last = self._decided[-1]
        self._turn: str = self._last.turn
        self._until = self._last.time + TOGETHER_MS
        self._candidates = asked.rows(CANDIDATES, CANDIDATES.c.turn == self._turn)
        self._unknown: list[str] = []
        self._trace = self._traced()
        out = asked.rows(AUTHORIZATIONS, AUTHORIZATIONS.c.turn == self._turn)
        self._out = out[-1] if out else None

    def told(self) -> Told:
        if len(self._all) > len(self._decided):
            self._unknown.append("what another draft under this turn's id was: it was refused (turn_conflict)")
        destination = self._destination()
        fed = tuple(self._fed(ref, destination.audience) for ref in self._refs())
        grants = dict.fromkeys(() if self._trace is None else self._trace.grants)
        grants |= dict.fromkeys(() if self._out is None else self._names(self._out.grants, "which grants let it pass"))
        proofs = () if self._trace is None else self._trace.proofs
        if not proofs and self._out is not None:
            proofs = self._names(self._out.proofs, "which proofs let it pass")
        deliveries = tuple(
            Delivered(row.time, row.status, row.message, self._reasons("delivery", row))
            for row in self._asked.rows(DELIVERIES, DELIVERIES.c.turn == self._turn)
        )
        if self._out is not None and not deliveries:
            self._unknown.append("what became of it: no delivery was recorded")
        return Told(
            tenant=self._tenant,
            turn=self._turn,
            agent=self._last.agent,
            decisions=tuple(
                Decided(row.time, row.verdict, row.policy, row.rendering, self._reasons("turn", row))
                for row in self._decided
            ),
            destination=destination,
            evidence=fed,
            grants=tuple(self._shared(grant) for grant in grants),
            proofs=proofs,
            authorized=self._out is not None,
            valid_until=None if self._out is None else self._out.valid_until,
            deliveries=deliveries,
            unknown=(*self._unknown, *self._missed()),
        )

    def _names(self, value: Any, what: str) -> tuple[str, ...]:
        found = words_of(value)
        if found is None:
            self._unknown.append(f"{what}: the row that says it was altered")
        return found or ()

    def _conflict(self, row: Row[Any]) -> bool:
        return any(reason.code == "turn_conflict" for reason in self._reasons("turn", row))

    def _reasons(self, kind: str, row: Row[Any]) -> tuple[Reason, ...]:
        there = [REASONS.c.topic == row.topic, REASONS.c.partition == row.partition, REASONS.c.offset == row.offset]
        found = self._asked.rows(REASONS, REASONS.c.id == row.turn, REASONS.c.kind == kind, *there)
        return tuple(Reason(code=r.code, ref=r.ref, detail=r.detail) for r in found)

    def _traced(self) -> DecisionTraced | None:
        """The trace of the last decision: of several with one digest (a hold and its end) the last one."""
        rows = [
            row
            for row in self._asked.rows(TRACES, TRACES.c.turn == self._turn)
            if row.decision == self._last.decision and row.call is None
        ]
        if not rows:
            self._unknown.append("what was compared, and by which listing: the last decision has no trace here")
            return None
        try:
            return DecisionTraced.model_validate(rows[-1].trace)
        except ValueError:
            self._unknown.append("what was compared, and by which listing: the last decision's trace was altered")
            return None

    def _destination(self) -> Destination:
        room: str = self._last.room
        trace = self._trace
        audience = self._asked.audience(None if trace is None else trace.upper)
        if audience is None and trace is not None and trace.listing:
            at = dict(self._last.as_of).get("membership-refreshes", 0)
            audience = self._asked.listing(room, trace.listing, self._last.agent, at)
            if audience is not None and audience_digest(audience) != trace.upper:
                self._unknown.append("who exactly could read the room: what was listed is not what was decided by")
        if audience is None and self._out is not None:
            audience = self._asked.audience(self._out.destination)
        if audience is None or audience.scope is Scope.UNKNOWN:
            known = trace is not None and trace.upper is not None
            why = "whom its listing named is not in the store" if known else "no listing says so"
            self._unknown.append(f"who could read the room: {why}")
        return Destination(room, None if trace is None else trace.listed_at, audience)

    def _refs(self) -> list[str]:
        traced = [] if self._trace is None else [ref.ref for ref in self._trace.refs]
        if self._trace is not None and self._trace.unlisted:
            self._unknown.append(f"what {self._trace.unlisted} more sources were, which the trace does not list")
        named = [reason.ref for row in self._decided[-1:] for reason in self._reasons("turn", row)]
        refs = [ref for ref in named if ref is not None and ref.partition(":")[0] in ("message", "revision", "tool")]
        return list(dict.fromkeys([*traced, *self._names(self._last.provenance, "which sources it names"), *refs]))

    def _fed(self, ref: str, destination: Audience | None) -> Fed:
        traced = None if self._trace is None else next((t for t in self._trace.refs if t.ref == ref), None)
        sources = self._asked.sources(ref, agent=self._last.agent, until=self._until)
        source = sources[0] if sources else None
        pieces = () if source is None else source.leaves
        reasons = () if traced is None else traced.reasons
        if traced is None:
            reasons = tuple(r for r in self._reasons("turn", self._last) if r.ref == ref)
        return Fed(
            ref=ref,
            how=self._how(ref),
            permitted=None if traced is None else traced.permitted,
            reasons=reasons,
            leaves=tuple(_heard(piece, ref, traced, destination) for piece in pieces),
            restrictions=() if source is None else source.restrictions,
            memory=None if source is None else source.memory,
            state=None if source is None else source.state,
            made_of=self._made_of(ref),
            ended=self._asked.ended(ref),
        )

    def _how(self, ref: str) -> str:
        for row in self._candidates:
            if row.ref == ref:
                said = "permitted" if row.permitted else "withheld"
                return f"{said} by the context answer {row.request}"
        return "a tool's result" if ref.startswith("tool:") else "named by the draft"

    def _made_of(self, ref: str) -> tuple[str, ...]:
        kind, _, name = ref.partition(":")
        if kind != "revision":
            return ()
        made: dict[str, None] = {}
        for row in self._asked.rows(MEMORIES, MEMORIES.c.revision == name):
            made |= dict.fromkeys(row.sources)
            made |= {} if row.base is None else {f"revision:{row.base}": None}
            made |= {} if row.turn is None else {f"turn:{row.turn}": None}
        return tuple(made)

    def _shared(self, grant: str) -> Shared:
        rows = self._asked.rows(GRANTS, GRANTS.c.grant_id == grant, GRANTS.c.time <= self._until)
        given = [row for row in rows if row.state == "active"]
        if not given:
            return Shared(grant, None, None, None, None)
        row = given[-1]
        return Shared(grant, row.revision, self._asked.audience(row.audience), row.by, row.time)

    def _missed(self) -> list[str]:
        gone = self._asked.missed(self._last.partition)
        return [f"what {count} records of {topic} said, which were gone before they were read" for topic, count in gone]


def _heard(piece: Piece, ref: str, traced: TracedRef | None, destination: Audience | None) -> Heard:
    names = set(leaf_names(piece, ref))
    permitted: bool | None = None
    by: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    if traced is not None:
        if names.intersection(traced.leaves):
            permitted = True
        for other in traced.others:
            if names.intersection(other.leaves):
                permitted, codes = not other.codes, other.codes
                by = (
                    *(["own words of an open room"] if other.own_words else []),
                    *([] if other.grant is None else [f"grant {other.grant}"]),
                    *(f"proof {proof}" for proof in other.proofs),
                )
    return Heard(piece, permitted, by, codes, _missing(destination, piece.audience))


def _missing(destination: Audience | None, source: Audience | None) -> tuple[str, ...]:
    if destination is None or source is None or source.scope is not Scope.LISTED:
        return ()
    return tuple(r for r in destination.readers if not covers(source, r, full_in(destination, r)))
