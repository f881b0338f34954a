"""Decides what a source ref stands for: its leaves, and whether it may be used at all (R-AUD-3, R-EVI-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from turngate.processors.ledger import Ledger
from turngate.processors.retention import over_age
from turngate.processors.rows import Revision, Value
from turngate.schemas.outputs import RevisionState
from turngate.schemas.shapes import Code

REVISION: Final = "revision:"


@dataclass(frozen=True, slots=True)
class Exempt:
    """Revisions that a turn wrote or retired itself, so that it may acknowledge the change (R-TURN-5)."""

    wrote: frozenset[str] = frozenset()
    retired: frozenset[str] = frozenset()


NOTHING_EXEMPT: Final = Exempt()
_DELETED: Final[tuple[Code, ...]] = (Code.SOURCE_DELETED,)


class Source:
    """A ref as one agent has it: its leaves, the codes against it whoever hears it, and its further restrictions.

    `revision` is set where the ref exposes one as such, so that a grant on it applies (R-GRT-7). `plain`: it is for its
    leaves alone to say who may hear it.
    """

    __slots__ = ("codes", "leaves", "over", "plain", "restrictions", "revision", "values")

    def __init__(
        self,
        leaves: tuple[str, ...],
        codes: tuple[Code, ...] = (),
        over: bool = False,
        restrictions: tuple[str, ...] = (),
        values: tuple[Value, ...] = (),
        revision: str | None = None,
    ) -> None:
        self.leaves = leaves
        self.codes = codes
        self.over = over
        self.restrictions = restrictions
        self.values = values
        self.revision = revision
        self.plain = bool(leaves) and not (codes or over or restrictions)


def source(ledger: Ledger, ref: str, agent: str, exempt: Exempt = NOTHING_EXEMPT) -> Source | None:
    """What the agent has of a ref; None where it has nothing."""
    found = ledger.found
    if found is None or ledger.found_by != agent or (exempt is not NOTHING_EXEMPT and ref.startswith(REVISION)):
        return _source(ledger, ref, agent, exempt)
    known: Source | None = found.get(ref)
    if known is None and ref not in found:
        known = found[ref] = _source(ledger, ref, agent, exempt)
    return known


def _source(ledger: Ledger, ref: str, agent: str, exempt: Exempt) -> Source | None:
    codes = _DELETED if (ledger.tenant, ref) in ledger.tables.deleted.rows else ()
    if ref.startswith(REVISION):
        return _revision(ledger, ref[len(REVISION) :], agent, codes, exempt)
    made_of, key = ledger.tables.shelves.made_of, (ledger.tenant, ref, agent)
    known: tuple[str, int, Source] | None = made_of.get(key)
    if known is None:
        row = ledger.tables.evidence.get(key)
        if row is None:
            return None
        known = made_of[key] = row.room, row.seen, Source(row.leaves, (), row.over, (), row.values)
    room, observed, found = known
    if over_age(ledger, room, observed):
        return None
    return Source(found.leaves, codes, found.over, (), found.values) if codes else found


def _revision(ledger: Ledger, name: str, agent: str, codes: tuple[Code, ...], exempt: Exempt) -> Source | None:
    row: Revision | None = ledger.tables.revisions.get((ledger.tenant, name))
    if row is None or row.agent != agent:
        return None
    wrote = name in exempt.wrote
    if not wrote and name not in exempt.retired:
        if row.state is RevisionState.STAGED:
            codes = (*codes, Code.REVISION_STAGED)
        elif row.state is RevisionState.RETIRED:
            codes = (*codes, Code.REVISION_NOT_CURRENT)
    leaves = row.seen if wrote and row.seen else row.leaves
    return Source(leaves, codes, row.over, row.restrictions, revision=name)


def erased(ledger: Ledger, ref: str) -> bool:
    """Whether an operator has erased what the ref stood for (R-RET-3)."""
    row = ledger.tables.deleted.get((ledger.tenant, ref))
    return row is not None and row.erased


def absent(ledger: Ledger, ref: str, agent: str) -> Code:
    """Why an agent has nothing of a ref: only others have recorded it, or nobody has (R-AUD-3)."""
    if ref.startswith(REVISION):
        known = (ledger.tenant, ref[len(REVISION) :]) in ledger.tables.revisions
    else:
        others = ledger.tables.shelves.agents(ledger.tenant, ref)
        known = any(other != agent and source(ledger, ref, other) is not None for other in others)
    return Code.OTHER_AGENT if known else Code.SOURCE_MISSING


def as_seen(ledger: Ledger, refs: Sequence[str], agent: str, *, keep: bool) -> list[str]:
    """The leaves of these refs as a turn sees them, each once: those of a revision carry it as `via` (R-EVI-6).

    They are remembered only where whoever asks is to `keep` them; else it is only their names that count.
    """
    seen: dict[str, None] = {}
    for ref in refs:
        found = source(ledger, ref, agent)
        if found is None:
            continue
        leaves = _too_many(ledger, found, agent) if found.over else found.leaves
        for key in leaves:
            seen[key if found.revision is None else ledger.seen_via(key, found.revision, keep=keep)] = None
    return list(seen)


def _too_many(ledger: Ledger, found: Source, agent: str) -> tuple[str, ...]:
    """The unknown leaf that stands for more than the policy allows (R-EVI-5)."""
    unknown = ledger.leaf(ledger.unknown_leaf(agent))
    return (ledger.keep_leaf(replace(unknown, restrictions=found.restrictions)),)
