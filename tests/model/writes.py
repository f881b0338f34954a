"""What becomes of a memory write, and what its revision is made of (rules EVI, MEM, SEN, R-RET-3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.model.book import Book
from tests.model.facts import DEADLINE, UNKNOWN, Destination, Leaf, Revision, Turn, Who, nobody_knows
from turngate.schemas.inputs import ErasureCommanded, MemoryWrite, SensitivityAssessed
from turngate.schemas.shapes import Audience, Scope

AGENTS = ("mesh", "scout")
ACTS = ("forget", "promote", "reject", "review")
Reasons = frozenset[tuple[str, str | None]]


def who(audience: Audience) -> Who:
    if audience.scope is not Scope.LISTED:
        return Who(audience.scope.value)
    return Who("listed", frozenset(audience.workspaces), frozenset(audience.readers), frozenset(audience.guests))


def explicit(audience: Audience | None) -> bool:
    return audience is not None and (
        audience.scope is Scope.PUBLIC or bool(audience.readers) or bool(audience.workspaces)
    )


def written(book: Book, w: MemoryWrite, *, operators: bool) -> None:
    if ("write", w.write) in book.done:
        return
    reasons = against(book, w, operators=operators)
    if reasons != {("not_operator", None)}:  # R-EVI-10
        book.done.add(("write", w.write))
    if reasons:
        book.out.append(("WriteRefused", w.write, reasons))
    elif book.terms.assessed and w.op in ("create", "amend"):
        book.waiting[w.write] = (book.now + DEADLINE, w)
    else:
        take_up(book, w, ())


def against(book: Book, w: MemoryWrite, *, operators: bool) -> Reasons:
    """R-EVI-8: the first failing check."""
    code = first_code(book, w, operators=operators)
    if code is not None:
        return frozenset({(code, None)})
    staged = {s for s in w.sources if w.op not in ACTS and is_staged(book, s)}
    if staged:
        return frozenset(("revision_staged", s) for s in staged)
    if w.by in ("turn", "correction"):
        reasons = unreadable(book, w)
        if reasons:
            return reasons
    if w.op not in ACTS and w.by != "operator" and (erased := fed_by(book, w) & book.erased):
        return frozenset(("source_deleted", ref) for ref in erased)
    return later_checks(book, w)


def is_staged(book: Book, ref: str) -> bool:
    row = book.revisions.get(ref.removeprefix("revision:")) if ref.startswith("revision:") else None
    return row is not None and row.state == "staged"


def first_code(book: Book, w: MemoryWrite, *, operators: bool) -> str | None:
    if (w.by == "operator") != operators or (w.op in ("promote", "reject", "review") and not operators):
        return "not_operator"
    if w.agent not in AGENTS:
        return "agent_unknown"
    if w.health:
        return "health_not_retained"
    row = book.revisions.get(w.revision)
    if w.op not in ACTS and row is not None:
        return "revision_exists"
    owner, current = book.memories.get(w.memory, (w.agent, None))
    if owner != w.agent or (row is not None and row.agent != w.agent):
        return "other_agent"
    if w.op in ACTS:
        there = row is not None and row.memory == w.memory
        fits = (
            there
            and row is not None
            and {
                "promote": row.state == "staged" and row.base == current,
                "forget": current == w.revision,
                "reject": row.state != "retired",
                "review": row.state != "retired",
            }[w.op]
        )
        return None if fits else "base_not_current"
    if w.base != current or (w.op == "amend" and w.base is None):
        return "base_not_current"
    return "machine_refusal" if w.by == "refusal" and kind_of(book, w) == "rule" else None


def kind_of(book: Book, w: MemoryWrite) -> str:
    return book.revisions[w.base].kind if w.op == "amend" and w.base in book.revisions else w.kind.value


@dataclass(frozen=True)
class Saw:
    """What the turn of a write saw so far, and where its agent asked."""

    triggers: frozenset[str] = frozenset()
    permitted: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    rooms: frozenset[str] = frozenset()
    answered: bool = False


def turn_saw(book: Book, w: MemoryWrite) -> Saw:
    turn = Turn() if w.turn is None else book.turns.get(w.turn, Turn())
    asked = [book.asked[r] for r in turn.requests]
    mine = [a for a in asked if a.agent == w.agent]
    triggers = {a.trigger for a in mine} | {turn.draft_trigger}
    return Saw(
        frozenset(t for t in triggers if t is not None),
        frozenset(ref for a in asked for ref in a.permitted),
        frozenset(f"tool:{call}" for call, _ in turn.results),
        frozenset(a.room for a in mine),
        bool(mine),
    )


def fed_by(book: Book, w: MemoryWrite) -> frozenset[str]:
    """R-EVI-2, R-EVI-9: everything that a new revision is made of."""
    named = frozenset(w.sources) | ({f"revision:{w.base}"} if w.base is not None else set())
    if w.by == "document" and w.sources and all(public_result(book, s, w.agent) for s in w.sources):
        return named
    saw = turn_saw(book, w)
    return named | saw.triggers | saw.permitted | saw.results


def public_result(book: Book, ref: str, agent: str) -> bool:
    found = book.evidence(ref, agent) if ref.startswith("tool:") else None
    return found is not None and bool(found.leaves) and all(leaf.who.scope == "public" for leaf in found.leaves)


def asked_from(book: Book, w: MemoryWrite) -> frozenset[str]:
    return frozenset({w.room}) if w.room is not None else turn_saw(book, w).rooms


def unreadable(book: Book, w: MemoryWrite) -> Reasons:
    """R-EVI-7"""
    refs = set(w.sources)
    refs |= {f"revision:{w.revision}"} if w.op in ACTS else {f"revision:{w.base}"} if w.base is not None else set()
    if not refs:
        return frozenset()
    rooms = asked_from(book, w)
    if not rooms:
        return frozenset({("destination_stale", None)})
    reasons: set[tuple[str, str | None]] = set()
    for room in rooms:
        to = book.destination(w.agent, room)
        if to is None:
            reasons.add(("destination_stale", room))
        else:
            reasons |= readable_in(book, refs, w.agent, to)
    return frozenset(reasons)


def readable_in(book: Book, refs: set[str], agent: str, to: Destination) -> Reasons:
    return frozenset((code, ref) for ref in refs for code in book.judge(ref, agent, to).codes)


def later_checks(book: Book, w: MemoryWrite) -> Reasons:
    if w.by == "dream":
        refs = [*([f"revision:{w.base}"] if w.base is not None else []), *w.sources]
        unknown = [ref for ref in refs if not book.known(book.evidence(ref, w.agent))]
        if unknown:
            return frozenset({("dream_mixed_audience", unknown[0])})
        found = [e for ref in refs if (e := book.evidence(ref, w.agent)) is not None]
        if len({frozenset((leaf.who, leaf.restrictions) for leaf in e.leaves) for e in found}) > 1:
            return frozenset({("dream_mixed_audience", None)})
    saw = turn_saw(book, w)
    code = None
    if w.op not in ACTS and kind_of(book, w) == "rule" and w.by != "operator":
        made = made_of(book, w)
        if made.over or not made.leaves or any(x.who == UNKNOWN or x.untrusted for x in made.leaves):
            code = "tainted_rule"
    if code is None and w.by == "correction" and doubtful(book, {*w.sources, *saw.triggers, *saw.permitted}, w.agent):
        code = "tainted_correction"
    if code is None and w.op == "forget" and w.by != "operator":  # R-MEM-7
        belief = book.revisions[w.revision].kind in ("world", "rule")
        if belief and doubtful(book, {*saw.triggers, *saw.permitted, *saw.results}, w.agent):
            code = "tainted_correction"
    if code is None and w.op == "review":
        row = book.revisions[w.revision]
        known = not row.over and row.leaves and all(leaf.who != UNKNOWN for leaf in row.leaves)
        code = "param_invalid" if known or not explicit(w.audience) else None
    return frozenset() if code is None else frozenset({(code, None)})


def doubtful(book: Book, refs: set[str], agent: str) -> bool:
    found = [book.evidence(ref, agent) for ref in refs]
    return not found or any(not book.known(e) or (e and any(leaf.untrusted for leaf in e.leaves)) for e in found)


@dataclass(frozen=True)
class Made:
    leaves: frozenset[Leaf]
    seen: frozenset[Leaf]
    over: bool
    restrictions: frozenset[str]


def made_of(book: Book, w: MemoryWrite) -> Made:
    """R-EVI-2 to R-EVI-6, R-MEM-2, R-MEM-4."""
    refs = fed_by(book, w)
    found = {ref: book.evidence(ref, w.agent) for ref in refs}
    seen = book.as_seen(refs, w.agent)
    bound = frozenset(r for e in found.values() if e is not None for r in e.restrictions)
    unknown = (w.by == "turn" and not turn_saw(book, w).answered) or any(
        e is None or (not e.leaves and not e.over) for e in found.values()
    )
    if w.restrict or kind_of(book, w) == "transcript":
        rooms = asked_from(book, w)
        unknown = unknown or not (rooms or (bound and not w.restrict))  # an amended transcript has its room
        bound |= rooms
    if unknown or (bound and not seen):
        seen.add(nobody_knows(w.agent))
    return bounded(book, seen, bound, kind_of(book, w), over=any(e is not None and e.over for e in found.values()))


def bounded(book: Book, seen: set[Leaf], bound: frozenset[str], kind: str, *, over: bool) -> Made:
    united = bound | {room for leaf in seen for room in leaf.restrictions}
    world = kind == "world"
    kept = frozenset(
        replace(x, restrictions=united, private=x.private or world, untrusted=x.untrusted or world) for x in seen
    )
    plain = frozenset(replace(leaf, via=None) for leaf in kept)
    if over or len(plain) > book.terms.max_leaves:
        return Made(frozenset(), frozenset(), True, united)
    return Made(plain, kept, False, united)


def take_up(book: Book, w: MemoryWrite, notes: tuple[str, ...]) -> None:
    owner, current = book.memories.get(w.memory, (w.agent, None))
    if w.op not in ACTS:
        base = None if w.base is None else book.revisions[w.base]
        kind, made = kind_of(book, w), made_of(book, w)
        belief = kind in ("world", "rule") or (base is not None and base.kind in ("world", "rule"))
        staged = belief and w.by != "operator"  # R-MEM-2, R-MEM-3, R-MEM-7
        if kind == "transcript" and w.base is not None:
            notes += (f"replaced:{w.base}",)
        book.revisions[w.revision] = Revision(
            agent=w.agent,
            memory=w.memory,
            kind=kind,
            state="staged" if staged else "current",
            leaves=made.leaves,
            seen=made.seen,
            over=made.over,
            restrictions=made.restrictions,
            sources=fed_by(book, w),
            base=w.base,
            text=w.text,
            turn=w.turn if w.by == "turn" else None,
            notes=notes,
        )
        if not staged:
            retire(book, current, w)
            current = w.revision
        book.memories[w.memory] = (owner, current)
    else:
        act(book, w, owner, current)
    tell(book, w)


def act(book: Book, w: MemoryWrite, owner: str, current: str | None) -> None:
    row = book.revisions[w.revision]
    if w.op == "promote":
        retire(book, current, w)
        row.state = "current"
        book.memories[w.memory] = (owner, w.revision)
    elif w.op == "review":
        assert w.audience is not None
        leaf = Leaf(w.agent, who(w.audience), restrictions=row.restrictions, private=False, untrusted=False)
        made = bounded(book, {leaf}, row.restrictions, row.kind, over=False)
        row.leaves, row.seen, row.over, row.restrictions = made.leaves, made.seen, made.over, made.restrictions
    else:
        retire(book, w.revision, w)
        if current == w.revision:
            book.memories[w.memory] = (owner, None)


def retire(book: Book, revision: str | None, w: MemoryWrite) -> None:
    if revision is None:
        return
    row = book.revisions[revision]
    row.state = "retired"
    row.retired_by = w.turn if w.by == "turn" else None
    if row.kind != "transcript" or w.op in ACTS:  # R-MEM-4
        row.text = None


def tell(book: Book, w: MemoryWrite) -> None:
    row = book.revisions[w.revision]
    known = not row.over and row.leaves and all(leaf.who != UNKNOWN for leaf in row.leaves)
    leaves = row.leaves if known else "unknown"
    book.out.append(
        ("RevisionRecorded", w.write, w.revision, row.kind, row.state, row.base, leaves, row.restrictions, row.notes)
    )


def assessed(book: Book, record: SensitivityAssessed) -> None:
    if record.write in book.waiting:
        _, w = book.waiting.pop(record.write)
        if after_waiting(book, w, record.label.value) and record.ask_author:
            authors = {leaf.author for leaf in book.revisions[w.revision].leaves}
            if len(authors) == 1 and (author := authors.pop()) is not None:
                book.questions.setdefault((w.agent, author), []).append(w.revision)


def after_waiting(book: Book, w: MemoryWrite, label: str | None) -> bool:
    """R-SEN-2: an assessment can only restrict; without one it is late."""
    code = first_code(book, w, operators=w.by == "operator")
    erased = frozenset() if w.by == "operator" else fed_by(book, w) & book.erased
    reasons = {(code, None)} if code is not None else {("source_deleted", r) for r in erased}
    if reasons:
        book.out.append(("WriteRefused", w.write, frozenset(reasons)))
        return False
    restricted = w if label == "ordinary" else w.model_copy(update={"restrict": True})
    take_up(book, restricted, ("late",) if label is None else (label,))
    return True


def erased(book: Book, record: ErasureCommanded) -> None:
    """R-RET-3: everything meant and, through lineage, all that was made of it."""
    made_of_ref = {ref: set(said.made_of) for (ref, _), said in book.said.items()}
    for (ref, _), said in book.said.items():
        made_of_ref[ref] |= said.made_of
    made_of_ref |= {f"revision:{name}": set(row.sources) for name, row in book.revisions.items()}
    reached = {f"revision:{name}" for name, row in book.revisions.items() if row.memory == record.memory}
    for (ref, _), said in book.said.items():
        words = {said.author, *(leaf.author for leaf in said.leaves)} - {None}
        if said.room == record.room or record.reader in words:
            reached.add(ref)
    before: set[str] = set()
    while before != reached:
        before = set(reached)
        reached |= {ref for ref, sources in made_of_ref.items() if sources & reached}
    book.deleted |= reached
    book.erased |= reached
    for ref in reached:
        if ref.startswith("revision:"):
            book.revisions[ref.removeprefix("revision:")].text = None
    for write, (_, w) in list(book.waiting.items()):
        if fed := fed_by(book, w) & reached:
            del book.waiting[write]
            book.out.append(("WriteRefused", write, frozenset(("source_deleted", ref) for ref in fed)))
    book.out.append(("ErasureApplied", record.command, frozenset(reached)))
