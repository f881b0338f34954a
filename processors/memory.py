"""Decides whether a memory write is taken up, and what revision comes of it (rules EVI and MEM)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.agents import named
from turngate.processors.audience import keyed
from turngate.processors.ledger import Ledger
from turngate.processors.lineage import Lineage, asked_from, doubtful, fed_by, known, lineage, made_of, of_turn, origins
from turngate.processors.permits import destination, judge, nowhere, reasons
from turngate.processors.rows import Flag, LeafRow, Memory, Revision, Waiting, WaitKind
from turngate.processors.sources import REVISION, erased, source
from turngate.schemas.inputs import Label, MemoryKind, MemoryWrite, SensitivityAssessed, WriteBy, WriteOp
from turngate.schemas.outputs import Because, RevisionRecorded, RevisionState, WriteRefused
from turngate.schemas.shapes import Code, Reason, Scope

#: What acts on a revision that is there, and makes none.
_ACTS = frozenset({WriteOp.FORGET, WriteOp.PROMOTE, WriteOp.REJECT, WriteOp.REVIEW})
_OPERATORS_ACTS = frozenset({WriteOp.PROMOTE, WriteOp.REJECT, WriteOp.REVIEW})
#: Kinds of which an agent's own become current only when an operator promotes them (R-MEM-2, R-MEM-3).
_STAGED = frozenset({MemoryKind.WORLD, MemoryKind.RULE})


def written(ledger: Ledger, record: MemoryWrite, *, operators_topic: bool) -> Waiting | None:
    """Take up a write once (R-EVI-8), refuse it, or let its text wait for an assessment (R-SEN-1)."""
    key = (ledger.tenant, record.write)
    if key in ledger.tables.writes:
        return None
    ledger.active(record.room)
    ledger.nothing_changes(record.agent)  # what a write is made of does not change before it is taken up
    against = _against(ledger, record, operators_topic=operators_topic)
    if [r.code for r in against] != [Code.NOT_OPERATOR]:  # R-EVI-10: that id stays free
        ledger.tables.writes.put(key, Flag(ledger.now))
    if against:
        _refuse(ledger, record, against)
        return None
    sensitivity = ledger.policy(record.room).settings.sensitivity
    if sensitivity.enabled and record.op in (WriteOp.CREATE, WriteOp.AMEND):
        ledger.tables.assessing.put(key, record)
        until = ledger.now + sensitivity.deadline
        return Waiting(ledger.arrival, until, WaitKind.WRITE, ledger.tenant, record.write, record.agent, record.room)
    _take_up(ledger, record, ())
    return None


def assessed(ledger: Ledger, record: SensitivityAssessed) -> None:
    """An assessor has spoken of a write that waits (R-SEN-2); of any other, it is too late."""
    key = (ledger.tenant, record.write)
    write = ledger.tables.assessing.get(key)
    if write is None:
        return
    ledger.tables.assessing.drop(key)
    made = _after_waiting(ledger, write, record.label)
    if made is not None and record.ask_author:
        _ask(ledger, write.agent, made)


def never_assessed(ledger: Ledger, waiting: Waiting) -> None:
    """Nobody assessed it in time: it is restricted to its room (R-SEN-2)."""
    key = (ledger.tenant, waiting.subject)
    write = ledger.tables.assessing.get(key)
    if write is not None:
        ledger.tables.assessing.drop(key)
        _after_waiting(ledger, write, None)


def give_up(ledger: Ledger, waiting: Waiting) -> None:
    """Taking it up failed: it is refused, and its text does not stay (R-RUN-6)."""
    key = (ledger.tenant, waiting.subject)
    write = ledger.tables.assessing.get(key)
    if write is not None:
        ledger.tables.assessing.drop(key)
        _refuse(ledger, write, [Reason(code=Code.DECISION_ERROR)])


def _after_waiting(ledger: Ledger, write: MemoryWrite, label: Label | None) -> str | None:
    """Take up what waited, if its base is still current; an assessment can only restrict it.

    Who may read what it is made of was asked when it came.
    """
    ledger.nothing_changes(write.agent)
    code = _first_code(ledger, write, operators_topic=write.by is WriteBy.OPERATOR)
    against = _made_of_erased(ledger, write) if code is None else [Reason(code=code)]
    if against:
        _refuse(ledger, write, against)
        return None
    if label is not Label.ORDINARY:
        write = write.model_copy(update={"restrict": True})
    _take_up(ledger, write, ("late",) if label is None else (label.value,))
    return write.revision


def _ask(ledger: Ledger, agent: str, revision: str) -> None:
    """The revision's sole author is to be asked about sharing (R-SEN-3)."""
    row = ledger.tables.revisions.rows[ledger.tenant, revision]
    authors = {ledger.leaf(key).author for key in row.leaves}
    author = authors.pop() if len(authors) == 1 else None
    if author is not None:
        key = (ledger.tenant, agent, author)
        ledger.tables.questions.put(key, (*(ledger.tables.questions.get(key) or ()), revision))


def _refuse(ledger: Ledger, record: MemoryWrite, against: list[Reason]) -> None:
    unique = tuple({(r.code, r.ref): r for r in against}.values())
    ledger.emit(WriteRefused(tenant=ledger.tenant, at=ledger.now, write=record.write, reasons=unique))


def _against(ledger: Ledger, record: MemoryWrite, *, operators_topic: bool) -> list[Reason]:
    """The first check that fails (R-EVI-8)."""
    code = _first_code(ledger, record, operators_topic=operators_topic)
    if code is not None:
        return [Reason(code=code)]
    staged = [ref for ref in record.sources if record.op not in _ACTS and _staged(ledger, ref)]
    if staged:
        return [Reason(code=Code.REVISION_STAGED, ref=ref) for ref in staged]
    against = _readable(ledger, record) or _made_of_erased(ledger, record)
    if against:
        return against
    mixed = _mixed(ledger, record) if record.by is WriteBy.DREAM else None
    if mixed is not None:
        return [mixed]
    code = _tainted(ledger, record) or (_review(ledger, record) if record.op is WriteOp.REVIEW else None)
    return [] if code is None else [Reason(code=code)]


def _first_code(ledger: Ledger, record: MemoryWrite, *, operators_topic: bool) -> Code | None:
    operators = record.by is WriteBy.OPERATOR
    if operators != operators_topic or (record.op in _OPERATORS_ACTS and not operators_topic):
        return Code.NOT_OPERATOR  # R-EVI-10
    if not named(ledger, record.agent, record.room):
        return Code.AGENT_UNKNOWN
    if record.health:
        return Code.HEALTH_NOT_RETAINED  # R-MEM-6
    acts = record.op in _ACTS
    row = ledger.tables.revisions.get((ledger.tenant, record.revision))
    if row is not None and not acts:
        return Code.REVISION_EXISTS
    memory = ledger.tables.memories.get((ledger.tenant, record.memory))
    if (memory is not None and memory.agent != record.agent) or (row is not None and row.agent != record.agent):
        return Code.OTHER_AGENT
    if acts and not _may_act(ledger, record, row, memory):
        return Code.BASE_NOT_CURRENT
    current = None if memory is None else memory.current
    if not acts and (record.base != current or (record.op is WriteOp.AMEND and record.base is None)):
        return Code.BASE_NOT_CURRENT
    if not acts and record.by is WriteBy.REFUSAL and _kind(ledger, record) is MemoryKind.RULE:
        return Code.MACHINE_REFUSAL  # R-MEM-3
    return None


def _may_act(ledger: Ledger, record: MemoryWrite, row: Revision | None, memory: Memory | None) -> bool:
    """Whether there is a revision of this memory in the state that the act needs."""
    if row is None or memory is None or row.memory != record.memory:
        return False
    if record.op is WriteOp.PROMOTE:
        return row.state is RevisionState.STAGED and row.base == memory.current
    if record.op is WriteOp.REJECT:
        return row.state is not RevisionState.RETIRED
    if record.op is WriteOp.FORGET:
        return memory.current == record.revision
    return row.state is not RevisionState.RETIRED


def _kind(ledger: Ledger, record: MemoryWrite) -> MemoryKind:
    """An amend keeps its base's kind (R-EVI-2)."""
    base = _base(ledger, record)
    return record.kind if base is None or record.op is not WriteOp.AMEND else base.kind


def _base(ledger: Ledger, record: MemoryWrite) -> Revision | None:
    return None if record.base is None else ledger.tables.revisions.get((ledger.tenant, record.base))


def _staged(ledger: Ledger, ref: str) -> bool:
    if not ref.startswith(REVISION):
        return False
    row = ledger.tables.revisions.get((ledger.tenant, ref[len(REVISION) :]))
    return row is not None and row.state is RevisionState.STAGED


def _readable(ledger: Ledger, record: MemoryWrite) -> list[Reason]:
    """Whoever asks must be permitted to read what the write is made of, in the room it asks from (R-EVI-7).

    A write that names no room is asked from every room in which its turn asked for context.
    """
    if record.by not in (WriteBy.TURN, WriteBy.CORRECTION):
        return []
    refs = list(record.sources)
    if record.op in _ACTS:
        refs.append(f"{REVISION}{record.revision}")
    elif record.base is not None:
        refs.append(f"{REVISION}{record.base}")
    if not refs:
        return []
    rooms = asked_from(ledger, record)
    if not rooms:
        return [Reason(code=Code.DESTINATION_STALE)]
    return [reason for room in rooms for reason in _readable_in(ledger, record, refs, room)]


def _readable_in(ledger: Ledger, record: MemoryWrite, refs: list[str], room: str) -> list[Reason]:
    to, codes, now = destination(ledger, record.agent, room)
    if to is None and not now.open:
        need_by = ledger.now + ledger.policy(room).settings.stale.hold
        ledger.ask(record.agent, room, Because.WRITE, need_by)
        skew = [Code.CLOCK_SKEW] if Code.CLOCK_SKEW in codes else []
        return [Reason(code=code, ref=room) for code in (Code.DESTINATION_STALE, *skew)]
    hearer = to or nowhere(ledger, record.agent, room)
    return [reason for ref in refs for reason in reasons(ref, judge(ledger, ref, hearer), None)]


def _made_of_erased(ledger: Ledger, record: MemoryWrite) -> list[Reason]:
    """A text that was made of what an operator has erased since is not taken in again, but from operators (R-RET-3)."""
    refs = () if record.op in _ACTS or record.by is WriteBy.OPERATOR else fed_by(ledger, record)
    return [Reason(code=Code.SOURCE_DELETED, ref=ref) for ref in refs if erased(ledger, ref)]


def _mixed(ledger: Ledger, record: MemoryWrite) -> Reason | None:
    """A dream is made of one audience, known, with one set of restrictions (R-EVI-9)."""
    refs = ([] if record.base is None else [f"{REVISION}{record.base}"]) + list(record.sources)
    kinds: set[frozenset[tuple[str, tuple[str, ...], tuple[str, ...]]]] = set()
    for ref in refs:
        found = source(ledger, ref, record.agent)
        if found is None or not found.leaves or not known(ledger, found.leaves):
            return Reason(code=Code.DREAM_MIXED_AUDIENCE, ref=ref)
        rows = [ledger.leaf(key) for key in found.leaves]
        kinds.add(frozenset((row.audience, row.each, row.restrictions) for row in rows))
    return None if len(kinds) <= 1 else Reason(code=Code.DREAM_MIXED_AUDIENCE)


def _tainted(ledger: Ledger, record: MemoryWrite) -> Code | None:
    """A rule from doubtful evidence (R-MEM-3), or a belief evicted by it (R-MEM-5, R-MEM-7)."""
    if record.op not in _ACTS and _kind(ledger, record) is MemoryKind.RULE and record.by is not WriteBy.OPERATOR:
        made = lineage(ledger, record, MemoryKind.RULE)
        trusted = not any(ledger.leaf(key).untrusted for key in made.leaves)
        if made.over or not made.leaves or not known(ledger, made.leaves) or not trusted:
            return Code.TAINTED_RULE
    turn = of_turn(ledger, record.turn, record.agent)
    shown = (*record.sources, *turn.triggers, *turn.permitted)
    if record.by is WriteBy.CORRECTION and doubtful(ledger, shown, record.agent):
        return Code.TAINTED_CORRECTION
    if record.op is WriteOp.FORGET and record.by is not WriteBy.OPERATOR:
        row = ledger.tables.revisions.rows[ledger.tenant, record.revision]
        refs = (*turn.triggers, *turn.permitted, *turn.results)
        if row.kind in _STAGED and doubtful(ledger, refs, record.agent):
            return Code.TAINTED_CORRECTION
    return None


def _review(ledger: Ledger, record: MemoryWrite) -> Code | None:
    """A review gives unknown evidence a proper audience, and nothing else (R-EVI-3)."""
    row = ledger.tables.revisions.rows[ledger.tenant, record.revision]
    audience = record.audience
    proper = audience is not None and (
        audience.scope is Scope.PUBLIC or bool(audience.readers) or bool(audience.workspaces)
    )
    unknown = row.over or not row.leaves or not known(ledger, row.leaves)
    return None if proper and unknown else Code.PARAM_INVALID


def _take_up(ledger: Ledger, record: MemoryWrite, notes: tuple[str, ...]) -> None:
    if record.op in _ACTS:
        _act(ledger, record)
    else:
        _make(ledger, record, notes)


def _make(ledger: Ledger, record: MemoryWrite, notes: tuple[str, ...]) -> None:
    """A new revision: current, or staged until an operator promotes it."""
    kind, base = _kind(ledger, record), _base(ledger, record)
    made = lineage(ledger, record, kind)
    said = origins(ledger, made.sources, record.agent)
    # Whatever it is called, what takes a belief's place waits for an operator as another belief would (R-MEM-7).
    belief = kind in _STAGED or (base is not None and base.kind in _STAGED)
    staged = belief and record.by is not WriteBy.OPERATOR
    keeps = kind is MemoryKind.TRANSCRIPT and record.base is not None
    row = Revision(
        agent=record.agent,
        memory=record.memory,
        kind=kind,
        state=RevisionState.STAGED if staged else RevisionState.CURRENT,
        leaves=made.leaves,
        write=record.write,
        base=record.base,
        seen=made.seen if record.by is WriteBy.TURN and set(made.seen) != set(made.leaves) else (),
        over=made.over,
        restrictions=made.restrictions,
        sources=made.sources,
        rooms=said.rooms,
        authors=said.authors,
        room=record.room,
        text=record.text,
        turn=record.turn if record.by is WriteBy.TURN else None,
        notes=(*notes, f"replaced:{record.base}") if keeps else notes,
    )
    ledger.tables.revisions.put((ledger.tenant, record.revision), row)
    key = (ledger.tenant, record.memory)
    memory = ledger.tables.memories.get(key) or Memory(record.agent, None)
    if not staged:
        _retire(ledger, memory.current, record)
        memory = replace(memory, current=record.revision)
    ledger.tables.memories.put(key, memory)
    _emit(ledger, record, row)


def _act(ledger: Ledger, record: MemoryWrite) -> None:
    """Forget, promote, reject or review a revision, and tell of it again (R-EVI-1)."""
    key = (ledger.tenant, record.revision)
    memory_key = (ledger.tenant, record.memory)
    memory = ledger.tables.memories.rows[memory_key]
    row = ledger.tables.revisions.rows[key]
    if record.op is WriteOp.PROMOTE:
        _retire(ledger, memory.current, record)
        ledger.tables.memories.put(memory_key, replace(memory, current=record.revision))
        ledger.tables.revisions.put(key, replace(row, state=RevisionState.CURRENT))
    elif record.op is WriteOp.REVIEW:
        made = _reviewed(ledger, record, row)
        ledger.tables.revisions.put(
            key, replace(row, leaves=made.leaves, seen=(), over=made.over, restrictions=made.restrictions)
        )
    else:
        _retire(ledger, record.revision, record)
        if memory.current == record.revision:
            ledger.tables.memories.put(memory_key, replace(memory, current=None))
    _emit(ledger, record, ledger.tables.revisions.rows[key])


def _reviewed(ledger: Ledger, record: MemoryWrite, row: Revision) -> Lineage:
    """The audience that an operator gives is the only leaf, without author; restrictions stay (R-EVI-3)."""
    if record.audience is None:
        raise ValueError("a review without an audience")
    leaf = LeafRow(
        agent=record.agent,
        audience=ledger.keep_audience(keyed(record.audience)),
        restrictions=row.restrictions,
        private=False,
        untrusted=False,
    )
    key = ledger.keep_leaf(leaf)
    return made_of(ledger, record, row.kind, (key,), row.restrictions, over=False, sources=row.sources)


def _retire(ledger: Ledger, revision: str | None, record: MemoryWrite) -> None:
    """A revision is current no more; its text goes, but an amended transcript keeps what it replaced (R-MEM-4)."""
    if revision is None:
        return
    key = (ledger.tenant, revision)
    row = ledger.tables.revisions.rows[key]
    text = row.text if row.kind is MemoryKind.TRANSCRIPT and record.op not in _ACTS else None
    by = record.turn if record.by is WriteBy.TURN else None
    ledger.tables.revisions.put(key, replace(row, state=RevisionState.RETIRED, text=text, retired_by=by))


def _emit(ledger: Ledger, record: MemoryWrite, row: Revision) -> None:
    keys = [ledger.unknown_leaf(row.agent)] if row.over else sorted(row.leaves)
    leaves = [ledger.leaf(key) for key in keys]
    unknown = row.over or not keys or not known(ledger, keys)
    world = row.kind is MemoryKind.WORLD
    ledger.emit(
        RevisionRecorded(
            tenant=ledger.tenant,
            at=ledger.now,
            write=record.write,
            agent=row.agent,
            memory=row.memory,
            revision=record.revision,
            kind=row.kind,
            state=row.state,
            base=row.base,
            leaves=ledger.leaf_shapes(keys),
            restrictions=row.restrictions,
            private=unknown or world or any(leaf.private for leaf in leaves),
            untrusted=unknown or world or any(leaf.untrusted for leaf in leaves),
            notes=row.notes,
        )
    )
