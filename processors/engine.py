"""Decides everything: a deterministic fold of one partition's log (R-RUN-1)."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable

from turngate.processors import gate
from turngate.processors.errors import Refused, StateVersionError
from turngate.processors.evidence import deleted, observed, returned
from turngate.processors.ledger import AsOf, Caches, Ledger
from turngate.processors.publishing import published
from turngate.processors.rooms import membership_changed, page_arrived, prune, room_changed
from turngate.processors.rows import Flag, Policies, Tables, Waiting
from turngate.processors.settling import settle
from turngate.processors.state import Key, State
from turngate.processors.turns import result_came
from turngate.schemas import inputs
from turngate.schemas.catalog import INPUT_TOPICS, OPERATOR_TOPICS, TICKS
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import CommandRefused, RecordRefused, WriteRefused
from turngate.schemas.policy import Stale, parse_policy
from turngate.schemas.shapes import Code, Position, Reason

#: Records that count on the operators' topics only (R-EVI-10).
_OPERATORS = (inputs.GrantCommanded, inputs.AgentPaused, inputs.ErasureCommanded, inputs.PolicyPublished)


class Engine:
    """One partition's decisions. `apply` takes one record and gives everything that comes of it.

    All or nothing: an exception that leaves `apply` leaves the state as it was (R-RUN-6).
    """

    #: Grows by one with every change after which the same log may lead to other decisions or other state.
    version = "1"

    def __init__(self) -> None:
        self._tables = Tables()
        self._caches: dict[str, Caches] = {}
        self._due: list[tuple[int, int, Key]] = []
        self._in_room: dict[Key, dict[Key, Waiting]] = {}
        self._as_of: AsOf | None = None
        self._spots: dict[str, Position] = {}
        self._partition = 0

    @classmethod
    def restore(cls, entries: Iterable[tuple[bytes, bytes]], version: str | None) -> Engine:
        """An engine with the state of a checkpoint that `version` wrote (None: an empty one).

        Raises `StateVersionError` where that is a newer version than this, and `ValueError` for entries that are none.
        """
        if version is not None and int(version) > int(cls.version):
            raise StateVersionError(f"the state was written by engine {version}; this is engine {cls.version}")
        made = cls()
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
        return self._tables.clock.get(("now",)) or 0

    def hold_ms(self) -> int:
        """The least `stale.hold` of any policy here, in milliseconds: how long a barrier may take (R-RUN-2)."""
        policies: Iterable[Policies] = self._tables.policies.rows.values()
        holds = [parse_policy(text).stale.hold for row in policies for _, text in row.documents]
        return min(holds, default=Stale().hold)

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
        mark = self.state.mark()
        try:
            clock = self._tables.clock
            clock.put(("now",), max(self.now, timestamp))
            clock.put(("arrival",), self._arrival() + 1)
            clock.put(("position", position.topic), position.offset + 1)
            self._as_of = None
            self._partition = position.partition
            out = self._do_what_is_due()
            out += handle()
        except BaseException:
            self.state.undo(mark)
            self._index()
            raise
        self.state.keep()
        return out

    def _arrival(self) -> int:
        return self._tables.clock.get(("arrival",)) or 0

    def _positions(self) -> AsOf:
        """The position after the last record applied, of each topic that has had one (R-RUN-3)."""
        if self._as_of is None:
            self._as_of = tuple(
                self._spot(topic) for topic in INPUT_TOPICS if ("position", topic) in self._tables.clock
            )
        return self._as_of

    def _spot(self, topic: str) -> Position:
        offset = self._tables.clock.rows["position", topic]
        spot = self._spots.get(topic)
        if spot is None or spot.offset != offset or spot.partition != self._partition:
            spot = self._spots[topic] = Position(topic=topic, partition=self._partition, offset=offset)
        return spot

    def _ledger(self, tenant: str) -> Ledger:
        caches = self._caches.setdefault(tenant, Caches())
        return Ledger(self._tables, tenant, caches, self.now, self._arrival(), self._positions)

    # What waits

    def _index(self) -> None:
        """Find anew what waits, by time and by room."""
        self._due, self._in_room, self._as_of = [], {}, None
        for key, waiting in sorted(self._tables.waiting.rows.items(), key=lambda row: row[1].since):
            self._note(key, waiting)

    def _note(self, key: Key, waiting: Waiting) -> None:
        heapq.heappush(self._due, (waiting.until, waiting.since, key))
        self._in_room.setdefault((waiting.tenant, waiting.agent, waiting.room), {})[key] = waiting

    def _wait(self, waiting: Waiting | None) -> None:
        if waiting is not None:
            key = (waiting.tenant, f"{waiting.since:020}")
            self._tables.waiting.put(key, waiting)
            self._note(key, waiting)

    def _waits_no_more(self, key: Key, waiting: Waiting) -> None:
        self._tables.waiting.drop(key)
        room = (waiting.tenant, waiting.agent, waiting.room)
        self._in_room[room].pop(key)
        if not self._in_room[room]:
            del self._in_room[room]

    def _do_what_is_due(self) -> list[Record]:
        """Everything due, in order of the arrival of what made it wait (R-TIME-4)."""
        due: list[tuple[int, Key]] = []
        while self._due and self._due[0][0] <= self.now:
            _, since, key = heapq.heappop(self._due)
            if key in self._tables.waiting:
                due.append((since, key))
        out: list[Record] = []
        for _, key in sorted(due):
            waiting = self._tables.waiting.rows[key]
            out += self._guarded(waiting, gate.time_is_up)[0]
            self._waits_no_more(key, waiting)
        return out

    def _try_again(self, tenant: str, agent: str, room: str) -> list[Record]:
        """A listing has come: decide what waits for it, in order of arrival (R-TURN-6)."""
        out: list[Record] = []
        for key, waiting in list(self._in_room.get((tenant, agent, room), {}).items()):
            records, ended = self._guarded(waiting, gate.try_again)
            out += records
            if ended:
                self._waits_no_more(key, waiting)
        return out

    def _guarded(self, waiting: Waiting, step: Callable[[Ledger, Waiting], bool]) -> tuple[list[Record], bool]:
        """Decide what waits, and say whether it waits no more; an error there is a drop (R-RUN-6)."""
        mark = self.state.mark()
        ledger = self._ledger(waiting.tenant)
        try:
            return ledger.out, step(ledger, waiting)
        except MemoryError:
            raise
        except Exception:
            self.state.undo(mark)
            ledger = self._ledger(waiting.tenant)
            gate.wait_failed(ledger, waiting)
            return ledger.out, True

    # Records

    def _record(self, record: Record, position: Position, timestamp: int, raw: bytes, *, late: bool) -> list[Record]:
        tenant, schema = record.tenant, type(record).__name__
        if isinstance(record, inputs.Tick) and position.topic == TICKS:
            return []
        mark = self.state.mark()
        try:
            _belongs(record, position.topic)
            ledger = self._ledger(tenant)
            room = getattr(record, "room", None)
            if room is not None:
                ledger.start(room)
            return self._handle(ledger, record, late)
        except MemoryError:
            raise
        except Refused as refused:
            self._undo(mark)
            if isinstance(record, inputs.MemoryWrite) and refused.code is Code.NOT_OPERATOR:
                return [
                    WriteRefused(tenant=tenant, at=self.now, write=record.write, reasons=(Reason(code=refused.code),))
                ]
            return [self._dead(tenant, schema, position, timestamp, raw, refused)]
        except Exception:
            self._undo(mark)
            return self._failed(record, position, timestamp, raw)

    def _undo(self, mark: int) -> None:
        self.state.undo(mark)
        self._index()

    def _failed(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """An error inside a decision is a drop and visible; of any other record, a dead letter (R-RUN-6, R-RUN-5)."""
        ledger = self._ledger(record.tenant)
        if isinstance(record, inputs.TurnDrafted):
            gate.fail(ledger, record)
        elif isinstance(record, inputs.ContextRequested):
            gate.context_failed(ledger, record)
        else:
            refused = Refused(Code.DECISION_ERROR)
            ledger.emit(self._dead(record.tenant, type(record).__name__, position, timestamp, raw, refused))
        return ledger.out

    def _handle(self, ledger: Ledger, record: Record, late: bool) -> list[Record]:
        match record:
            case inputs.MembershipPage():
                return self._page(ledger, record)
            case inputs.MembershipChanged():
                membership_changed(ledger, record)
            case inputs.RoomChanged():
                room_changed(ledger, record)
            case inputs.MessageObserved():
                observed(ledger, record)
            case inputs.MessageDeleted():
                deleted(ledger, record)
            case inputs.ToolReturned():
                if returned(ledger, record):
                    result_came(ledger, record)
            case inputs.ContextRequested():
                self._wait(gate.context_requested(ledger, record, late=late))
            case inputs.TurnDrafted():
                self._wait(gate.turn_drafted(ledger, record, late=late))
            case inputs.PolicyPublished():
                published(ledger, record)
            case inputs.AgentPaused():
                self._pause(ledger, record)
            case _:
                _not_yet(ledger, record)
        return ledger.out

    def _page(self, ledger: Ledger, record: inputs.MembershipPage) -> list[Record]:
        listing = page_arrived(ledger, record)
        if listing is None:
            return ledger.out
        settle(ledger, record.agent, record.room, listing)
        prune(ledger, record.room)
        return ledger.out + self._try_again(record.tenant, record.agent, record.room)

    def _pause(self, ledger: Ledger, record: inputs.AgentPaused) -> None:
        """Stop an agent, or let it go on; what waits of it is dropped (R-POL-4)."""
        command = (record.tenant, record.command)
        if command in self._tables.commands:
            return  # told again, it must not undo what was commanded since
        self._tables.commands.put(command, Flag(self.now))
        key = (record.tenant, record.agent, record.room or "")
        if not record.paused:
            self._tables.paused.drop(key)
            return
        if key not in self._tables.paused:
            self._tables.paused.put(key, Flag(self.now))
        for waits, waiting in sorted(self._tables.waiting.rows.items(), key=lambda row: row[1].since):
            mine = waiting.tenant == record.tenant and waiting.agent == record.agent
            if mine and waiting.request is None and record.room in (None, waiting.room):
                ledger.out += self._guarded(waiting, gate.stop)[0]
                self._waits_no_more(waits, waiting)

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


def _belongs(record: Record, topic: str) -> None:
    """Authority is by topic (R-EVI-10): raises `Refused` for a record on a topic that is not its own."""
    if isinstance(record, INPUT_TOPICS[topic]):
        return
    operators = topic in OPERATOR_TOPICS or isinstance(record, _OPERATORS)
    raise Refused(Code.NOT_OPERATOR if operators else Code.INVALID)


def _not_yet(ledger: Ledger, record: Record) -> None:
    """Memory, sharing and erasure are not there yet: whoever asks for them is told so, and nothing is half done."""
    reasons = (Reason(code=Code.INVALID),)
    if isinstance(record, inputs.MemoryWrite):
        ledger.emit(WriteRefused(tenant=ledger.tenant, at=ledger.now, write=record.write, reasons=reasons))
    elif isinstance(record, inputs.SharingRequested | inputs.GrantCommanded):
        command = record.request if isinstance(record, inputs.SharingRequested) else record.command
        ledger.emit(CommandRefused(tenant=ledger.tenant, at=ledger.now, command=command, status=422, reasons=reasons))
    elif isinstance(record, inputs.ErasureCommanded):
        raise Refused(Code.INVALID)
