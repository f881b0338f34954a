"""Decides whether what the store has of decisions is what was decided: its traces are whole chains that name them.

The records are put together again from their rows, so that a row that was altered, added or removed is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Table, func, select, union

from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Position, Reason
from turngate.sinks.store.asking import Asked
from turngate.sinks.store.tables import AUTHORIZATIONS, CANDIDATES, DECISIONS, POSITIONS, REASONS, TRACES
from turngate.streams import chain
from turngate.streams.chain import AUDIT, BOUND, OUTBOUND, VERDICTS, Break, Chains, Link

R = TypeVar("R", bound=Record)
#: Columns that say which record a row is of, and others that are not the record's fields by these names.
_PLACE = frozenset({"topic", "partition", "offset", "time"})
_ELSEWHERE: dict[type[Record], frozenset[str]] = {
    TurnDecided: frozenset({"kind"}),
    ContextDecided: frozenset({"kind"}),
    TurnAuthorized: frozenset({"operation", "says"}),
}
#: Rows that are fetched at once.
_ROWS = 1_000
#: Milliseconds before the newest record for which a topic may lag behind another one while a store is being filled.
SETTLE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Verified:
    """What one tenant's chain came to. `waiting`: its last decision or trace is so new that the other may yet come."""

    tenant: str
    partition: int
    chains: Chains
    breaks: list[Break]
    waiting: bool


def verify(
    connection: Connection,
    signed: Mapping[int, Mapping[str, Collection[Link]]] | None = None,
    bound: Collection[str] = BOUND,
    settle: int | None = SETTLE_MS,
) -> Iterator[Verified]:
    """Check every tenant's chain, and the records that it names on the topics of `bound`.

    `signed`: by partition, what checkpoints have of each tenant. What lies in the last `settle` milliseconds of a
    partition may lack its counterpart; None where the store has been filled to the end, and nothing may.
    """
    of = union(*(select(table.c.tenant, table.c.partition) for table in (TRACES, DECISIONS, AUTHORIZATIONS)))
    links = {} if signed is None else signed
    places = {(tenant, partition) for tenant, partition in connection.execute(of)}
    places |= {(tenant, partition) for partition, tenants in links.items() for tenant in tenants}
    for tenant, partition in sorted(places):
        rows = _Rows(connection, tenant, partition)
        settled = None if settle is None else rows.newest() - settle
        yield _verified(rows, links.get(partition, {}).get(tenant, ()), bound, settled)


def _verified(rows: _Rows, signed: Collection[Link], bound: Collection[str], settled: int | None) -> Verified:
    topics = {AUDIT: rows.traces, VERDICTS: rows.decided, OUTBOUND: rows.authorized}
    read = [topic for topic in (*BOUND, AUDIT) if topic == AUDIT or topic in bound]
    first = next(rows.traces(), None)
    cut = first is not None and isinstance(first[1].record, DecisionTraced) and first[1].record.number > 1
    begins = {topic: next(topics[topic](), None) for topic in read} if cut else {}
    since = {topic: at[0] for topic, at in begins.items() if at is not None}
    tenant, partition = rows.tenant, rows.partition
    chains = Chains(partition, since=since, signed={tenant: signed}, bound=bound)
    breaks = []
    # Of records of one time the decisions come first, so that they wait for their traces.
    for _, row in merge(*(topics[topic]() for topic in read), key=lambda one: one[0]):
        found = chains.take(row)
        if found is not None:
            breaks.append(found)
    late: list[Break] = []

    def may_come(one: Break) -> bool:
        if settled is None or one.offset is None or rows.time(one.topic, one.offset) <= settled:
            return False
        late.append(one)
        return True

    breaks += chains.finish(may_come)
    return Verified(tenant, partition, chains, breaks, bool(late))


class _Rows:
    """One tenant's records, put together again, each topic's in order, with their stream times."""

    def __init__(self, connection: Connection, tenant: str, partition: int) -> None:
        self.tenant = tenant
        self.partition = partition
        self._connection = connection
        self._asked = Asked(connection, tenant)

    def newest(self) -> int:
        """When the newest record of the partition lay on the log; by the rows too, so that no one place decides it."""
        tables = (POSITIONS, TRACES, DECISIONS, AUTHORIZATIONS)
        times = (select(func.max(table.c.time)).where(table.c.partition == self.partition) for table in tables)
        return max(self._connection.scalar(time) or 0 for time in times)

    def time(self, topic: str, offset: int) -> int:
        """When a record lay on the log."""
        table = {AUDIT: TRACES, VERDICTS: DECISIONS, OUTBOUND: AUTHORIZATIONS}[topic]
        here = (table.c.topic == topic, table.c.partition == self.partition, table.c.offset == offset)
        return self._connection.scalar(select(table.c.time).where(*here)) or 0

    def traces(self) -> Iterator[tuple[int, chain.Row]]:
        """What `audit` held."""
        return self._timed(AUDIT, ((row, _trace(row)) for row in self._all(TRACES)))

    def decided(self) -> Iterator[tuple[int, chain.Row]]:
        """What `turn-verdicts` held of decisions."""
        return self._timed(VERDICTS, self._decided())

    def authorized(self) -> Iterator[tuple[int, chain.Row]]:
        """What `outbound` held, without its texts and actions, which no trace binds."""
        return self._timed(OUTBOUND, ((row, self._authorized(row)) for row in self._all(AUTHORIZATIONS)))

    def _timed(self, topic: str, found: Iterator[tuple[Row[Any], Record | None]]) -> Iterator[tuple[int, chain.Row]]:
        at = 0
        for row, record in found:
            at = at if record is None else max(at, record.at)
            yield at, chain.Row(topic, self.partition, row.offset, self.tenant, record)

    def _decided(self) -> Iterator[tuple[Row[Any], Record | None]]:
        reasons, candidates = _Beside(self._all(REASONS)), _Beside(self._all(CANDIDATES))
        for row in self._all(DECISIONS):
            why, refs = reasons.of(row), candidates.of(row)
            try:
                yield row, _context(row, why, refs) if row.kind == "context" else _turn(row, why)
            except (TypeError, ValueError):
                yield row, None  # a reason or a position that is none

    def _authorized(self, row: Row[Any]) -> TurnAuthorized | None:
        audience = self._asked.audience(row.destination)
        if audience is None:
            return None  # nothing says to whom it was let out
        return _made(TurnAuthorized, row, destination=audience)

    def _all(self, table: Table) -> Iterator[Row[Any]]:
        order = [table.c.offset, *([table.c.number] if "number" in table.c else [])]
        topic = {TRACES.name: AUDIT, AUTHORIZATIONS.name: OUTBOUND}.get(table.name, VERDICTS)
        mine = (table.c.tenant == self.tenant, table.c.partition == self.partition, table.c.topic == topic)
        wanted = select(table).where(*mine).order_by(*order)
        yield from self._connection.execute(wanted, execution_options={"yield_per": _ROWS})


class _Beside:
    """Rows that stand beside those of another table, of the same records in the same order."""

    def __init__(self, rows: Iterator[Row[Any]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, row: Row[Any]) -> list[Row[Any]]:
        found = []
        while self._next is not None and self._next.offset <= row.offset:
            if self._next.offset == row.offset:
                found.append(self._next)
            self._next = next(self._rows, None)
        return found


def _made(kind: type[R], row: Row[Any], **more: Any) -> R | None:
    """A record of what the row's columns of its fields' names hold; None where that is none, or others hold more."""
    held = {name: value for name, value in row._mapping.items() if value is not None and name not in _PLACE}
    names = kind.model_fields.keys()
    if held.keys() - names - _ELSEWHERE[kind]:
        return None
    try:
        return kind.model_validate({name: held.get(name) for name in names & row._mapping.keys()} | more)
    except ValueError:
        return None


def _trace(row: Row[Any]) -> DecisionTraced | None:
    """The whole record; None where there is none, or where the columns beside it say something else."""
    try:
        trace = DecisionTraced.model_validate(row.trace)
    except ValueError:
        return None
    beside = {"number" if name == "sequence" else name: value for name, value in row._mapping.items()}
    named = beside.keys() - _PLACE - {"trace"}
    return trace if all(getattr(trace, name) == beside[name] for name in named) else None


def _turn(row: Row[Any], reasons: list[Row[Any]]) -> TurnDecided | None:
    as_of = tuple(Position(topic=topic, partition=row.partition, offset=at) for topic, at in row.as_of or ())
    return _made(TurnDecided, row, reasons=[_reason(reason) for reason in reasons], as_of=as_of)


def _context(row: Row[Any], reasons: list[Row[Any]], refs: list[Row[Any]]) -> ContextDecided | None:
    permitted = [
        {"ref": ref.ref, "attribution": ref.attribution, "grant": ref.grant_id, "redact": ref.redact or ()}
        for ref in refs
        if ref.permitted
    ]
    withheld = [
        {"ref": ref.ref, "reasons": [_reason(reason) for reason in reasons if reason.candidate == ref.ref]}
        for ref in refs
        if not ref.permitted
    ]
    return _made(ContextDecided, row, permitted=permitted, withheld=withheld)


def _reason(row: Row[Any]) -> Reason:
    return Reason(code=row.code, ref=row.ref, detail=row.detail)
