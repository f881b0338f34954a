"""What a conversation is, and what `conversations.info` says of it to a token of one workspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CREATED = 1_700_000_000


@dataclass
class Conversation:
    """A conversation of every kind; `team` is its home. `members` are user ids, in the order in which they joined."""

    id: str
    team: str
    members: list[str]
    kind: str = "channel"  # or im, mpim
    private: bool = False
    archived: bool = False
    name: str = ""
    #: Further workspaces of the same organisation, workspaces of others, and of those invited and not yet there.
    org: list[str] = field(default_factory=list)
    external: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    #: Fields of the JSON that are given other values, or left out where the value is None.
    odd: dict[str, Any] = field(default_factory=dict)
    #: By ts, in order of time; each as `conversations.history` gives it, with its metadata.
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def teams(self) -> list[str]:
        """Every workspace that has it."""
        return [self.team, *self.org, *self.external]

    @property
    def type(self) -> str:
        """The `channel_type` of its messages."""
        return self.kind if self.kind != "channel" else "group" if self.private else "channel"

    @property
    def letter(self) -> str:
        """The `channel_type` of its membership events."""
        return "G" if self.private else "C"

    def json(self, seen_from: str, bot: str) -> dict[str, Any]:
        """What `conversations.info` says to the token of this bot."""
        room: dict[str, Any] = {"id": self.id, "created": CREATED, "is_archived": self.archived}
        room |= {"is_im": self.kind == "im", "is_org_shared": bool(self.org), "context_team_id": seen_from}
        if self.kind == "im":  # has hardly any of the flags
            room |= {"user": next((m for m in self.members if m != bot), bot), "is_user_deleted": False, "priority": 0}
            if self.external:
                room |= {"is_ext_shared": True, "is_shared": True}
        else:
            room |= self._of_channel(seen_from, bot)
        room |= self.odd
        return {key: value for key, value in room.items() if value is not None}

    def _of_channel(self, seen_from: str, bot: str) -> dict[str, Any]:
        return {
            "name": self.name or self.id.lower(),
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "mpim",
            "is_mpim": self.kind == "mpim",
            "is_private": self.private or self.kind == "mpim",
            "is_general": False,
            "is_shared": bool(self.org or self.external),
            "is_ext_shared": bool(self.external),
            "is_pending_ext_shared": bool(self.pending),
            "pending_shared": list(self.pending),
            "pending_connected_team_ids": list(self.pending),
            "shared_team_ids": self.teams,
            "internal_team_ids": [self.team, *self.org] if self.org else [],
            "connected_team_ids": list(self.external),
            "is_member": bot in self.members,
            "creator": self.members[0] if self.members else bot,
            "unlinked": 0,
            "previous_names": [],
        }
