"""Decides which tables a partition's state has, and by what their rows are found."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

from turngate.processors.leafrows import LeafRows
from turngate.processors.refnames import RefNames
from turngate.processors.rows import (
    Approval,
    Context,
    Deleted,
    EarlyResults,
    Evidence,
    Flag,
    Grant,
    Head,
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
#: Rows of a table that are put into fewer bytes at one tick: some milliseconds.
_TIDIED = 100


class Tables:
    """The tables of a partition. Keys are given beside each; all but the clock's begin with the tenant."""

    def __init__(self) -> None:
        self.state = State()
        self._ref_names = RefNames()
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
        self._squeezed_contexts = self._squeezed(Context, "permitted")
        self.contexts: Table[Context] = make("contexts", Context, self._squeezed_contexts)
        #: (tenant, request not seen yet)
        self.early_results: Table[EarlyResults] = make("early_results", EarlyResults)
        #: (tenant, turn)
        self._squeezed_turns = self._squeezed(Turn, "refs", ("leaves",))
        self.turns: Table[Turn] = make("turns", Turn, self._squeezed_turns)
        #: (tenant, agent, room, thread or empty)
        self.open_turns: Table[OpenTurns] = make("open_turns", OpenTurns)
        #: (tenant, arrival)
        self.waiting: Table[Waiting] = make("waiting", Waiting)
        #: (tenant, revision)
        held = self._squeezed(Revision, None, ("leaves", "seen"))
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
        #: (tenant,): the last link of its chain of traces
        self.heads: Table[Head] = make("heads", Head)
        #: (tenant, agent, room or empty)
        self.paused: Table[Flag] = make("paused", Flag)

    def tidy(self) -> None:
        """Hold some rows in fewer bytes, in a quiet moment."""
        self._squeezed_contexts.tidy(_TIDIED)
        self._squeezed_turns.tidy(_TIDIED)

    def _squeezed(self, kind: type[V], refs: str | None, leaves: tuple[str, ...] = ()) -> SqueezedRows[V]:
        """Rows that are held in few bytes, with their field of refs, if that is held apart, and those of leaves."""
        squeeze = Squeeze(kind, cast("TypeAdapter[V]", adapter(cast(Any, kind))))
        return SqueezedRows(squeeze, self.leaf_rows, self._ref_names, ref_field=refs, leaves=leaves)
