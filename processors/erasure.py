"""Decides what an erasure reaches: texts of a room, an author or a memory, and all made of them (R-RET-3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from turngate.processors.agents import already
from turngate.processors.ledger import Ledger
from turngate.processors.lineage import fed_by
from turngate.processors.retention import over_age
from turngate.processors.rows import Deleted
from turngate.processors.sources import REVISION
from turngate.schemas.inputs import ErasureCommanded
from turngate.schemas.outputs import ErasureApplied, WriteRefused
from turngate.schemas.shapes import Code, Reason

#: Refs that one `ErasureApplied` names at most: the longest refs that there can be take 13 MB.
MOST_REFS = 3_000


def erase(ledger: Ledger, record: ErasureCommanded) -> None:
    """Purge texts, make their refs deleted for every agent, and name them all; ids and digests stay.

    The same command again changes nothing.
    """
    if already(ledger, record.command):
        return
    refs = _with_all_made_of_them(ledger, _named(ledger, record))
    for ref in sorted(refs):
        ledger.tables.deleted.put((ledger.tenant, ref), Deleted(ledger.now, erased=True))
        if ref.startswith(REVISION):
            _purge(ledger, ref[len(REVISION) :])
    _refuse_waiting(ledger, refs, record.memory)
    for some in _portions(sorted(refs)):
        ledger.emit(ErasureApplied(tenant=ledger.tenant, at=ledger.now, command=record.command, refs=some))


def _portions(refs: list[str]) -> list[tuple[str, ...]]:
    """Refs in as few records as can be written: an erasure must never fail for what it reaches."""
    return [tuple(refs[at : at + MOST_REFS]) for at in range(0, len(refs), MOST_REFS)] or [()]


def _named(ledger: Ledger, record: ErasureCommanded) -> set[str]:
    """The refs that the command itself means."""
    found = set()
    for ref, _, row in ledger.tables.shelves.of_tenant(ledger.tenant):
        if over_age(ledger, row.room, row.seen):
            continue
        authors = _authors(ledger, row.leaves) | ({row.author} - {None})
        if record.room in {row.room, *_rooms(ledger, row.leaves)} or record.reader in authors:
            found.add(ref)
    for (tenant, name), revision in ledger.tables.revisions.rows.items():
        named = (record.room in revision.rooms, record.reader in revision.authors, record.memory == revision.memory)
        if tenant == ledger.tenant and any(named):
            found.add(f"{REVISION}{name}")
    return found


def _rooms(ledger: Ledger, leaves: Iterable[str]) -> set[str]:
    """Where it was said; null where that is not kept, which no erasure names."""
    return {room for key in leaves if (room := ledger.leaf(key).room) is not None}


def _authors(ledger: Ledger, leaves: Iterable[str]) -> set[str]:
    return {author for key in leaves if (author := ledger.leaf(key).author) is not None}


def _made_of(ledger: Ledger) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every ref of the tenant that repeats others, with these."""
    for ref, _, evidence in ledger.tables.shelves.of_tenant(ledger.tenant):
        if evidence.made_of:
            yield ref, evidence.made_of
    for (tenant, name), revision in ledger.tables.revisions.rows.items():
        if tenant == ledger.tenant:
            yield f"{REVISION}{name}", revision.sources


def _with_all_made_of_them(ledger: Ledger, refs: set[str]) -> set[str]:
    """These refs and, through lineage, everything derived from them."""
    derived: dict[str, list[str]] = {}
    for ref, sources in _made_of(ledger):
        for source in sources:
            derived.setdefault(source, []).append(ref)
    reached, waiting = set(refs), list(refs)
    while waiting:
        for ref in derived.get(waiting.pop(), ()):
            if ref not in reached:
                reached.add(ref)
                waiting.append(ref)
    return reached


def _purge(ledger: Ledger, revision: str) -> None:
    key = (ledger.tenant, revision)
    row = ledger.tables.revisions.get(key)
    if row is not None and row.text is not None:
        ledger.tables.revisions.put(key, replace(row, text=None))


def _refuse_waiting(ledger: Ledger, refs: set[str], memory: str | None) -> None:
    """A write that waits for its assessment has a text of its own: of the erased memory, or made of the erased, it is
    refused.
    """
    for key, write in sorted(ledger.tables.assessing.rows.items()):
        if key[0] != ledger.tenant:
            continue
        reached = sorted(refs.intersection(fed_by(ledger, write)))
        if write.memory == memory:
            reached.append(f"{REVISION}{write.revision}")
        if reached:
            ledger.tables.assessing.drop(key)
            reasons = tuple(Reason(code=Code.SOURCE_DELETED, ref=ref) for ref in reached)
            ledger.emit(WriteRefused(tenant=ledger.tenant, at=ledger.now, write=write.write, reasons=reasons))
