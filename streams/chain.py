"""Decides whether a partition's traces are whole chains, and name the decisions that lie beside them (R-RET-2).

It knows no log: rows come from wherever they are kept, each topic's in its own order, all of them by time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from turngate.schemas.catalog import OUTPUT_TOPIC
from turngate.schemas.digests import authorized_digest, decided_digest, trace_digest
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import CommandHandled, ContextDecided, DecisionTraced, TurnAuthorized, TurnDecided

AUDIT, VERDICTS, OUTBOUND = (OUTPUT_TOPIC[name] for name in ("DecisionTraced", "TurnDecided", "TurnAuthorized"))
#: The topics whose records traces name.
BOUND = (VERDICTS, OUTBOUND)
#: The versions of the engine that did not trace their decisions.
UNTRACED = frozenset("1234")
#: So many decisions of a tenant may wait for their traces, or the other way round; of more, something is missing.
MOST_APART = 100_000


class Link(NamedTuple):
    """The end of a chain at some time: the trace's number, and its digest."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True)
class Row:
    """A record at its place. `tenant` is its key's; `record` is null where it is none, or has another tenant's key."""

    topic: str
    partition: int
    offset: int
    tenant: str
    record: Record | None


@dataclass(frozen=True, slots=True)
class Break:
    """The first place at which a tenant's chain, or what it binds, is not what was written; `why` in words.

    `offset` is null where something is not there at all.
    """

    tenant: str
    topic: str
    partition: int
    offset: int | None
    why: str


class _Seen(NamedTuple):
    digest: str
    at: int
    offset: int


@dataclass(slots=True)
class _Pair:
    """Decisions of a tenant on one topic (`made`), and the traces that name them, as far as one lacks the other."""

    made: deque[_Seen] = field(default_factory=deque)
    named: deque[_Seen] = field(default_factory=deque)


@dataclass(slots=True)
class _Tenant:
    last: Link | None = None
    first: int | None = None
    broken: bool = False
    signed: dict[int, str] = field(default_factory=dict)
    pairs: dict[str, _Pair] = field(default_factory=lambda: {topic: _Pair() for topic in BOUND})


class Chains:
    """One partition's chains, in memory that grows with its tenants alone.

    `since`: of topics whose oldest records are gone, the stream time of the oldest that is there: what is older on the
    others may have had its counterpart among them. `after`: where chains stood before the first row. `signed`: links
    that a checkpoint has of each tenant. `bound`: the topics, besides the
    traces', whose records are rows too.
    """

    def __init__(
        self,
        partition: int,
        *,
        since: Mapping[str, int] | None = None,
        after: Mapping[str, Link] | None = None,
        signed: Mapping[str, Collection[Link]] | None = None,
        bound: Collection[str] = BOUND,
    ) -> None:
        self._partition = partition
        self._since = {} if since is None else dict(since)
        self._bound = frozenset(bound)
        self._tenants = {tenant: _Tenant(link) for tenant, link in (after or {}).items()}
        for tenant, links in (signed or {}).items():
            self._of(tenant).signed = {link.number: link.digest for link in links}
        #: Traces that were looked at, records that are what their traces name, and those of which the other is gone.
        self.traces = self.decisions = self.apart = 0

    @property
    def heads(self) -> dict[str, Link]:
        """Where the chains stand now."""
        return {tenant: of.last for tenant, of in sorted(self._tenants.items()) if of.last is not None}

    @property
    def begun(self) -> dict[str, int]:
        """The chains whose beginnings are gone, by the number of the first trace that is there."""
        begun = ((tenant, of.first) for tenant, of in sorted(self._tenants.items()))
        return {tenant: first for tenant, first in begun if first is not None and first > 1}

    @property
    def unlinked(self) -> list[str]:
        """Tenants whose chains begin so late that nothing of them was signed, though something earlier was."""
        signed = ((tenant, of.first, of.signed) for tenant, of in sorted(self._tenants.items()) if of.signed)
        return [tenant for tenant, first, links in signed if first is None or all(n < first - 1 for n in links)]

    def take(self, row: Row) -> Break | None:
        """Look at the next row; what is wrong with it, the first time that something is wrong with its tenant's."""
        of = self._of(row.tenant)
        if of.broken:
            return None
        try:
            found = self._take(of, row)
        except ValueError:
            found = _at(row, "holds a number that no decision has")
        of.broken = found is not None
        return found

    def finish(self, may_come: Callable[[Break], bool] = lambda _: False) -> Iterator[Break]:
        """What is missing now that no row comes any more.

        `may_come`: whether what is missing there may only not have been read yet. Then it hides nothing else.
        """
        for tenant, of in sorted(self._tenants.items()):
            if not of.broken:
                found = self._unfinished(tenant, of, may_come)
                if found is not None:
                    of.broken = True
                    yield found

    def waiting(self) -> bool:
        """Whether there are decisions whose traces have not come."""
        return any(pair.made for of in self._tenants.values() if not of.broken for pair in of.pairs.values())

    def _of(self, tenant: str) -> _Tenant:
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = _Tenant()
        return found

    def _take(self, of: _Tenant, row: Row) -> Break | None:
        record = row.record
        match row.topic, record:
            case topic, DecisionTraced() if topic == AUDIT:
                return self._linked(of, row, record) or self._names(of, row, record)
            case topic, TurnDecided() | ContextDecided() if topic == VERDICTS:
                return self._made(of, row, record.at, decided_digest(record))
            case topic, TurnAuthorized() if topic == OUTBOUND:
                return self._made(of, row, record.at, authorized_digest(record))
            case topic, CommandHandled() if topic == VERDICTS:
                return None  # no decision of a turn
            case _:
                return _at(row, "is no record of this topic under its tenant's key")

    # The chain itself

    def _linked(self, of: _Tenant, row: Row, trace: DecisionTraced) -> Break | None:
        """Whether a trace is the next link."""
        self.traces += 1
        link = Link(trace.number, trace_digest(trace))
        before, of.last = of.last, link
        if before is None:
            of.first = trace.number
            found = self._first(of, row, trace)
        elif trace.number != before.number + 1:
            found = _at(row, f"is number {trace.number}, and the one before it was {before.number}")
        elif trace.previous != before.digest:
            found = _at(row, "names another trace as the one before it: that one or this one is not what was written")
        else:
            found = None
        if found is None and of.signed.get(link.number, link.digest) != link.digest:
            found = _at(row, f"is not the trace that was signed as number {link.number}")
        return found

    def _first(self, of: _Tenant, row: Row, trace: DecisionTraced) -> Break | None:
        """Whether a chain can begin here: at its beginning, or after records that retention has removed."""
        if (trace.number, trace.previous) != (1, None) and AUDIT not in self._since:
            return _at(row, f"is number {trace.number}, and nothing of its tenant is before it")
        if of.signed.get(trace.number - 1, trace.previous) != trace.previous:
            return _at(row, f"does not follow the trace that was signed as number {trace.number - 1}")
        return None

    # What it binds

    def _names(self, of: _Tenant, row: Row, trace: DecisionTraced) -> Break | None:
        if trace.decided is None and trace.call is None:
            return _at(row, "names no decision")
        for topic, digest in ((VERDICTS, trace.decided), (OUTBOUND, trace.authorized)):
            if digest is None or topic not in self._bound:
                continue
            if trace.at < self._since.get(topic, trace.at):
                self.apart += 1
            else:
                of.pairs[topic].named.append(_Seen(digest, trace.at, row.offset))
                found = self._settle(of, row.tenant, topic)
                if found is not None:
                    return found
        return None

    def _made(self, of: _Tenant, row: Row, at: int, digest: str) -> Break | None:
        if at < self._since.get(AUDIT, at):
            self.apart += 1
            return None
        of.pairs[row.topic].made.append(_Seen(digest, at, row.offset))
        return self._settle(of, row.tenant, row.topic)

    def _settle(self, of: _Tenant, tenant: str, topic: str, *, final: bool = False) -> Break | None:
        """Let each decision and the trace that names it go; what is wrong where the next two are not such a pair."""
        pair = of.pairs[topic]
        while pair.made and pair.named:
            if pair.made[0].digest == pair.named[0].digest:
                pair.made.popleft()
                pair.named.popleft()
                self.decisions += 1
                continue
            drop = self._without(pair, topic, final)
            if drop is None:
                break
            if not drop:
                made, named = pair.made[0], pair.named[0]
                why = f"is not the decision that its trace names ({AUDIT}[{self._partition}]@{named.offset})"
                return Break(tenant, topic, self._partition, made.offset, why)
            for one in drop:
                one.popleft()
                self.apart += 1
        if len(pair.made) > MOST_APART or len(pair.named) > MOST_APART:
            return next(self._left(tenant, topic, pair), None)
        return None

    def _without(self, pair: _Pair, topic: str, final: bool) -> list[deque[_Seen]] | None:
        """At the instant at which a topic begins: which of the next two has its counterpart among what is gone.

        Empty where none has, null where it is not known yet.
        """
        made, named = pair.made[0], pair.named[0]
        made_may = made.at == self._since.get(AUDIT)
        named_may = named.at == self._since.get(topic)
        if made_may and any(one.digest == named.digest for one in pair.made):
            return [pair.made]
        if named_may and any(one.digest == made.digest for one in pair.named):
            return [pair.named]
        no_made = final or pair.made[-1].at > named.at  # so nothing that comes is what `named` names
        no_named = final or pair.named[-1].at > made.at
        if (no_made and not named_may) or (no_named and not made_may) or not (made_may or named_may):
            return []
        drop = [one for one, gone in ((pair.named, no_made and named_may), (pair.made, no_named and made_may)) if gone]
        return drop or None

    # The end

    def _unfinished(self, tenant: str, of: _Tenant, may_come: Callable[[Break], bool]) -> Break | None:
        for topic, pair in of.pairs.items():
            found = self._settle(of, tenant, topic, final=True)
            if found is None:
                found = next((one for one in self._left(tenant, topic, pair) if not may_come(one)), None)
            if found is not None:
                return found
        signed = max(of.signed, default=0)
        stands = 0 if of.last is None else of.last.number
        if stands < signed and (stands or AUDIT not in self._since):
            why = f"the chain ends at number {stands}, and number {signed} was signed: its end is missing"
            return Break(tenant, AUDIT, self._partition, None, why)
        return None

    def _left(self, tenant: str, topic: str, pair: _Pair) -> Iterator[Break]:
        """The first decision without a trace, and the first trace without its decision."""
        made = next((one for one in pair.made if one.at != self._since.get(AUDIT)), None)
        if made is not None:
            yield Break(tenant, topic, self._partition, made.offset, "has no trace")
        named = next((one for one in pair.named if one.at != self._since.get(topic)), None)
        if named is not None:
            yield Break(tenant, AUDIT, self._partition, named.offset, f"names a decision that is not on {topic}")


def _at(row: Row, why: str) -> Break:
    return Break(row.tenant, row.topic, row.partition, row.offset, why)
