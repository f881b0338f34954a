"""Decides what belongs to a turn: its context requests, its tool results, and what each inference saw (R-EVI-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from operator import attrgetter
from typing import Final

from turngate.processors.evidence import tool_ref
from turngate.processors.ledger import Ledger
from turngate.processors.rows import EarlyResults, OpenTurns, Turn
from turngate.schemas.inputs import ContextRequested, ToolReturned, TurnDrafted
from turngate.schemas.shapes import Rendering

_make: Final[Callable[..., Turn]] = Turn
_PLACES: Final = {field.name: place for place, field in enumerate(fields(Turn))}
_values: Final[Callable[[Turn], tuple[object, ...]]] = attrgetter(*_PLACES)


def turn_of(ledger: Ledger, turn: str) -> Turn:
    """What is known of a turn."""
    return ledger.tables.turns.get((ledger.tenant, turn)) or Turn(seen=ledger.now)


def but(row: Turn, **changes: object) -> Turn:
    """The turn with some fields changed: `dataclasses.replace` in less time, since every draft does it.

    Raises `KeyError` for a field that turns do not have.
    """
    values = list(_values(row))
    for name, value in changes.items():
        values[_PLACES[name]] = value
    return _make(*values)


def put_turn(ledger: Ledger, turn: str, row: Turn) -> None:
    """Remember a turn."""
    ledger.tables.turns.put((ledger.tenant, turn), row)


def asked(ledger: Ledger, record: ContextRequested) -> None:
    """A context request belongs to its turn, which is open in that room and thread until its final decision.

    Results that named the request before it was seen are of its turn too (R-EVI-2), whichever way they were overtaken.
    """
    row = turn_of(ledger, record.turn)
    early = ledger.tables.early_results.get((ledger.tenant, record.request))
    if early is not None:
        ledger.tables.early_results.drop((ledger.tenant, record.request))
        row = _with_results(row, early.calls, record.request)
    put_turn(ledger, record.turn, replace(row, contexts=(*row.contexts, record.request)))
    if row.final:
        return
    key = _conversation(ledger, record.agent, record.room, record.thread)
    open_turns = _open(ledger, key)
    if record.turn not in open_turns:
        ledger.tables.open_turns.put(key, OpenTurns((*open_turns, record.turn)))


def result_came(ledger: Ledger, record: ToolReturned) -> list[str]:
    """A tool's result belongs to the turn that it or its request names, or else to every one that is open there.

    These turns.
    """
    turns = [] if record.turn is None else [record.turn]
    context = None if record.request is None else ledger.tables.contexts.get((ledger.tenant, record.request))
    if context is not None and context.turn not in turns:
        turns.append(context.turn)
    if record.request is not None and context is None:
        _came_early(ledger, record.request, record.call)
    turns = turns or list(_open(ledger, _conversation(ledger, record.agent, record.room, record.thread)))
    for turn in turns:
        put_turn(ledger, turn, _with_results(turn_of(ledger, turn), (record.call,), record.request))
    return turns


def _came_early(ledger: Ledger, request: str, call: str) -> None:
    key = (ledger.tenant, request)
    early = ledger.tables.early_results.get(key) or EarlyResults(())
    if call not in early.calls:
        ledger.tables.early_results.put(key, EarlyResults((*early.calls, call)))


def _with_results(row: Turn, calls: Iterable[str], request: str | None) -> Turn:
    new = ((call, request) for call in calls if (call, request) not in row.results)
    return replace(row, results=(*row.results, *new))


def _open(ledger: Ledger, key: tuple[str, str, str, str]) -> tuple[str, ...]:
    """The turns that are open in a conversation; some may have ended by a draft for another."""
    open_turns = ledger.tables.open_turns.get(key)
    rows = ledger.tables.turns
    turns = () if open_turns is None else open_turns.turns
    return tuple(t for t in turns if (row := rows.get((ledger.tenant, t))) is not None and not row.final)


def close(ledger: Ledger, record: TurnDrafted) -> None:
    """A turn with a final decision is open no more in the draft's conversation."""
    key = _conversation(ledger, record.agent, record.room, record.thread)
    open_turns = ledger.tables.open_turns.get(key)
    if open_turns is not None and record.turn in open_turns.turns:
        left = tuple(t for t in open_turns.turns if t != record.turn)
        if left:
            ledger.tables.open_turns.put(key, OpenTurns(left))
        else:
            ledger.tables.open_turns.drop(key)


def _conversation(ledger: Ledger, agent: str, room: str, thread: str | None) -> tuple[str, str, str, str]:
    return (ledger.tenant, agent, room, thread or "")


def seen(ledger: Ledger, draft: TurnDrafted, row: Turn, rendering: Rendering | None) -> tuple[list[str], bool]:
    """The refs that the inference of a rendering saw, each once (R-TURN-2), and whether it had any evidence (R-TURN-4).

    Without a rendering: all that the turn saw.
    """
    request = None if rendering is None else rendering.request
    known = request if request in row.contexts else None  # one that is not of this turn tells no inference apart
    contexts = row.contexts if known is None else (known,)
    trigger = draft.trigger
    refs = [] if trigger is None else [trigger]
    some = bool(refs)
    for context in contexts:
        answered = ledger.tables.contexts.get((ledger.tenant, context))
        if answered is not None:
            if trigger is None and answered.trigger is not None:
                refs.append(answered.trigger)  # a draft that leaves it out has it all the same
            refs += answered.permitted or ()
            some = some or answered.agent == draft.agent
    results = [tool_ref(call) for call, of in row.results if known is None or of == known or of not in row.contexts]
    refs += results
    exposed = draft.exposed if rendering is None or rendering.exposed is None else rendering.exposed
    refs += exposed
    some = some or bool(results) or bool(exposed)
    if request is not None and known is None:
        refs += _of_another_turn(ledger, request)
    refs += mutations(draft)
    return list(dict.fromkeys(refs)), some


def _of_another_turn(ledger: Ledger, request: str) -> list[str]:
    """What an inference saw that had the answer to another turn's context request: nothing where there is none."""
    context = ledger.tables.contexts.get((ledger.tenant, request))
    if context is None:
        return []
    results = turn_of(ledger, context.turn).results
    return [*(context.permitted or ()), *(tool_ref(call) for call, of in results if of == request)]


def mutations(draft: TurnDrafted) -> list[str]:
    """The revisions that a draft says it wrote or retired; they stay in its provenance (R-TURN-5)."""
    return [f"revision:{revision}" for revision in draft.wrote + draft.retired]


def changed_only(draft: TurnDrafted) -> set[str]:
    """What a turn wrote or retired and did not read."""
    changed = mutations(draft)
    if not changed:
        return set()
    return set(changed).difference(draft.exposed, *(rendering.exposed or () for rendering in draft.renderings))


def everything(ledger: Ledger, draft: TurnDrafted, row: Turn, refs: list[str]) -> tuple[str, ...]:
    """All that a turn had: `refs`, which it saw, and what each of its inferences saw (R-EVI-6)."""
    had = set(refs)
    for rendering in draft.renderings:
        had.update(rendering.exposed or ())
        if rendering.request is not None and rendering.request not in row.contexts:
            had.update(_of_another_turn(ledger, rendering.request))
    return tuple(sorted(had))
