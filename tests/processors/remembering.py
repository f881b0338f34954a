"""Decides how the tests here make an engine remember: writes, grants, codes, and whether a text is still kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.processors.feed import ALEX, C1, D1, KIM, Feed
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS, Keys
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import CommandRefused, RevisionRecorded, SharingOffered, WriteRefused
from turngate.schemas.shapes import Member, MemberKind

#: The keys of the tests once they were rotated: what is made now has another key, what was made has the old one.
ROTATED = Keys(TEST_KEYS.secrets | {"new": {"*": b"n" * 32}}, "new")
#: A text that must be findable wherever it is kept.
SECRET = "the-heron-flies-at-nine"


@dataclass
class Memories(Feed):
    engine: Engine = field(default_factory=lambda: Engine(TEST_KEYS))
    writes: int = 0

    def write(self, memory: str, revision: str, after: int = 1000, **fields: Any) -> list[Record]:
        """A note by distillation in D1, unless the fields say otherwise."""
        self.writes += 1
        base = {"agent": "mesh", "write": f"w{self.writes}", "memory": memory, "revision": revision, "op": "create"}
        base |= {"by": "distill", "kind": "note", "room": D1, "text": SECRET}
        return self.make(inputs.MemoryWrite, after, **(base | fields))

    def share(self, request: str, revision: str, after: int = 1000, **fields: Any) -> list[Record]:
        base = {"agent": "mesh", "request": request, "revision": revision, "room": D1, "audience": "public"}
        return self.make(inputs.SharingRequested, after, **(base | fields))

    def code(self, request: str, revision: str, **fields: Any) -> str:
        offers = [r for r in self.share(request, revision, **fields) if isinstance(r, SharingOffered)]
        return offers[0].code

    def grant(self, command: str, revision: str, after: int = 1000, **fields: Any) -> list[Record]:
        base = {"agent": "mesh", "command": command, "operator": "ops", "op": "grant", "revision": revision}
        base |= {"memory": revision.partition("@")[0], "audience": "public"}
        return self.make(inputs.GrantCommanded, after, **(base | fields))

    def revoke(self, command: str, grant: str, **fields: Any) -> list[Record]:
        base = {"agent": "mesh", "command": command, "operator": "ops", "op": "revoke", "grant": grant}
        return self.make(inputs.GrantCommanded, **(base | fields))

    def prove(self, proof: str, reader: str, subject: str = "alex", lasts: int = 3_600_000) -> list[Record]:
        fields = {"agent": "mesh", "proof": proof, "reader": reader, "subject": subject}
        return self.make(inputs.AccountProven, **fields, expires_at=self.now + 1_000 + lasts)

    def erase(self, command: str, **what: str) -> list[Record]:
        return self.make(inputs.ErasureCommanded, command=command, operator="ops", **what)

    def restart(self, keys: Keys = TEST_KEYS) -> None:
        self.engine = Engine.restore(list(self.engine.state.entries()), Engine.version, keys)

    def holds(self, text: str) -> bool:
        """Whether any entry of the state has this text in it, whatever its case."""
        return any(text.lower().encode() in (key + value).lower() for key, value in self.engine.state.entries())


def remembering(*extra: str) -> Memories:
    """Alex's direct room, a room of two, a message in each, and a note of Alex's words."""
    feed = Memories()
    feed.policy(POLICY + "".join(extra))
    feed.listing(D1, [ALEX, Member(reader="slack:T1/UBOT", kind=MemberKind.SELF)], info={"kind": "direct"})
    feed.listing(C1, [ALEX, KIM])
    feed.message(D1, 1)
    feed.message(C1, 1, author=KIM)
    feed.write("trip", "trip@1", sources=[f"message:{D1}/1"])
    feed.make(inputs.SensitivityAssessed, write="w1", label="ordinary")
    return feed


POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}, scout: {accounts: ["slack:T1/USCOUT"]}}
freshness: {destination: 12h, observation: 24h}
tools:
  wiki: {audience: {workspace: "slack:T1"}}
  web: {audience: public, untrusted: true}
"""


#: An operation of the house that writes, and a skill that pays an invoice with it, once.
PAYING = """
operations: {crm.refund: {access: write, audience: internal}}
skills: {pay: {operation: crm.refund, params: {invoice: {type: id, set_by: [llm]}}, unique: $params.invoice}}
"""


def pay(invoice: str) -> dict[str, object]:
    """The action that pays an invoice."""
    return {"operation": "crm.refund", "skill": "pay", "params": [{"name": "invoice", "value": invoice}]}


def refused(out: list[Record]) -> list[str]:
    """The codes of refused writes and commands in these records."""
    return [reason.code for r in out if isinstance(r, WriteRefused | CommandRefused) for reason in r.reasons]


def states(out: list[Record]) -> list[tuple[str, str]]:
    """Each revision told of in these records, and its state."""
    return [(r.revision, r.state.value) for r in out if isinstance(r, RevisionRecorded)]
