"""Decides what one tenant's records are applied to: its tables, its caches, the stream time, and what is emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from turngate.processors.audience import KEYED_UNKNOWN, Keyed, Sets
from turngate.processors.keys import Keys
from turngate.processors.policy import Effective, effective
from turngate.processors.recent import Recent, RecentBy
from turngate.processors.rows import LeafRow, Policies, Room, RoomLog, Started
from turngate.processors.tables import Tables
from turngate.schemas.canonical import canonical, digest
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import Because, RefreshRequested
from turngate.schemas.policy import Policy, parse_policy
from turngate.schemas.shapes import Audience, Code, Leaf, Position

AsOf = tuple[Position, ...]
#: Of a leaf's SHA-256. That is enough against accident; of two leaves that share it the second is refused, so that
#: making some is of no use either.
LEAF_BYTES = 16
_LEAF_FIELDS = tuple(field.name for field in fields(LeafRow))
#: What the codes against a leaf depend on besides it: agent, room, audience's key, whether its own words may be said.
Asker = tuple[str, str, str, bool]


class Against(NamedTuple):
    """The codes against a leaf but for grants and proofs, and whether R-AUD-10 was needed to permit it."""

    codes: tuple[Code, ...] = ()
    own_words: bool = False


@dataclass(slots=True)
class Caches:
    """What can be worked out again from a tenant's tables and depends on values that never change."""

    tenant: str
    sets: Sets = field(default_factory=Sets)
    policies: dict[str, Policy] = field(default_factory=dict)
    effective: Recent[tuple[int, int, str], Effective] = field(default_factory=lambda: Recent(100))
    leaves: Recent[LeafRow, str] = field(default_factory=lambda: Recent(10_000))
    #: What leaves arm, by room.
    arms: RecentBy[str, str, int] = field(default_factory=lambda: RecentBy(20_000))
    via: Recent[tuple[str, str], str] = field(default_factory=lambda: Recent(50_000))
    shapes: Recent[str, Leaf] = field(default_factory=lambda: Recent(2_000))
    #: What refs of which a destination may hear every leaf are in a trace, by agent: their leaves, the shape, its JSON.
    traced: RecentBy[str, str, tuple[tuple[str, ...], Any, Any]] = field(default_factory=lambda: RecentBy(5_000))
    #: The positions at the last decision, each with its JSON.
    placed: list[tuple[Position, Any]] = field(default_factory=list)
    listed: Recent[tuple[str, str], tuple[Any, Any, Any]] = field(default_factory=lambda: Recent(2_000))
    bounds: Recent[tuple[str, str], tuple[Any, Any, Any, Any]] = field(default_factory=lambda: Recent(2_000))
    standings: Recent[tuple[str, str], tuple[Any, Any, Any, Any, Any]] = field(default_factory=lambda: Recent(2_000))
    codes: RecentBy[Asker, str, Against] = field(default_factory=lambda: RecentBy(100_000))
    remembered: dict[str, Any] = field(default_factory=dict)


class Ledger:
    """One tenant in one partition, while a record is applied."""

    def __init__(
        self,
        tables: Tables,
        caches: Caches,
        now: int,
        arrival: int,
        as_of: Callable[[], AsOf],
        keys: Keys,
    ) -> None:
        self.tables = tables
        self.caches = caches
        self.tenant = caches.tenant  # one string for all keys
        self.now = now
        self.arrival = arrival
        self.as_of = as_of
        self.keys = keys
        self.key = (caches.tenant,)
        self._policies: dict[str | None, Effective] = {}
        self._only: Effective | None = None  # every room has the only one there is
        self.out: list[Record] = []
        #: What was worked out of a turn while this one record is applied, in which its sources do not change.
        self.exposure: dict[str, Any] = {}
        #: The same of refs: what one agent has of each. None while sources may change.
        self.found: dict[str, Any] | None = None
        self.found_by = ""
        #: What a decision's trace is made of: the room as it was last looked up, who was to hear, and of each ref that
        #: was compared its leaves and what it came to.
        self.stood: Any = None
        self.hearer: Any = None
        self.compared: dict[str, tuple[tuple[str, ...], Any]] = {}

    def emit(self, record: Record) -> None:
        """Add an output record."""
        self.out.append(record)

    # Policy

    def start(self, room: str) -> None:
        """A room starts with the first record that names it, and keeps the policy it started with (R-POL-1)."""
        key = (self.tenant, room)
        if key not in self.tables.started:
            self.tables.started.put(key, Started(len(self.documents()), self.now, self.arrival))
            self._policies.pop(room, None)

    def began(self, room: str) -> int:
        """When the room started, in ms; what was read or armed there before that went with it then (R-RET-1)."""
        row = self.tables.started.get((self.tenant, room))
        return 0 if row is None else row.at

    def active(self, room: str | None) -> None:
        """Something was said, read, asked, drafted or written in a room: it is active by that (R-RET-1)."""
        row = None if room is None else self.tables.started.get((self.tenant, room))
        if room is not None and row is not None:
            now_active = Started(row.policies, row.at, row.arrival, self.now, self.arrival)
            self.tables.started.put((self.tenant, room), now_active)

    def policy(self, room: str | None) -> Effective:
        """The policy in force for a room; without one, or for a room that has not started, the latest alone."""
        if self._only is not None:
            return self._only
        found = self._policies.get(room)
        if found is None:
            found = self._policies[room] = self._effective(room)
            if len(self.documents()) <= 1:
                self._only = found
        return found

    def publish(self, documents: tuple[tuple[int, str], ...]) -> None:
        """Put these versions of the policy in force, in the place of those before."""
        self.tables.policies.put(self.key, Policies(documents))
        self._policies.clear()
        self._only = None

    def _effective(self, room: str | None) -> Effective:
        documents = self.documents()
        started = None if room is None else self.tables.started.get((self.tenant, room))
        first = len(documents) if started is None else started.policies
        first = max(first, 1) - 1  # a room that started before the first policy is pinned to that
        newest = documents[-1][1] if documents else ""
        key = (first, len(documents), newest)
        found = self.caches.effective.get(key)
        if found is None:
            versions = tuple(self._parsed(document) for _, document in documents[first:])
            found = self.caches.effective[key] = effective(versions)
        return found

    def documents(self) -> tuple[tuple[int, str], ...]:
        """The versions that were published, as (version, document)."""
        row: Policies | None = self.tables.policies.get(self.key)
        return () if row is None else row.documents

    def _parsed(self, document: str) -> Policy:
        found = self.caches.policies.get(document)
        if found is None:
            found = self.caches.policies[document] = parse_policy(document)
        return found

    # Rooms

    def room(self, agent: str, room: str) -> Room:
        """The room as the agent knows it."""
        return self.tables.rooms.get((self.tenant, agent, room)) or Room()

    def room_log(self, room: str) -> RoomLog:
        """What happened to the room."""
        return self.tables.room_logs.get((self.tenant, room)) or RoomLog()

    def ask(self, agent: str, room: str, because: Because, need_by: int, *, again: bool = False) -> None:
        """Emit `RefreshRequested`, unless one is less than `stale.hold` old (R-TURN-6), or `again` (R-AUD-9).

        For an agent that the policy does not name nobody lists a room (R-ROOM-7).
        """
        row, settings = self.room(agent, room), self.policy(room).settings
        if agent not in settings.agents:
            return
        hold = settings.stale.hold
        if not again and row.asked_at is not None and self.now - row.asked_at < hold:
            return
        self.put_room(agent, room, asked_at=self.now)
        self.emit(
            RefreshRequested(tenant=self.tenant, at=self.now, agent=agent, room=room, because=because, need_by=need_by)
        )

    def put_room(self, agent: str, room: str, **changes: object) -> Room:
        """Change the agent's row of a room, and note in the room's log that the agent has one."""
        made: Room = replace(self.room(agent, room), **changes)  # type: ignore[arg-type]
        self.tables.rooms.put((self.tenant, agent, room), made)
        log = self.room_log(room)
        if agent not in log.agents:
            self.tables.room_logs.put((self.tenant, room), replace(log, agents=(*log.agents, agent)))
        return made

    def nothing_changes(self, agent: str) -> None:
        """No source changes any more while this record is applied; what the agent has of each is asked once."""
        if self.found is None:
            self.found, self.found_by = {}, agent

    # Leaves

    def audience(self, key: str) -> Audience:
        """The audience of a digest."""
        found = self.tables.audiences.get((self.tenant, key))
        if found is None:
            raise LookupError("a leaf names an audience that is not there")
        return found

    def keep_audience(self, audience: Keyed) -> str:
        """Remember an audience under its address."""
        if (self.tenant, audience.key) not in self.tables.audiences:
            self.tables.audiences.put((self.tenant, audience.key), audience.audience)
        return audience.key

    def keep_leaf(self, leaf: LeafRow) -> str:
        """Remember a leaf; its digest, which is of its canonical JSON with the audience's digest for the audience.

        Raises `ValueError` where another leaf has that digest already, so that none is ever taken for another.
        """
        key = self.leaf_id(leaf)
        known = self.tables.leaves.get((self.tenant, key))
        if known is None:
            self.tables.leaves.put((self.tenant, key), leaf)
        elif known != leaf:
            raise ValueError("two leaves of one digest")
        return key

    def leaf_id(self, leaf: LeafRow) -> str:
        """Under what a leaf is, or would be, remembered."""
        key = self.caches.leaves.get(leaf)
        if key is None:
            whole = digest({name: getattr(leaf, name) for name in _LEAF_FIELDS if name != "each" or leaf.each})
            key = self.caches.leaves[leaf] = whole[: 2 * LEAF_BYTES]
        return key

    def forget_leaves(self) -> None:
        """Leaves were removed: what was worked out of them goes, lest it be taken for what another of their name is."""
        self.caches.via.clear()
        self.caches.shapes.clear()
        self.caches.codes.clear()
        self.caches.arms.clear()

    def seen_via(self, key: str, revision: str, *, keep: bool) -> str:
        """The leaf as it was seen through a revision (R-EVI-6), which is remembered only where it is to be kept."""
        found = self.caches.via.get((key, revision))
        if found is None:
            found = self.caches.via[key, revision] = self.leaf_id(replace(self.leaf(key), via=revision))
        if keep and (self.tenant, found) not in self.tables.leaves:
            self.keep_leaf(replace(self.leaf(key), via=revision))
        return found

    def unknown_leaf(self, agent: str, room: str | None = None) -> str:
        """The leaf of evidence that could not be established."""
        return self.keep_leaf(LeafRow(agent=agent, audience=self.keep_audience(KEYED_UNKNOWN), room=room))

    def leaf(self, key: str) -> LeafRow:
        """The leaf of a digest."""
        found = self.tables.leaves.get((self.tenant, key))
        if found is None:
            raise LookupError("evidence names a leaf that is not there")
        return found

    def calls(self, keys: Iterable[str]) -> list[str]:
        """The tool calls whose values are in these leaves. Raises `LookupError` for a leaf that is not there."""
        get, tenant = self.tables.leaves.get, self.tenant
        found: dict[str, None] = {}
        for key in keys:
            row = get((tenant, key))
            if row is None:
                raise LookupError("evidence names a leaf that is not there")
            if row.call is not None:
                found[row.call] = None
        return list(found)

    def leaf_shapes(self, keys: Iterable[str]) -> tuple[Leaf, ...]:
        """Leaves as records carry them, each once, in the order of their canonical JSON."""
        found = [self.leaf_shape(key) for key in dict.fromkeys(keys)]
        if len(found) > 1:
            found.sort(key=lambda leaf: canonical(leaf.model_dump(mode="json")))
        return tuple(found)

    def leaf_shape(self, key: str) -> Leaf:
        """The leaf of a digest as records carry it."""
        found = self.caches.shapes.get(key)
        if found is None:
            row = self.leaf(key)
            found = Leaf.model_construct(
                **{n: getattr(row, n) for n in Leaf.model_fields if n != "audience"},
                audience=self.audience(row.audience),
            )
            self.caches.shapes[key] = found
        return found
