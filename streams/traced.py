"""Decides which traces belong to a decision that differs, and which differ only since another one before them does.

Every trace names the one before it by its digest, so a decision that is another one now changes all the tenant's traces
from there on. That is one difference, not thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.digests import trace_digest
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TurnAuthorized, TurnDecided
from turngate.streams.chain import Link
from turngate.streams.log import Message, Outgoing

#: The record that a decision came of, its tenant, its turn and, of a context's, its request.
_Subject = tuple[bytes, str, str | None, str | None]


class TraceChains:
    """The chains of both sides from where they went apart; of tenants of whom they have not, there is nothing.

    `apart`: the last links of both, by tenant.
    """

    def __init__(self, codec: Codec, apart: dict[str, tuple[Link, Link]] | None = None) -> None:
        self._codec = codec
        self.apart = {} if apart is None else apart

    def same(self, key: bytes | None) -> None:
        """The next traces of a tenant are equal, so its chains are one again."""
        if self.apart:
            self.apart.pop((key or b"").decode("utf-8", "replace"), None)

    def untraced(self, traces: Sequence[Outgoing]) -> None:
        """These are made now, and were not when it was decided: the recorded chain has not begun yet."""
        for trace in filter(None, map(self._trace, traces)):
            self.apart[trace.tenant] = Link(0, ""), Link(trace.number, trace_digest(trace))

    def differs(self, was: Message | None, now: Outgoing | None) -> bool:
        """Whether the next traces of a tenant differ by more than by the traces that they name as those before them."""
        r, a = self._trace(was), self._trace(now)
        one = a or r
        if one is None:
            return True
        before = self.apart.get(one.tenant)
        if before is None:
            link = Link(one.number - 1, one.previous or "")
            before = link, link
        self.apart[one.tenant] = _link(r) or before[0], _link(a) or before[1]
        if r is None or a is None or not (_follows(r, before[0]) and _follows(a, before[1])):
            return True
        chained = {"previous": a.previous, "number": a.number}
        return r.model_copy(update=chained) != a

    def of(self, decision: Message | Outgoing | None, traces: Sequence[Message | Outgoing]) -> int | None:
        """Which of the traces is that of a decision."""
        wanted = None if decision is None else self._subject(decision)
        return None if wanted is None else next((n for n, t in enumerate(traces) if self._subject(t) == wanted), None)

    def _subject(self, of: Message | Outgoing) -> _Subject | None:
        cause = next((value or b"" for name, value in of.headers if name == "ce_id"), b"").rpartition(b"/")[0]
        match self._decoded(of):
            case DecisionTraced(call=None) | ContextDecided() as r:
                return cause, r.tenant, r.turn, r.request
            case TurnDecided() | TurnAuthorized() as r:
                return cause, r.tenant, r.turn, None
        return None

    def _trace(self, of: Message | Outgoing | None) -> DecisionTraced | None:
        record = None if of is None else self._decoded(of)
        return record if isinstance(record, DecisionTraced) else None

    def _decoded(self, of: Message | Outgoing) -> object:
        try:
            return self._codec.decode(of.value)
        except Undecodable:
            return None


def _link(trace: DecisionTraced | None) -> Link | None:
    return None if trace is None else Link(trace.number, trace_digest(trace))


def _follows(trace: DecisionTraced, before: Link) -> bool:
    return trace.number == before.number + 1 and (trace.previous or "") == before.digest
