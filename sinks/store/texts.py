"""Decides which memories' texts go: of what was refused or erased, and what never became a revision (R-RET-3, R-MEM-6).

The statements say what must hold, not what to do next: whichever of a write and its end is read first, both come to the
same, and a repeated one changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Update, exists, literal, null, select, update

from turngate.schemas.inputs import ErasureCommanded, MemoryWrite, Record
from turngate.schemas.outputs import ErasureApplied, WriteRefused
from turngate.sinks.store.tables import ERASURES, MEMORIES, POSITIONS, REASONS, REVISIONS

#: Milliseconds of the log in which a write has become a revision, or was refused: none waits for longer.
SETTLED = 86_400_000
#: Names in one statement: a database takes some ten thousand.
_NAMES = 5_000
_REVISION = "revision:"

_m = MEMORIES.c
_REVISED = exists().where(
    REVISIONS.c.tenant == _m.tenant, REVISIONS.c.write == _m.write, REVISIONS.c.revision == _m.revision
)
_REFUSED = exists().where(REASONS.c.tenant == _m.tenant, REASONS.c.kind == "write", REASONS.c.id == _m.write)
_REACHED = exists().where(ERASURES.c.tenant == _m.tenant, ERASURES.c.ref == literal(_REVISION) + _m.revision)
_COMMANDED = exists().where(ERASURES.c.tenant == _m.tenant, ERASURES.c.memory == _m.memory, ERASURES.c.time >= _m.time)
_ANSWERED = (
    select(POSITIONS.c.time)
    .where(POSITIONS.c.topic == "memory-revisions", POSITIONS.c.partition == _m.partition)
    .scalar_subquery()
)


@dataclass(slots=True)
class Ends:
    """Whose texts may have to go after some records: these tenants' writes, revisions and memories."""

    tenants: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    revisions: set[str] = field(default_factory=set)
    memories: set[str] = field(default_factory=set)

    def note(self, record: Record) -> None:
        """A record was read that is a text, or may end one."""
        match record:
            case MemoryWrite():
                self.writes.add(record.write)
                self.revisions.add(record.revision)
                self.memories.add(record.memory)
            case WriteRefused():
                self.writes.add(record.write)
            case ErasureApplied():
                self.revisions.update(r.removeprefix(_REVISION) for r in record.refs if r.startswith(_REVISION))
            case ErasureCommanded(memory=str(memory)):
                self.memories.add(memory)
            case _:
                return
        self.tenants.add(record.tenant)

    def statements(self) -> Iterator[Update]:
        """What must hold of these texts by all that the store has."""
        theirs = _m.tenant.in_(sorted(self.tenants))
        for some in _parts(self.writes):
            yield _gone("refused", theirs, _m.write.in_(some), _REFUSED, ~_REVISED)
        for some in _parts(self.revisions):
            yield _gone("erased", theirs, _m.revision.in_(some), _REACHED)
        for some in _parts(self.memories):
            yield _gone("erased", theirs, _m.memory.in_(some), _COMMANDED)


def unsettled() -> Update:
    """What becomes of texts that would be revisions by now: repeated writes, and what could not be applied."""
    return _gone("refused", _m.time < _ANSWERED - SETTLED, ~_REVISED)


def _gone(why: str, *when: Any) -> Update:
    return update(MEMORIES).where(_m.text.is_not(null()), *when).values(text=None, gone=why)


def _parts(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(sorted(names))
    while part := list(islice(rest, _NAMES)):
        yield part
