"""Decides what is told of a reader: which turns that were let out to them derive from a source, and through what.

A derivation is followed as far as records declare it: what a draft named and its context answers permitted, what a
memory was written from, what a message quotes, and the turn that an agent's own message is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, literal, or_

from turngate.processors.audience import covers, namespace
from turngate.schemas.inputs import DeliveryStatus
from turngate.schemas.shapes import Audience, Scope
from turngate.sinks.store.asking import Asked, words_of
from turngate.sinks.store.tables import (
    AUDIENCES,
    AUTHORIZATIONS,
    CANDIDATES,
    DECISIONS,
    DELIVERIES,
    LEAVES,
    MEMORIES,
    MESSAGES,
    names,
)

#: What stands for a turn among the refs.
TURN = "turn:"


class Heard(StrEnum):
    """How sure it is that the reader could read the room."""

    #: Named by the listing, or by a join.
    LISTED = "listed"
    #: A full member, as far as the id says, of a workspace that reads along.
    WORKSPACE = "workspace"
    #: Anybody may have.
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class Reached:
    """A turn that was let out to the reader. `status` None: no record says what became of it, so it may have been sent.

    `path` leads from the source to the turn; without a source it is what the turn was made of.
    """

    turn: str
    room: str
    at: int
    heard: Heard
    status: str | None
    message: str | None
    path: tuple[str, ...]


def blast_radius(connection: Connection, tenant: str, reader: str, source: str | None = None) -> list[Reached]:
    """What a reader was sent, oldest first, that derives from a source; without one, all of it.

    What was withheld or failed was not sent.
    """
    asked = Asked(connection, tenant)
    found: list[Reached] = []
    rows = [(row, heard) for row, heard in _let_out(asked, reader) if heard is not None]
    sent = _deliveries(asked, (row.turn for row, _ in rows))
    kept = [(row, heard) for row, heard in rows if row.turn not in sent or _may_have_been_sent(sent[row.turn])]
    paths = {} if source is None else _paths(asked, source, [f"{TURN}{row.turn}" for row, _ in kept])
    for row, heard in kept:
        path = words_of(row.provenance) or () if source is None else paths.get(f"{TURN}{row.turn}")
        if path is not None:
            told = sent.get(row.turn)
            status, message = (None, None) if told is None else (told.status, told.message)
            found.append(Reached(row.turn, row.room, row.time, heard, status, message, path))
    return found


def _deliveries(asked: Asked, turns: Iterable[str]) -> dict[str, Row[Any]]:
    """What became of each turn: where several records say it, the last of those by which it may have been sent."""
    found: dict[str, Row[Any]] = {}
    for row in asked.of(DELIVERIES, "turn", turns):
        if row.turn not in found or _may_have_been_sent(row) or not _may_have_been_sent(found[row.turn]):
            found[row.turn] = row
    return found


def _may_have_been_sent(delivery: Row[Any]) -> bool:
    return delivery.status in (DeliveryStatus.SENT, DeliveryStatus.UNCERTAIN)


def _let_out(asked: Asked, reader: str) -> Iterator[tuple[Row[Any], Heard | None]]:
    listed = asked.audiences(names(AUDIENCES.c.readers, literal(reader)))
    further = {w for row in listed for of, *more in row.memberships for w in more if of == reader}
    homes = {namespace(reader), *further}
    inside = (names(AUDIENCES.c.workspaces, literal(home)) for home in sorted(homes))
    others = asked.audiences(or_(AUDIENCES.c.scope != Scope.LISTED.value, *inside))
    heard = {row.digest: _heard(asked.audience(row.digest), reader, homes) for row in (*listed, *others)}
    for row in asked.of(AUTHORIZATIONS, "destination", heard):
        yield row, heard[row.destination]


def _heard(audience: Audience | None, reader: str, homes: Iterable[str]) -> Heard | None:
    if audience is None or audience.scope is not Scope.LISTED:
        return Heard.ANYONE
    if reader in audience.readers:
        return Heard.LISTED
    return Heard.WORKSPACE if covers(audience, reader, homes) else None


def _paths(asked: Asked, source: str, turns: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The shortest way from the source to each thing that derives from it, as far as these turns reach back."""
    parents: dict[str, set[str]] = {}
    todo = set(turns)
    while todo:
        found = _parents(asked, todo)
        parents |= {child: found.get(child, set()) for child in todo}
        todo = {parent for child in todo for parent in parents[child]} - parents.keys()
    children: defaultdict[str, list[str]] = defaultdict(list)
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    paths: dict[str, tuple[str, ...]] = {source: (source,)}
    edge = [source]
    while edge:
        reached = [(child, paths[at]) for at in edge for child in sorted(children[at])]
        edge = []
        for child, path in reached:
            if child not in paths:
                paths[child] = (*path, child)
                edge.append(child)
    return paths


def _parents(asked: Asked, refs: Iterable[str]) -> dict[str, set[str]]:
    """What each of these was made of."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for ref in refs:
        kind, _, name = ref.partition(":")
        kinds[kind].append(name)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in asked.of(MEMORIES, "revision", kinds["revision"]):
        above = [*row.sources, *([] if row.base is None else [f"revision:{row.base}"])]
        found[f"revision:{row.revision}"].update(above, [] if row.turn is None else [f"{TURN}{row.turn}"])
    for row in asked.of(MESSAGES, "message", kinds["message"]):
        found[f"message:{row.message}"].update(row.quotes, [] if row.turn is None else [f"{TURN}{row.turn}"])
    for row in asked.of(DELIVERIES, "message", kinds["message"]):
        found[f"message:{row.message}"].add(f"{TURN}{row.turn}")
    for row in asked.of(LEAVES, "ref", (f"{kind}:{name}" for kind in ("revision", "message") for name in kinds[kind])):
        found[row.ref].update([] if row.call is None else [f"tool:{row.call}"])
    for row in asked.of(DECISIONS, "turn", kinds["turn"], DECISIONS.c.kind == "turn"):
        found[f"{TURN}{row.turn}"].update(words_of(row.provenance) or ())
    for row in asked.of(CANDIDATES, "turn", kinds["turn"], CANDIDATES.c.permitted.is_(True)):
        found[f"{TURN}{row.turn}"].add(row.ref)
    return found
