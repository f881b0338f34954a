"""Decides what a memory is made of: the leaves of everything that fed it (R-EVI-2 to R-EVI-6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from turngate.processors.evidence import evidence_of, tool_ref
from turngate.processors.ledger import Ledger
from turngate.processors.rows import Context
from turngate.processors.sources import REVISION, as_seen, source
from turngate.processors.turns import turn_of
from turngate.schemas.inputs import MemoryKind, MemoryWrite, WriteBy
from turngate.schemas.shapes import Scope


@dataclass(frozen=True, slots=True)
class Lineage:
    """The evidence of a write: `seen` as its turn saw it, `leaves` as later turns will, and what binds it beside."""

    seen: tuple[str, ...]
    leaves: tuple[str, ...]
    over: bool
    restrictions: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """What a turn saw before it wrote: its triggers, what its contexts permitted, and its tools' results.

    `own_triggers`: those of this agent.
    `rooms`: those it asked from. `answered`: at least one of its agent's context requests was seen and answered.
    """

    triggers: tuple[str, ...]
    own_triggers: tuple[str, ...]
    permitted: tuple[str, ...]
    results: tuple[str, ...]
    rooms: tuple[str, ...]
    answered: bool


def of_turn(ledger: Ledger, turn: str | None, agent: str) -> TurnEvidence:
    """What the turn saw so far; its rooms are those in which this agent asked."""
    if turn is None:
        return TurnEvidence((), (), (), (), (), answered=False)
    row = turn_of(ledger, turn)
    asked = (ledger.tables.contexts.get((ledger.tenant, request)) for request in row.contexts)
    contexts: list[Context] = [context for context in asked if context is not None]
    triggers = [*(c.trigger for c in contexts), row.trigger]
    own = [*(c.trigger for c in contexts if c.agent == agent), row.trigger]
    return TurnEvidence(
        tuple(dict.fromkeys(trigger for trigger in triggers if trigger is not None)),
        tuple(dict.fromkeys(trigger for trigger in own if trigger is not None)),
        tuple(dict.fromkeys(ref for c in contexts for ref in c.permitted or ())),
        tuple(dict.fromkeys(tool_ref(call) for call, _ in row.results)),
        tuple(dict.fromkeys(c.room for c in contexts if c.agent == agent)),
        answered=any(c.permitted is not None and c.agent == agent for c in contexts),
    )


def asked_from(ledger: Ledger, write: MemoryWrite) -> tuple[str, ...]:
    """The room of a write, or, where it names none, those in which its turn asked for context."""
    return of_turn(ledger, write.turn, write.agent).rooms if write.room is None else (write.room,)


def fed_by(ledger: Ledger, write: MemoryWrite) -> tuple[str, ...]:
    """Every ref that fed a write, each once: its base, its sources, and what its turn saw (R-EVI-2)."""
    refs = ([] if write.base is None else [f"{REVISION}{write.base}"]) + list(write.sources)
    if not public_document(ledger, write):
        turn = of_turn(ledger, write.turn, write.agent)
        refs += [*turn.own_triggers, *turn.permitted, *turn.results]
    return tuple(dict.fromkeys(refs))


def lineage(ledger: Ledger, write: MemoryWrite, kind: MemoryKind) -> Lineage:
    """The evidence of what a write makes."""
    refs = fed_by(ledger, write)
    unheard = write.by is WriteBy.TURN and not of_turn(ledger, write.turn, write.agent).answered
    unknown = unheard or any(_missing(ledger, ref, write.agent) for ref in refs)
    seen = as_seen(ledger, refs, write.agent, keep=True)
    restrictions = {room for ref in refs for room in _restrictions(ledger, ref, write.agent)}
    if write.restrict or kind is MemoryKind.TRANSCRIPT:  # R-MEM-4
        rooms = asked_from(ledger, write)
        unknown = unknown or not (rooms or (restrictions and not write.restrict))  # an amended transcript has its room
        restrictions.update(rooms)
    if unknown or (restrictions and not seen):
        seen.append(ledger.unknown_leaf(write.agent))
    over = any(_over(ledger, ref, write.agent) for ref in refs)
    return made_of(ledger, write, kind, tuple(seen), restrictions, over=over, sources=refs)


def made_of(
    ledger: Ledger,
    write: MemoryWrite,
    kind: MemoryKind,
    seen: tuple[str, ...],
    restrictions: Iterable[str],
    *,
    over: bool,
    sources: tuple[str, ...],
) -> Lineage:
    """A lineage of these leaves: restrictions united, a world's taint kept, `via` dropped, their number bounded."""
    every = set(restrictions) | {room for key in seen for room in ledger.leaf(key).restrictions}
    united, world = tuple(sorted(every)), kind is MemoryKind.WORLD
    bound = tuple(_bound(ledger, key, united, world=world) for key in seen)
    plain = tuple(dict.fromkeys(_plain(ledger, key) for key in bound))
    limit = ledger.policy(write.room).settings.evidence.max_leaves
    over = over or len(plain) > limit  # R-EVI-5
    if over:
        bound = plain = ()
    return Lineage(tuple(dict.fromkeys(bound)), plain, over, united, sources)


def _bound(ledger: Ledger, key: str, united: tuple[str, ...], *, world: bool) -> str:
    """A leaf with all restrictions of all sources (R-EVI-4); of a world's fact, with both bits (R-MEM-2)."""
    leaf = ledger.leaf(key)
    private, untrusted = leaf.private or world, leaf.untrusted or world
    if (leaf.restrictions, leaf.private, leaf.untrusted) == (united, private, untrusted):
        return key
    return ledger.keep_leaf(replace(leaf, restrictions=united, private=private, untrusted=untrusted))


def _plain(ledger: Ledger, key: str) -> str:
    """A leaf without what it was seen through: new text needs new permission (R-EVI-6)."""
    leaf = ledger.leaf(key)
    return key if leaf.via is None else ledger.keep_leaf(replace(leaf, via=None))


@dataclass(frozen=True, slots=True)
class Origins:
    """Where, and by whom, was said or read what something is made of."""

    rooms: tuple[str, ...]
    authors: tuple[str, ...]


def origins(ledger: Ledger, refs: Iterable[str], agent: str) -> Origins:
    """The rooms and authors behind these refs, through whatever revisions and quotes there are between (R-RET-3)."""
    rooms: set[str] = set()
    authors: set[str] = set()
    for ref in refs:
        if ref.startswith(REVISION):
            revision = ledger.tables.revisions.get((ledger.tenant, ref[len(REVISION) :]))
            if revision is not None:
                rooms.update(revision.rooms)
                authors.update(revision.authors)
            continue
        evidence = evidence_of(ledger, ref, agent)
        if evidence is not None:
            leaves = [ledger.leaf(key) for key in evidence.leaves]
            rooms.update({evidence.room, *(leaf.room for leaf in leaves if leaf.room is not None)})
            whose = (evidence.author, *(leaf.author for leaf in leaves))
            authors.update(author for author in whose if author is not None)
    return Origins(tuple(sorted(rooms)), tuple(sorted(authors)))


def public_document(ledger: Ledger, write: MemoryWrite) -> bool:
    """Made of nothing but tool results with a public audience, so that its requesting room is no source (R-EVI-9)."""
    if write.by is not WriteBy.DOCUMENT or not write.sources:
        return False
    for ref in write.sources:
        found = source(ledger, ref, write.agent) if ref.startswith("tool:") else None
        if found is None or not found.leaves:
            return False
        if any(ledger.audience(ledger.leaf(key).audience).scope is not Scope.PUBLIC for key in found.leaves):
            return False
    return True


def known(ledger: Ledger, leaves: Iterable[str]) -> bool:
    """Whether none of these leaves is of unknown audience."""
    return all(ledger.audience(ledger.leaf(key).audience).scope is not Scope.UNKNOWN for key in leaves)


def doubtful(ledger: Ledger, refs: Iterable[str], agent: str) -> bool:
    """Whether any of these refs is untrusted or unknown (R-MEM-5, R-MEM-7); of nothing at all, nothing is known."""
    refs = list(refs)
    if not refs:
        return True
    for ref in refs:
        found = source(ledger, ref, agent)
        if found is None or not found.leaves or not known(ledger, found.leaves):
            return True
        if any(ledger.leaf(key).untrusted for key in found.leaves):
            return True
    return False


def _missing(ledger: Ledger, ref: str, agent: str) -> bool:
    """Whether the ref stands for nothing established, so that an unknown leaf stands for it."""
    found = source(ledger, ref, agent)
    return found is None or (not found.leaves and not found.over)


def _over(ledger: Ledger, ref: str, agent: str) -> bool:
    found = source(ledger, ref, agent)
    return found is not None and found.over


def _restrictions(ledger: Ledger, ref: str, agent: str) -> tuple[str, ...]:
    found = source(ledger, ref, agent)
    return () if found is None else found.restrictions
