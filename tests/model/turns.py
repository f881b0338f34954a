"""What a turn has seen, what its context answers permit, and what becomes of its draft (rules TURN, R-EVI-6)."""

from __future__ import annotations

from tests.model.book import Book
from tests.model.facts import Asked, Destination, Leaf, Turn
from turngate.schemas.inputs import ContextRequested, ToolReturned, TurnDrafted
from turngate.schemas.shapes import Rendering


def asked_for_context(book: Book, record: ContextRequested) -> None:
    if record.request in book.asked:
        return
    to = book.destination(record.agent, record.room)
    assert to is not None, "the machine asks for context in rooms that are known"
    turn = book.turns.setdefault(record.turn, Turn())
    turn.requests.append(record.request)
    turn.results += [(call, record.request) for call in book.early.pop(record.request, [])]
    if turn.content is None:
        book.open_in.setdefault((record.agent, record.room, record.thread or ""), []).append(record.turn)
    permitted, withheld = [], []
    for ref in dict.fromkeys(record.candidates):
        judged = book.judge(ref, record.agent, to)
        if judged.codes:
            withheld.append((ref, judged.codes))
        else:
            permitted.append((ref, min(judged.grants, default=None)))  # R-GRT-8: hidden where there is a grant
    questions = book.questions.pop((record.agent, to.sole), []) if to.sole is not None else []
    still = tuple(q for q in questions if _usable(book, q))
    book.asked[record.request] = Asked(
        record.agent, record.turn, record.room, record.trigger, tuple(ref for ref, _ in permitted)
    )
    book.out.append(("ContextDecided", record.request, frozenset(p for p, _ in permitted), frozenset(withheld), still))
    for ref, grant in permitted:
        book.out.append(("attribution", record.request, ref, "shown" if grant is None else "hidden"))


def _usable(book: Book, revision: str) -> bool:
    return book.revisions[revision].state == "current" and f"revision:{revision}" not in book.deleted


def result_came(book: Book, record: ToolReturned) -> None:
    """R-EVI-2: of the turn that it or its request names, else of every one that is open in that conversation."""
    turns = [] if record.turn is None else [record.turn]
    if record.request is not None and record.request in book.asked:
        turns.append(book.asked[record.request].turn)
    elif record.request is not None:
        book.early.setdefault(record.request, []).append(record.call)
    if not turns:
        there = book.open_in.get((record.agent, record.room, record.thread or ""), [])
        turns = [t for t in there if book.turns[t].content is None]
    for turn in dict.fromkeys(turns):
        book.turns.setdefault(turn, Turn()).results.append((record.call, record.request))


def drafted(book: Book, record: TurnDrafted) -> None:
    content = record.model_copy(update={"at": 0})
    turn = book.turns.setdefault(record.turn, Turn())
    if turn.content is not None:  # R-TURN-8
        if content != turn.content and content not in turn.conflicts:
            turn.conflicts.append(content)
            book.out.append(
                ("TurnDecided", record.turn, "drop", None, frozenset({("turn_conflict", None)}), frozenset())
            )
        return
    turn.content, turn.agent, turn.draft_trigger = content, record.agent, record.trigger
    to = book.destination(record.agent, record.room)
    assert to is not None, "the machine drafts for rooms that are known"
    wrote = {r for r in record.wrote if r in book.revisions and book.revisions[r].turn == record.turn}
    retired = {r for r in record.retired if r in book.revisions and book.revisions[r].retired_by == record.turn}
    against: set[tuple[str, str | None]] = set()
    if to.who.scope == "unknown":
        against.add(("destination_unknown", record.room))
    for number, rendering in enumerate(record.renderings):
        refs, some = saw(book, record, turn, rendering)
        reasons, limits, grants, proofs, own = _try(book, record, refs, some, to, wrote, retired)
        if reasons:
            against |= reasons
            continue
        turn.sent_to, turn.refs = record.room, refs
        turn.leaves = frozenset(book.as_seen(refs, record.agent))
        verdict = "deliver" if to.who.scope == "listed" else "downgrade"
        heard = to.who if verdict == "deliver" else ("unknown" if own else "public")
        book.out.append(("TurnDecided", record.turn, verdict, number, frozenset(), refs))
        until = min((t for t in (*limits, to.until, record.deadline) if t is not None), default=None)
        book.out.append(("TurnAuthorized", record.turn, rendering.text, heard, refs, grants, proofs, until))
        return
    everything = frozenset().union(*(saw(book, record, turn, r)[0] for r in (None, *record.renderings)))
    book.out.append(("TurnDecided", record.turn, "drop", None, frozenset(against), everything))


def saw(book: Book, record: TurnDrafted, turn: Turn, rendering: Rendering | None) -> tuple[frozenset[str], bool]:
    """The refs that a rendering's inference saw, and whether there was anything (R-TURN-2, R-TURN-4)."""
    request = None if rendering is None else rendering.request
    assert request is None or request in turn.requests, "the machine names requests of the turn"
    requests = turn.requests if request is None else [request]
    refs = {record.trigger} if record.trigger is not None else {book.asked[r].trigger for r in requests}
    for r in requests:
        refs.update(book.asked[r].permitted)
    results = {
        f"tool:{call}" for call, of in turn.results if request is None or of == request or of not in turn.requests
    }
    exposed = record.exposed if rendering is None or rendering.exposed is None else rendering.exposed
    some = bool(record.trigger or results or exposed or any(book.asked[r].agent == record.agent for r in requests))
    refs |= results | set(exposed) | {f"revision:{r}" for r in (*record.wrote, *record.retired)}
    return frozenset(ref for ref in refs if ref is not None), some


def _try(
    book: Book,
    record: TurnDrafted,
    refs: frozenset[str],
    some: bool,
    to: Destination,
    wrote: set[str],
    retired: set[str],
) -> tuple[set[tuple[str, str | None]], list[int | None], frozenset[str], frozenset[str], bool]:
    if not some:  # R-TURN-4
        return {("source_missing", None)}, [], frozenset(), frozenset(), False
    reasons: set[tuple[str, str | None]] = set()
    grants: set[str] = set()
    proofs: set[str] = set()
    own = False
    for ref in refs:
        judged = book.judge(ref, record.agent, to, wrote, retired)
        for code in judged.codes:
            trigger = code == "audience_not_subset" and ref == record.trigger  # R-TURN-3
            reasons.add(("trigger_not_subset" if trigger else code, ref))
        grants |= judged.grants
        proofs |= judged.proofs
        own = own or judged.own_words
    leaves: set[Leaf] = book.as_seen(refs, record.agent)
    if len(leaves) > book.terms.max_leaves:
        reasons.add(("leaf_limit", None))
    ends = [book.grants[g].expires_at for g in grants] + [book.proofs[p].expires_at for p in proofs]
    return reasons, ends, frozenset(grants), frozenset(proofs), own
