"""Decides which tables a partition's state has, and by what their rows are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

from turngate.processors.leafrows import LeafRows
from turngate.processors.rows import (
    Approval,
    Context,
    Deleted,
    EarlyResults,
    Evidence,
    Flag,
    Grant,
    LeafRow,
    Memory,
    Offer,
    OpenTurns,
    Page,
    Policies,
    Proof,
    ReadBy,
    Refresh,
    Revision,
    Room,
    RoomLog,
    Roster,
    Started,
    Taint,
    Turn,
    Waiting,
)
from turngate.processors.shelves import EvidenceRows
from turngate.processors.squeezed import Squeeze, SqueezedRows
from turngate.processors.state import State, Table, adapter
from turngate.schemas.inputs import MemoryWrite
from turngate.schemas.shapes import Audience

V = TypeVar("V")


class Tables:
    """The tables of a partition. Keys are given beside each; all but the clock's begin with the tenant."""

    def __init__(self) -> None:
        self.state = State()
        make = self.state.table
        #: (`now`,) (`arrival`,) and (`position`, topic) → a number.
        self.clock: Table[int] = make("clock", int)
        #: (tenant,)
        self.policies: Table[Policies] = make("policies", Policies)
        #: (tenant, room)
        self.started: Table[Started] = make("started", Started)
        #: (tenant, agent, room)
        self.rooms: Table[Room] = make("rooms", Room)
        #: (tenant, agent, room): of the room's listing
        self.rosters: Table[Roster] = make("rosters", Roster)
        #: (tenant, room)
        self.room_logs: Table[RoomLog] = make("room_logs", RoomLog)
        #: (tenant, refresh)
        self.refreshes: Table[Refresh] = make("refreshes", Refresh)
        #: (tenant, refresh, page)
        self.pages: Table[Page] = make("pages", Page)
        #: (tenant, digest)
        self.audiences: Table[Audience] = make("audiences", Audience)
        #: (tenant, digest)
        self.leaf_rows = LeafRows(LeafRow, adapter(LeafRow))
        self.leaves: Table[LeafRow] = make("leaves", LeafRow, self.leaf_rows)
        #: (tenant,): how many leaves there will be when they are looked through again
        self.looked_through: Table[int] = make("looked_through", int)
        #: (tenant, ref, agent): evidence that was forgotten with its room → until when its id is known
        self.gone: Table[int] = make("gone", int)
        #: (tenant, ref, agent)
        self.shelves = EvidenceRows(Evidence, adapter(Evidence), self.leaf_rows)
        self.evidence: Table[Evidence] = make("evidence", Evidence, self.shelves)
        #: (tenant, ref)
        self.deleted: Table[Deleted] = make("deleted", Deleted)
        #: (tenant, request)
        self.contexts: Table[Context] = make("contexts", Context, self._squeezed(Context))
        #: (tenant, request not seen yet)
        self.early_results: Table[EarlyResults] = make("early_results", EarlyResults)
        #: (tenant, turn)
        self.turns: Table[Turn] = make("turns", Turn, self._squeezed(Turn, lambda turn: turn.leaves))
        #: (tenant, agent, room, thread or empty)
        self.open_turns: Table[OpenTurns] = make("open_turns", OpenTurns)
        #: (tenant, arrival)
        self.waiting: Table[Waiting] = make("waiting", Waiting)
        #: (tenant, revision)
        held = self._squeezed(Revision, lambda revision: (*revision.leaves, *revision.seen), pressed=True)
        self.revisions: Table[Revision] = make("revisions", Revision, held)
        #: (tenant, memory)
        self.memories: Table[Memory] = make("memories", Memory)
        #: (tenant, write): one that was taken up or refused
        self.writes: Table[Flag] = make("writes", Flag)
        #: (tenant, write): one that waits for its assessment
        self.assessing: Table[MemoryWrite] = make("assessing", MemoryWrite)
        #: (tenant, agent, reader): revisions about which to ask their author
        self.questions: Table[tuple[str, ...]] = make("questions", tuple[str, ...])
        #: (tenant, grant)
        self.grants: Table[Grant] = make("grants", Grant)
        #: (tenant, revision): its grants, oldest first
        self.grants_of: Table[tuple[str, ...]] = make("grants_of", tuple[str, ...])
        #: (tenant, request)
        self.offers: Table[Offer] = make("offers", Offer)
        #: (tenant, tag of a code): its request
        self.codes: Table[str] = make("codes", str)
        #: (tenant, `OPERATORS`, command), (tenant, `REQUESTS`, request) or (tenant, message, agent): handled
        self.commands: Table[Flag] = make("commands", Flag)
        #: (tenant, proof)
        self.proofs: Table[Proof] = make("proofs", Proof)
        #: (tenant, agent, reader): its proofs
        self.proofs_of: Table[tuple[str, ...]] = make("proofs_of", tuple[str, ...])
        #: (tenant, agent, room, thread or empty)
        self.taint: Table[Taint] = make("taint", Taint)
        #: (tenant, approval)
        self.approvals: Table[Approval] = make("approvals", Approval)
        #: (tenant, fingerprint): the approvals of it, oldest first
        self.approved: Table[tuple[str, ...]] = make("approved", tuple[str, ...])
        #: (tenant, skill, key): the turn that holds it (R-ACT-4)
        self.claims: Table[str] = make("claims", str)
        #: (tenant, agent, room, operation): when the room read it last (R-ACT-5)
        self.reads: Table[int] = make("reads", int)
        #: (tenant, room): how many readings of it have values to look for
        self.reads_in: Table[int] = make("reads_in", int)
        #: (tenant, room, place from 0)
        self.read_by: Table[ReadBy] = make("read_by", ReadBy)
        #: (tenant, agent, room or empty)
        self.paused: Table[Flag] = make("paused", Flag)

    def _squeezed(
        self, kind: type[V], leaves: Callable[[V], Iterable[str]] = lambda _: (), *, pressed: bool = False
    ) -> SqueezedRows[V]:
        """Rows that are held as JSON, or pressed, with the leaves that each names."""
        written: TypeAdapter[V] = adapter(cast(Any, kind))
        return SqueezedRows(Squeeze(kind, written), leaves, self.leaf_rows, pressed=pressed)
