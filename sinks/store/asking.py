"""Decides how the store is asked for one thing of one tenant: an audience, the evidence of a ref, a room's listing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, or_, select

from turngate.processors.audience import covers, listed, namespace
from turngate.schemas.canonical import digest
from turngate.schemas.shapes import Audience, MemberKind, Visibility
from turngate.sinks.store.tables import (
    AUDIENCES,
    BY_MONTH,
    ERASURES,
    EVIDENCE,
    GRANTS,
    LEAVES,
    MEMORIES,
    MESSAGES,
    POSITIONS,
    REVISIONS,
    ROOMS,
)

#: Characters of a leaf's digest by which a trace names it (contract section 4).
_LEAF = 32
#: Names in one question: a database takes some ten thousand.
_NAMES = 5_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A leaf of a ref's evidence. `audience` is None where the store does not have it, which is not known then."""

    agent: str
    author: str | None
    room: str | None
    call: str | None
    via: str | None
    open: bool
    private: bool
    untrusted: bool
    restrictions: tuple[str, ...]
    audience: Audience | None
    digest: str


@dataclass(frozen=True, slots=True)
class Source:
    """What one agent has of a ref. `leaves` says how many it has; a memory's revision has a memory and a state."""

    ref: str
    agent: str
    recorded_at: int
    leaves: tuple[Piece, ...]
    restrictions: tuple[str, ...]
    memory: str | None = None
    state: str | None = None


class Asked:
    """Questions about one tenant, over one connection, each answered by what the store had when it was asked."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._audiences: dict[str, Audience | None] = {}

    def rows(self, table: Table, *when: ColumnElement[bool]) -> Sequence[Row[Any]]:
        """Rows of the tenant's, in the order of their records; without a memory's text, which not all may read."""
        order = [table.c.time, table.c.offset, *([table.c.number] if "number" in table.c else [])]
        columns = [column for column in table.c if column is not MEMORIES.c.text]
        wanted = select(*columns).where(table.c.tenant == self._tenant, *when).order_by(*order)
        return self._connection.execute(wanted).all()

    def of(self, table: Table, column: str, names: Iterable[str], *when: ColumnElement[bool]) -> Iterator[Row[Any]]:
        """Rows whose column is one of many names."""
        rest = iter(sorted(set(names)))
        while some := list(islice(rest, _NAMES)):
            yield from self.rows(table, table.c[column].in_(some), *when)

    def audience(self, name: str | None) -> Audience | None:
        """An audience by its digest; None where the store does not have it, or has no such thing under it."""
        if name is None:
            return None
        if name not in self._audiences:
            of = select(AUDIENCES).where(AUDIENCES.c.tenant == self._tenant, AUDIENCES.c.digest == name)
            row = self._connection.execute(of).one_or_none()
            self._audiences[name] = None if row is None else _audience(row)
        return self._audiences[name]

    def audiences(self, when: ColumnElement[bool]) -> Sequence[Row[Any]]:
        """The rows of these audiences."""
        return self._connection.execute(select(AUDIENCES).where(AUDIENCES.c.tenant == self._tenant, when)).all()

    def sources(self, ref: str, *, agent: str | None = None, until: int | None = None) -> list[Source]:
        """What each agent had of a ref, or one; `until` then, and now where that is not said."""
        when = [EVIDENCE.c.ref == ref]
        when += [] if agent is None else [EVIDENCE.c.agent == agent]
        when += [] if until is None else [EVIDENCE.c.time <= until]
        newest = {row.agent: row for row in self.rows(EVIDENCE, *when)}
        return [self._source(row) for _, row in sorted(newest.items())]

    def _source(self, row: Row[Any]) -> Source:
        there = [LEAVES.c.topic == row.topic, LEAVES.c.partition == row.partition, LEAVES.c.offset == row.offset]
        leaves = tuple(self._piece(leaf) for leaf in self.rows(LEAVES, LEAVES.c.ref == row.ref, *there))
        memory = state = None
        if row.topic == "memory-revisions":
            beside = [REVISIONS.c.partition == row.partition, REVISIONS.c.offset == row.offset]
            for revision in self.rows(REVISIONS, REVISIONS.c.revision == row.ref.partition(":")[2], *beside):
                memory, state = revision.memory, revision.state
        return Source(row.ref, row.agent, row.time, leaves, tuple(row.restrictions), memory, state)

    def _piece(self, row: Row[Any]) -> Piece:
        return Piece(
            agent=row.leaf_agent,
            author=row.author,
            room=row.room,
            call=row.call,
            via=row.via,
            open=row.open,
            private=row.private,
            untrusted=row.untrusted,
            restrictions=tuple(row.restrictions),
            audience=self.audience(row.audience),
            digest=row.audience,
        )

    def ended(self, ref: str, until: int | None = None) -> str | None:
        """Whether a ref was erased, or deleted where it was said: which, or None."""
        before = [] if until is None else [ERASURES.c.time <= until]
        if self.rows(ERASURES, ERASURES.c.ref == ref, *before):
            return "erased"
        kind, _, name = ref.partition(":")
        before = [] if until is None else [MESSAGES.c.time <= until]
        if kind == "message" and self.rows(MESSAGES, MESSAGES.c.message == name, MESSAGES.c.deleted.is_(True), *before):
            return "deleted"
        return None

    def grants(self, revision: str, until: int | None = None) -> list[Row[Any]]:
        """The grants of a revision as they stand then, or now; offers are none."""
        before = [] if until is None else [GRANTS.c.time <= until]
        newest = {row.grant_id: row for row in self.rows(GRANTS, GRANTS.c.revision == revision, *before)}
        return [row for row in newest.values() if row.state != "offered"]

    def missed(self, partition: int) -> list[tuple[str, int]]:
        """How many records of each topic were gone before the store read them."""
        at = POSITIONS.c
        wanted = select(at.topic, at.missed).where(at.partition == partition, at.missed > 0).order_by(at.topic)
        return [(topic, count) for topic, count in self._connection.execute(wanted)]

    def listing(self, room: str, refreshes: Iterable[str], agent: str, before: int) -> Audience | None:
        """Whom these listings of a room name, and who joined since by the records `before` an offset (R-ROOM-4).

        None where the store has no page of them.
        """
        pages = list(self.of(ROOMS, "refresh", refreshes, ROOMS.c.room == room))
        named = [audience for audience in (self.audience(page.audience) for page in pages) if audience is not None]
        if not named:
            return None
        memberships = {reader: more for audience in named for reader, more in audience.memberships.items()}
        everybody = {reader for audience in named for reader in audience.readers}
        guests = {guest for audience in named for guest in audience.guests}
        workspaces = {w for page in pages if page.visibility == Visibility.WORKSPACE for w in page.workspaces or ()}
        base = listed(everybody, guests, workspaces, memberships)
        began = min(page.started_at for page in pages)
        since = [ROOMS.c.room == room, ROOMS.c.event == "joined", ROOMS.c.time >= began, ROOMS.c.offset < before]
        for row in self.rows(ROOMS, *since, or_(ROOMS.c.agent == agent, ROOMS.c.agent.is_(None))):
            guest = row.reader_kind != MemberKind.MEMBER
            full = () if guest else (namespace(row.reader), *row.workspaces)
            if row.reader_kind != MemberKind.SELF and not covers(base, row.reader, full):
                everybody.add(row.reader)
                guests |= {row.reader} if guest else set()
                memberships |= {} if guest else {row.reader: tuple(row.workspaces)}
        return listed(everybody, guests, workspaces, memberships)


def has_tenant(connection: Connection, tenant: str) -> bool:
    """Whether the store has anything of this tenant."""
    # The one column is named: a role that only reads may not select all of them (`roles`).
    of = (select(table.c.tenant).where(table.c.tenant == tenant).exists() for table in BY_MONTH.values())
    return bool(connection.scalar(select(or_(*of))))


def leaf_names(piece: Piece, ref: str) -> tuple[str, str]:
    """How a trace names a leaf: as it is, and as it was seen through the revision that the ref is (R-EVI-6)."""
    own = {
        "agent": piece.agent,
        "audience": piece.digest,
        "author": piece.author,
        "room": piece.room,
        "open": piece.open,
        "call": piece.call,
        "via": piece.via,
        "restrictions": list(piece.restrictions),
        "private": piece.private,
        "untrusted": piece.untrusted,
    }
    kind, _, name = ref.partition(":")
    seen = own | {"via": name} if kind == "revision" else own
    return digest(own)[:_LEAF], digest(seen)[:_LEAF]


def words_of(value: Any) -> tuple[str, ...] | None:
    """The names that a list column holds; None where somebody has altered the row so that it holds none."""
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else None


def _audience(row: Row[Any]) -> Audience | None:
    """None where somebody has altered the row so that it is no audience."""
    try:
        return Audience.model_validate(
            {
                "scope": row.scope,
                "workspaces": row.workspaces,
                "readers": row.readers,
                "guests": row.guests,
                "memberships": {reader: tuple(more) for reader, *more in row.memberships},
            }
        )
    except (TypeError, ValueError):
        return None
