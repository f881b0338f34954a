"""Decides what the recorded inputs of a tenant say of the tools, rooms and texts that refused turns are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import MembershipPage, PolicyPublished, Record, ToolReturned, TurnDrafted
from turngate.schemas.shapes import MemberKind, Visibility
from turngate.streams.counterfactual import Document, document_of
from turngate.streams.recorded import Records


class Facts:
    """Servers of tool calls by ref, the last policy, the last listing of each room, and the drafts of these turns."""

    def __init__(self, records: Records, codec: Codec, tenant: str, turns: Iterable[str]) -> None:
        self._turns = set(turns)
        self.servers: dict[str, str] = {}
        self.drafts: dict[str, TurnDrafted] = {}
        self.policy: Document = {}
        self._listings: dict[str, tuple[str, list[MembershipPage]]] = {}
        for topic in ("policies", "membership-refreshes", "tool-results", "turn-drafts"):
            for record in _all(records, codec, topic):
                if record.tenant == tenant:
                    self._note(record)

    def _note(self, record: Record) -> None:
        match record:
            case ToolReturned():
                self.servers[f"tool:{record.call}"] = record.server
            case TurnDrafted() if record.turn in self._turns:
                self.drafts.setdefault(record.turn, record)
            case PolicyPublished():
                self.policy = document_of(record) or self.policy
            case MembershipPage() if record.error is None:
                refresh, pages = self._listings.get(record.room, ("", []))
                same = refresh == record.refresh
                self._listings[record.room] = (record.refresh, [*pages, record] if same else [record])

    def accounts(self, agent: str) -> list[str]:
        """An agent's own accounts, as listings name them."""
        pages = [page for _, listed in self._listings.values() for page in listed if page.agent == agent]
        return sorted({m.reader for page in pages for m in page.members if m.kind is MemberKind.SELF})

    def is_open(self, room: str) -> bool:
        """Whether the last listing of a room says that it can be read by people whom nobody can list."""
        return any(p.info and p.info.visibility is Visibility.OPEN for p in self._listings.get(room, ("", []))[1])

    def audience(self, room: str) -> Mapping[str, list[str]] | None:
        """Who read a room when it was last listed, as a policy names them; None where nobody can say."""
        pages = self._listings.get(room, ("", []))[1]
        info = next((page.info for page in pages if page.info is not None), None)
        if info is None or info.visibility not in (Visibility.MEMBERS, Visibility.WORKSPACE):
            return None
        workspaces = list(info.workspaces or ()) if info.visibility is Visibility.WORKSPACE else []
        members = {m.reader: m.kind for page in pages for m in page.members if m.kind is not MemberKind.SELF}
        listed = {
            r: kind
            for r, kind in members.items()
            if kind is not MemberKind.MEMBER or r.partition("/")[0] not in workspaces
        }
        guests = sorted(r for r, kind in listed.items() if kind is not MemberKind.MEMBER)
        return {"workspaces": workspaces, "readers": sorted(listed), "guests": guests}


def _all(records: Records, codec: Codec, topic: str) -> Iterator[Record]:
    for partition in range(records.partitions):
        for message in records.scan(topic, partition, records.first(topic, partition)):
            try:
                yield codec.decode(message.value)
            except Undecodable:
                continue
