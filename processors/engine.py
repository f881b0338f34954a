"""Decides everything: a deterministic fold of one partition's log, all or nothing (R-RUN-1, R-RUN-6)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

from turngate.processors import contexts, gate, handling
from turngate.processors.agents import pause
from turngate.processors.approvals import approved
from turngate.processors.collecting import collect
from turngate.processors.errors import Refused, StateVersionError, TooLarge
from turngate.processors.keys import NO_KEYS, Keys
from turngate.processors.ledger import AsOf, Caches, Ledger
from turngate.processors.permits import destination
from turngate.processors.retention import Ages, Calendar, Endings, forget_room, sweep
from turngate.processors.rooms import page_arrived, prune, room_changed
from turngate.processors.rows import Policies, Waiting
from turngate.processors.settling import settle
from turngate.processors.state import Key, State
from turngate.processors.tables import Tables
from turngate.processors.waiting import Queue
from turngate.schemas import inputs
from turngate.schemas.catalog import INPUT_TOPICS, TICKS
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import RecordRefused, WriteRefused
from turngate.schemas.policy import Stale, parse_policy
from turngate.schemas.shapes import Code, Position, Reason
from turngate.schemas.unchecked import unchecked

#: Keys of the clock.
_NOW: Key = ("now",)
_ARRIVAL: Key = ("arrival",)


class Engine:
    """One partition's decisions. `apply` takes one record and gives everything that comes of it.

    `keys` make share codes; without any, nobody is offered to share. An exception that leaves `apply` leaves the state
    as it was (R-RUN-6).
    """

    #: Grows by one with every change after which the same log may lead to other decisions or other state.
    version: ClassVar[str] = "7"
    #: Whether a record can be written; whoever writes what comes of this engine says so.
    fits: Callable[[Record], bool]

    def __init__(self, keys: Keys = NO_KEYS) -> None:
        self.fits = lambda _: True
        self._keys = keys
        self._tables = Tables()
        self._queue = Queue(self._tables)
        self._calendar = Calendar(self._tables)
        self._ages = Ages(self._tables)
        self._endings = Endings(self._tables)
        self._indexed = frozenset((*self._ages.tables, *self._endings.tables))
        self._caches: dict[str, Caches] = {}
        self._holds: dict[str, int] = {}
        self._as_of: AsOf | None = None
        self._spots: dict[str, Position | None] = dict.fromkeys(INPUT_TOPICS)
        self._moved: set[str] = set()
        self._partition = 0

    @classmethod
    def restore(
        cls, entries: Iterable[tuple[bytes, bytes | None]], version: str | None, keys: Keys = NO_KEYS
    ) -> Engine:
        """An engine with the state of a checkpoint that `version` wrote (None: an empty one, or it was looked at).

        Raises `StateVersionError` where that is a newer version than this, and `ValueError` for entries that are none.
        """
        if version is not None and int(version) > int(cls.version):
            raise StateVersionError(f"the state was written by engine {version}; this is engine {cls.version}")
        made = cls(keys)
        made.state.load(entries)
        made._index()
        return made

    @property
    def state(self) -> State:
        """The partition's state."""
        return self._tables.state

    @property
    def now(self) -> int:
        """Stream time, in milliseconds since the epoch: the greatest broker timestamp seen (R-TIME-1)."""
        return self._tables.clock.get(_NOW) or 0

    def hold_ms(self) -> int:
        """The least `stale.hold` of any policy here, in milliseconds: how long a barrier may take (R-RUN-2)."""
        policies: Iterable[Policies] = self._tables.policies.rows.values()
        texts = {text for row in policies for _, text in row.documents}
        # One tenant's new policy must not cost reading those of all the others again.
        self._holds = {t: self._holds[t] if t in self._holds else parse_policy(t).stale.hold for t in texts}
        return min(self._holds.values(), default=Stale().hold)

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """The state entries that changed since this was last asked."""
        return self.state.take_changes()

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes = b"") -> list[Record]:
        """Apply one record at this place and broker time; `raw`, its bytes, are for a dead letter's digest alone."""
        return self._whole(position, timestamp, lambda: self._record(record, position, timestamp, raw, late=False))

    def late(self, record: Record, position: Position, timestamp: int, raw: bytes = b"") -> list[Record]:
        """Drop a draft whose barrier was not reached in time (R-RUN-2)."""
        return self._whole(position, timestamp, lambda: self._record(record, position, timestamp, raw, late=True))

    def refuse(self, tenant: str, schema: str | None, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """Note bytes that are no valid record; time moves on all the same (R-RUN-5)."""
        refused = Refused(Code.INVALID)
        return self._whole(position, timestamp, lambda: [self._dead(tenant, schema, position, timestamp, raw, refused)])

    def _whole(self, position: Position, timestamp: int, handle: Callable[[], list[Record]]) -> list[Record]:
        """Move time on, do what is due, then the record: all of it, or nothing."""
        mark, clock, topic = self.state.mark(), self._tables.clock, position.topic
        try:
            clock.put(_NOW, max(self.now, timestamp))
            clock.put(_ARRIVAL, self._arrival() + 1)
            clock.put(("position", topic), position.offset + 1)
            self._as_of = None
            self._partition = position.partition
            self._moved.add(topic)
            out = self._do_what_is_due()
            out += handle()
        except BaseException:
            self.state.undo(mark)
            self._index()
            raise
        written = self.state.written(self._indexed)
        self._ages.note(written)
        self._endings.note(written, self._ledger)
        self.state.keep()
        return out

    def _undo(self, mark: int) -> None:
        self.state.undo(mark)
        self._queue.index()
        self._as_of = None

    def _index(self) -> None:
        self._queue.index()
        self._calendar.index(self._ledger)
        self._ages.index()
        self._endings.index(self._ledger)
        self._as_of = None
        self._spots = dict.fromkeys(INPUT_TOPICS)
        self._moved = {topic for topic in INPUT_TOPICS if ("position", topic) in self._tables.clock}

    def _arrival(self) -> int:
        return self._tables.clock.get(_ARRIVAL) or 0

    def _positions(self) -> AsOf:
        """The position after the last record applied, of each topic that has had one (R-RUN-3)."""
        if self._as_of is None:
            for topic in self._moved:
                offset = self._tables.clock.rows["position", topic]
                self._spots[topic] = unchecked(Position, topic=topic, partition=self._partition, offset=offset)
            self._moved.clear()
            self._as_of = tuple(spot for spot in self._spots.values() if spot is not None)
        return self._as_of

    def _ledger(self, tenant: str) -> Ledger:
        caches = self._caches.get(tenant)
        if caches is None:
            caches = self._caches[tenant] = Caches(tenant)
        return Ledger(self._tables, caches, self.now, self._arrival(), self._positions, self._keys)

    def _do_what_is_due(self) -> list[Record]:
        """Everything due at the new time, before the record is handled, in order of arrival (R-TIME-4)."""
        now = self.now
        due: list[tuple[int, Key, Waiting | None]] = []
        due += [(waiting.since, key, waiting) for key, waiting in self._queue.due(now)]
        due += [(since, key, None) for since, key in self._calendar.ended(now, self._ledger)]
        out: list[Record] = []
        for _, key, waiting in sorted(due, key=lambda d: d[:2]):
            if waiting is None:
                ledger = self._ledger(key[0])
                forget_room(ledger, key[1])
                out += ledger.out
            else:
                out += self._go_on(key, waiting, handling.time_is_up)
        sweep(self._tables, self._ages, self._endings, now, self._ledger)
        return out

    def _room_listed(self, tenant: str, agent: str, room: str) -> list[Record]:
        """A listing has come: decide what waits for it, if the room is known and fresh now, or open (R-TURN-6)."""
        out: list[Record] = []
        for key, waiting in self._queue.in_room(tenant, agent, room):
            to, _, now = destination(self._ledger(tenant), agent, room)
            if to is None and not now.open:
                break
            out += self._go_on(key, waiting, handling.room_known)
        return out

    def _go_on(self, key: Key, waiting: Waiting, step: Callable[[Ledger, Waiting], Waiting | None]) -> list[Record]:
        """Decide what waited, which may then wait for something else; an error there is a drop (R-RUN-6)."""
        mark = self.state.mark()
        ledger = self._ledger(waiting.tenant)
        after: Waiting | None = None
        try:
            after = step(ledger, waiting)
            self._check(ledger.out)
        except MemoryError:
            raise
        except Exception:
            self.state.undo(mark)
            ledger = self._ledger(waiting.tenant)
            handling.failed(ledger, waiting)
        self._queue.drop(key, waiting)
        if after is not None:
            self._queue.add(replace(after, since=waiting.since))
        return ledger.out

    def _record(self, record: Record, position: Position, timestamp: int, raw: bytes, *, late: bool) -> list[Record]:
        topic = position.topic
        if topic == TICKS and isinstance(record, inputs.Tick):
            self._tables.tidy()
            return []
        mark = self.state.mark()
        try:
            handling.belongs(record, topic)
            return self._check(self._handle(record, topic, late=late))
        except MemoryError:
            raise
        except Refused as refused:
            self._undo(mark)
            return [self._refused(record, position, timestamp, raw, refused)]
        except Exception:
            self._undo(mark)
            return self._failed(record, position, timestamp, raw)

    def _check(self, out: list[Record]) -> list[Record]:
        """What comes of a record, if all of it can be written. Raises `TooLarge`."""
        if not all(map(self.fits, out)):
            raise TooLarge
        return out

    def _handle(self, record: Record, topic: str, *, late: bool) -> list[Record]:
        ledger = self._ledger(record.tenant)
        room = getattr(record, "room", None)
        if room is not None and not handling.forgotten(ledger, record):
            ledger.start(room)
        out = self._apply_to(ledger, record, topic, late=late)
        collect(ledger)
        if room is not None and (ledger.tenant, room) in self._tables.started:
            # What was done there may have moved its end, to an earlier time also.
            self._calendar.note_room(ledger, room)
        return out

    def _apply_to(self, ledger: Ledger, record: Record, topic: str, *, late: bool) -> list[Record]:
        # No record's type has another below it, and pydantic's isinstance takes a microsecond to say no.
        if type(record) is inputs.MembershipPage:
            return self._page(ledger, record)
        if type(record) is inputs.AgentPaused:
            return self._pause(ledger, record)
        if type(record) is inputs.ActionApproved:
            return self._approve(ledger, record)
        self._queue.add(handling.handle(ledger, record, topic, late=late))
        if type(record) is inputs.PolicyPublished:
            tightened = self._ledger(record.tenant)
            self._calendar.note_all(tightened)
            self._queue.shorten(record.tenant, lambda waiting: gate.ask_ends(tightened, waiting))
            self._ages.look_again()
            self._endings.index(self._ledger, record.tenant)
        return ledger.out

    def _pause(self, ledger: Ledger, record: inputs.AgentPaused) -> list[Record]:
        """Stop an agent, or let it go on; what waits of it is dropped (R-POL-4)."""
        out: list[Record] = []
        if pause(ledger, record):
            for key, waiting in self._queue.drafts_of(record.tenant, record.agent, record.room):
                out += self._go_on(key, waiting, lambda to, what: gate.end(to, what, Code.PAUSED))
        return out

    def _approve(self, ledger: Ledger, record: inputs.ActionApproved) -> list[Record]:
        """A yes has come: decide again what it lets out, in order of arrival, each against what is left of it."""
        out: list[Record] = []
        if approved(ledger, record):
            given = self._tables.approvals.rows[record.tenant, record.approval]
            for key, waiting in self._queue.asking(record.tenant, record.room):
                if gate.covered(self._ledger(record.tenant), waiting, record.approval, given):
                    out += self._go_on(key, waiting, gate.said_yes)
        return out

    def _page(self, ledger: Ledger, record: inputs.MembershipPage) -> list[Record]:
        listing = page_arrived(ledger, record)
        if listing is None:
            return ledger.out
        settle(ledger, record.agent, record.room, listing)
        prune(ledger, record.room)
        return ledger.out + self._room_listed(record.tenant, record.agent, record.room)

    def _failed(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """An error inside a decision is a drop and visible; of any other record, a dead letter (R-RUN-6, R-RUN-5).

        Where it was about who can read a room, that is known no more until the room is listed anew (R-ROOM-5).
        """
        ledger = self._ledger(record.tenant)
        if isinstance(record, inputs.TurnDrafted):
            gate.fail(ledger, record)
        elif isinstance(record, inputs.ContextRequested):
            contexts.context_failed(ledger, record)
        else:
            if isinstance(record, inputs.MembershipChanged | inputs.RoomChanged):
                ledger.start(record.room)
                room_changed(ledger, record)
                self._calendar.note_room(ledger, record.room)
            ledger.emit(self._refused(record, position, timestamp, raw, Refused(Code.DECISION_ERROR)))
        return ledger.out

    def _refused(self, record: Record, position: Position, timestamp: int, raw: bytes, refused: Refused) -> Record:
        """A memory write without authority is answered as a write (R-EVI-10); every other record is a dead letter."""
        if isinstance(record, inputs.MemoryWrite) and refused.code is Code.NOT_OPERATOR:
            reasons = (Reason(code=refused.code),)
            return WriteRefused(tenant=record.tenant, at=self.now, write=record.write, reasons=reasons)
        return self._dead(record.tenant, type(record).__name__, position, timestamp, raw, refused)

    def _dead(
        self, tenant: str, schema: str | None, position: Position, timestamp: int, raw: bytes, refused: Refused
    ) -> RecordRefused:
        """A dead letter points at the record and does not copy it (contract section 4)."""
        return RecordRefused(
            tenant=tenant,
            at=self.now,
            code=refused.code,
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            timestamp=timestamp,
            size=len(raw),
            sha256=hashlib.sha256(raw).hexdigest(),
            schema_=schema,
            detail=refused.detail,
        )
