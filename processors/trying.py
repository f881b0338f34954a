"""Decides what each past decision would be under another policy, at its place and on the state that was there then.

One step: the log goes on as it was. What was delivered, remembered, observed and waited for stands, whatever the other
policy would have made of it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

from turngate.processors import contexts, gate, handling
from turngate.processors.engine import Engine
from turngate.processors.keys import NO_KEYS, Keys
from turngate.processors.ledger import Caches, Ledger
from turngate.processors.recent import Recent
from turngate.processors.rows import Policies, Waiting, WaitKind
from turngate.processors.state import Key
from turngate.schemas.inputs import ContextRequested, Record, TurnDrafted
from turngate.schemas.outputs import ContextDecided, TurnDecided
from turngate.schemas.policy import parse_policy
from turngate.schemas.shapes import Position

#: What waits for a decision of a turn or of a context.
_DECIDED = (WaitKind.DRAFT, WaitKind.ASK, WaitKind.CONTEXT)
#: What is said of a context request that is answered, and of whatever is not decided yet.
ANSWERED, WAITS = "answered", "waits"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a decision comes to: a turn's verdict or `ANSWERED`, why, and what is let through: a rendering, refs."""

    verdict: str
    reasons: frozenset[tuple[str, str | None]] = frozenset()
    passes: tuple[str, ...] = ()

    @property
    def listed(self) -> list[tuple[str, str | None]]:
        """The reasons in an order that is always the same."""
        return sorted(self.reasons, key=lambda reason: (reason[0], reason[1] or ""))


@dataclass(frozen=True, slots=True)
class Tried:
    """One decision as it was and as it would be. `name` is the turn's, or the context request's, by `kind`."""

    tenant: str
    room: str
    kind: str
    name: str
    was: Outcome
    now: Outcome


class Trying(Engine):
    """The engine, which tries each decision under another policy first and takes that back.

    The policy stands in the place of all versions that the tenant has published, in every room. `tenant`: only the
    decisions of this one (None: of all).
    """

    _document: tuple[int, str] | None = None
    _tenant: str | None = None

    @classmethod
    def under(
        cls,
        document: str,
        tenant: str | None,
        entries: Iterable[tuple[bytes, bytes | None]],
        version: str | None,
        keys: Keys = NO_KEYS,
    ) -> Self:
        """As `restore`. Raises `turngate.schemas.policy.PolicyInvalid` too."""
        made = cls.restore(entries, version, keys)
        assert isinstance(made, cls)
        made._document, made._tenant = (parse_policy(document).version, document), tenant
        return made

    def __init__(self, keys: Keys = NO_KEYS) -> None:
        super().__init__(keys)
        self._tried: list[Tried] = []
        self._apart: dict[str, Caches] = {}

    def take_tried(self) -> list[Tried]:
        """What was decided since this was last asked."""
        tried, self._tried = self._tried, []
        return tried

    def _record(self, record: Record, position: Position, timestamp: int, raw: bytes, *, late: bool) -> list[Record]:
        if not isinstance(record, TurnDrafted | ContextRequested) or not self._wanted(record.tenant):
            return super()._record(record, position, timestamp, raw, late=late)

        def step(ledger: Ledger) -> None:
            ledger.start(record.room)
            handling.handle(ledger, record, position.topic, late=late)

        def failed(ledger: Ledger) -> None:
            if isinstance(record, TurnDrafted):
                gate.fail(ledger, record)
            else:
                contexts.context_failed(ledger, record)

        now = self._under(record.tenant, step, failed)
        out = super()._record(record, position, timestamp, raw, late=late)
        kind, name = ("turn", record.turn) if isinstance(record, TurnDrafted) else ("context", record.request)
        self._note(record.tenant, record.room, kind, name, out, now)
        return out

    def _go_on(self, key: Key, waiting: Waiting, step: Callable[[Ledger, Waiting], Waiting | None]) -> list[Record]:
        if waiting.room is None or waiting.kind not in _DECIDED or not self._wanted(waiting.tenant):
            return super()._go_on(key, waiting, step)
        now = self._under(
            waiting.tenant, lambda ledger: step(ledger, waiting), lambda ledger: handling.failed(ledger, waiting)
        )
        out = super()._go_on(key, waiting, step)
        kind = "context" if waiting.kind is WaitKind.CONTEXT else "turn"
        self._note(waiting.tenant, waiting.room, kind, waiting.subject, out, now)
        return out

    def _wanted(self, tenant: str) -> bool:
        return self._document is not None and self._tenant in (None, tenant)

    def _under(self, tenant: str, step: Callable[[Ledger], object], failed: Callable[[Ledger], None]) -> list[Record]:
        """What a step comes to under the other policy; the state is then as it was."""
        mark = self.state.mark()
        try:
            assert self._document is not None
            known = self._tables.policies.get((tenant,)) or Policies()
            # So many of them that whichever a room started with is there, and is this one.
            self._tables.policies.put((tenant,), Policies((self._document,) * max(1, len(known.documents))))
            inner = self.state.mark()
            ledger = self._trial(tenant)
            try:
                step(ledger)
                self._check(ledger.out)
            except MemoryError:
                raise
            except Exception:  # as the engine does (R-RUN-6)
                self.state.undo(inner)
                ledger = self._trial(tenant)
                failed(ledger)
            return ledger.out
        finally:
            self.state.undo(mark)

    def _trial(self, tenant: str) -> Ledger:
        """A ledger whose policies in force are not mixed up with those of the log."""
        of_log = self._ledger(tenant)
        apart = self._apart.get(tenant)
        if apart is None:
            apart = self._apart[tenant] = replace(of_log.caches, effective=Recent(100))
        return Ledger(self._tables, apart, of_log.now, of_log.arrival, of_log.as_of, of_log.keys)

    def _note(self, tenant: str, room: str, kind: str, name: str, out: list[Record], again: list[Record]) -> None:
        was, now = _outcome(out, name), _outcome(again, name)
        if was is not None or now is not None:  # neither decides a redelivery
            waits = Outcome(WAITS)
            self._tried.append(Tried(tenant, room, kind, name, was or waits, now or waits))


def _outcome(out: list[Record], name: str) -> Outcome | None:
    """The decision of a turn or request among what came."""
    for record in out:
        if isinstance(record, TurnDecided) and record.turn == name:
            rendering = () if record.rendering is None else (str(record.rendering),)
            return Outcome(record.verdict.value, frozenset((r.code, r.ref) for r in record.reasons), rendering)
        if isinstance(record, ContextDecided) and record.request == name:
            reasons = frozenset((r.code, r.ref) for held in record.withheld for r in held.reasons)
            return Outcome(ANSWERED, reasons, tuple(sorted(p.ref for p in record.permitted)))
    return None
