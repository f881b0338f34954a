"""Decides what a simulated connector lists: who was in a room at a moment, worked out from joins and leaves.

This is a simulation, and only of the demo. An export does not say who could read a room before the day it was made, so
the import never claims to know it (docs/slack-export.md); had a connector been there, it would have listed the room.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from turngate.connectors.slack.people import Accounts
from turngate.connectors.slack_export import RoomEvent

Member = dict[str, Any]


@dataclass(slots=True)
class _Room:
    info: dict[str, Any]
    members: dict[str, Member] = field(default_factory=dict)
    changes: list[tuple[int, Member, bool]] = field(default_factory=list)


class Listings:
    """The rooms of an export as they may have been, from those who were there at its beginning, joins and leaves.

    Somebody was there at the beginning who leaves or writes before joining, or is listed without ever joining.
    `as_private`: channels that a whole workspace can read are listed as if only their members could.
    """

    def __init__(self, events: list[RoomEvent], accounts: Accounts, as_private: bool) -> None:
        self._rooms: dict[str, _Room] = {}
        for event in events:
            if event.record == "MembershipPage":
                self._list(event.fields, as_private)
        first: dict[str, dict[str, Member | None]] = defaultdict(dict)  # None: of those who joined before anything else
        for event in events:
            fields, room = event.fields, self._rooms.get(event.fields["room"])
            if room is not None and event.record == "MembershipChanged":
                member = _member(fields["reader"], fields["kind"])
                joined = fields["change"] == "joined"
                room.changes.append((event.at, member, joined))
                first[fields["room"]].setdefault(fields["reader"], None if joined else member)
            elif room is not None and event.record == "MessageObserved" and fields["author_kind"] == "person":
                kind = accounts.of(fields["author"].rsplit("/", 1)[1]).kind
                first[fields["room"]].setdefault(fields["author"], _member(fields["author"], kind.value))
        for name, room in self._rooms.items():
            there = {r: m for r, m in first[name].items() if m is not None}
            room.members = {r: m for r, m in room.members.items() if r not in first[name]} | there

    def at(self, room: str, now: int) -> tuple[dict[str, Any], list[Member]] | None:
        """What a connector would list at `now`: the room, and its members; None for a room that cannot be listed."""
        known = self._rooms.get(room)
        if known is None or known.info["visibility"] is None:
            return None
        members = dict(known.members)
        for at, member, joined in known.changes:
            if at > now:
                break
            if joined:
                members[member["reader"]] = member
            else:
                members.pop(member["reader"], None)
        return known.info, [members[reader] for reader in sorted(members)]

    def __len__(self) -> int:
        return len(self._rooms)

    def _list(self, page: dict[str, Any], as_private: bool) -> None:
        if page["page"] == 0:
            info = dict(page["info"])
            if as_private and info["visibility"] == "workspace":
                info["visibility"] = "members"
            self._rooms[page["room"]] = _Room(info)
        self._rooms[page["room"]].members |= {m["reader"]: m for m in page["members"]}


def all_public(events: list[RoomEvent]) -> bool:
    """Whether everybody can read every room, so that nothing said in one could be out of place in another."""
    pages = [e.fields for e in events if e.record == "MembershipPage"]
    workspaces = all(p["info"] is None or p["info"]["visibility"] == "workspace" for p in pages)
    return workspaces and all(m["kind"] in ("member", "self") for p in pages for m in p["members"])


def _member(reader: str, kind: str) -> Member:
    return {"reader": reader, "kind": kind, "workspaces": []}
