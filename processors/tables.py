"""Decides which tables a partition's state has, and by what their rows are found."""

from __future__ import annotations

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
from turngate.processors.state import State, Table
from turngate.schemas.inputs import MemoryWrite
from turngate.schemas.shapes import Audience


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
        self.leaves: Table[LeafRow] = make("leaves", LeafRow)
        #: (tenant, ref, agent): evidence that was forgotten with its room → until when its id is known
        self.gone: Table[int] = make("gone", int)
        #: (tenant, ref, agent)
        self.evidence: Table[Evidence] = make("evidence", Evidence)
        #: (tenant, ref)
        self.known_by: Table[tuple[str, ...]] = make("known_by", tuple[str, ...])
        #: (tenant, ref)
        self.deleted: Table[Deleted] = make("deleted", Deleted)
        #: (tenant, request)
        self.contexts: Table[Context] = make("contexts", Context)
        #: (tenant, request not seen yet)
        self.early_results: Table[EarlyResults] = make("early_results", EarlyResults)
        #: (tenant, turn)
        self.turns: Table[Turn] = make("turns", Turn)
        #: (tenant, agent, room, thread or empty)
        self.open_turns: Table[OpenTurns] = make("open_turns", OpenTurns)
        #: (tenant, arrival)
        self.waiting: Table[Waiting] = make("waiting", Waiting)
        #: (tenant, revision)
        self.revisions: Table[Revision] = make("revisions", Revision)
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
