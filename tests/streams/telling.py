"""Stories told record by record to an embedded log with the product's engine on it."""

from __future__ import annotations

from typing import Any

from turngate.processors.keys import TEST_KEYS
from turngate.schemas.catalog import RECORDS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import ErasureCommanded, Record
from turngate.schemas.outputs import ErasureApplied
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog

CODEC = Codec()
EPOCH = 1_767_225_600_000
ALEX, KIM, D1, C1 = "slack:T1/UALEX", "slack:T1/UKIM", "slack:T1/D1", "slack:T1/C1"
POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}}
tools: {wiki: {audience: {workspace: "slack:T1"}}, crm: {audience: {readers: ["slack:T1/UALEX"]}}}
"""


class World:
    """An embedded log in a file, and the runtime on it; a record a second."""

    def __init__(self, log: LocalLog) -> None:
        self.log = log
        self.runtime = LocalRuntime(log, CODEC, keys=TEST_KEYS)
        self.at = EPOCH

    def send(self, name: str, tenant: str = "acme", **fields: Any) -> list[Record]:
        self.at += 1000
        value = {"tenant": tenant, "at": self.at, "agent": "mesh"} | fields
        record = RECORDS[name].model_validate(value)
        topic = topic_of(name, record.model_dump(mode="json"))
        came = self.runtime.feed(topic, tenant.encode(), CODEC.encode(record), self.at) + self.runtime.flush()
        return [CODEC.decode(message.value) for message in came]

    def listing(self, room: str, *readers: str, tenant: str = "acme") -> None:
        info = {"kind": "direct" if len(readers) == 1 else "channel", "visibility": "members"}
        members = [{"reader": reader, "kind": "member", "workspaces": []} for reader in readers]
        page = {"room": room, "refresh": f"r{self.at}", "page": 0, "last": True, "started_at": self.at}
        self.send("MembershipPage", tenant, **page, info=info, members=members)

    def message(self, room: str, number: int, author: str, text: str, tenant: str = "acme", **more: Any) -> str:
        name = f"{room}/{number}"
        fields = {"room": room, "message": name, "author": author, "author_kind": "person", "text": text}
        self.send("MessageObserved", tenant, **(fields | more))
        return f"message:{name}"

    def write(self, memory: str, revision: str, text: str, sources: list[str], op: str = "create") -> None:
        named = {"write": f"w-{revision}", "memory": memory, "revision": revision, "op": op}
        self.send("MemoryWrite", **named, by="dream", kind="note", text=text, sources=sources)

    def draft(self, turn: str, room: str, trigger: str, text: str, **more: Any) -> None:
        """A draft that says it, and one that does it."""
        action = {"operation": "crm.note", "params": [{"name": "note", "value": text, "origin": "llm"}]}
        self.send("TurnDrafted", turn=turn, room=room, trigger=trigger, renderings=[{"text": text}], **more)
        self.send("TurnDrafted", turn=f"{turn}-does", room=room, trigger=trigger, action=action, **more)

    def erase(self, **what: str) -> tuple[ErasureCommanded, frozenset[str]]:
        out = self.send("ErasureCommanded", command=f"e{self.at}", operator="alex", **what)
        (applied,) = (record for record in out if isinstance(record, ErasureApplied))
        command = ErasureCommanded(tenant="acme", at=self.at, command=applied.command, operator="alex", **what)
        return command, frozenset(applied.refs)
