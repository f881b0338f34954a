"""Decides what a user object of Slack's makes of an account, and what a connector must know of accounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from turngate.schemas.shapes import MemberKind

#: Slack's own bot, which the account list does not mark as one.
SLACKBOT = "USLACKBOT"
_BOT_FLAGS = ("is_bot", "is_workflow_bot", "is_connector_bot")


@dataclass(frozen=True, slots=True)
class Account:
    """An account as records name it. `listed`: something says who it is; `foreign`: it belongs to another workspace."""

    reader: str
    kind: MemberKind
    listed: bool
    foreign: bool


class Accounts(Protocol):
    """The accounts that a workspace's entries are about."""

    @property
    def team(self) -> str:
        """The workspace."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    def of(self, user: str, team: str | None = None) -> Account:
        """The account of an id; `team`: the workspace that a message says it belongs to."""

    def reader(self, user: str) -> str:
        """The reader id of an account of this workspace."""


def kind_of(user: Mapping[str, Any], *, foreign: bool) -> MemberKind:
    """A missing flag is not `false`: who is not established to be a full member is none (R-ROOM-7).

    `foreign`: it is not established that the account is of this workspace, or of this organisation.
    """
    if foreign or user.get("is_stranger") is True:
        return MemberKind.EXTERNAL
    if any(user.get(flag) is True for flag in _BOT_FLAGS):
        return MemberKind.BOT
    full = all(user.get(flag) is False for flag in ("is_bot", "is_restricted", "is_ultra_restricted"))
    return MemberKind.MEMBER if full else MemberKind.GUEST


def enterprise_teams(user: Mapping[str, Any]) -> tuple[str, ...]:
    """The workspaces of an organisation that its account is in, in the order in which Slack names them."""
    enterprise = user.get("enterprise_user")
    teams = enterprise.get("teams") if isinstance(enterprise, dict) else None
    return tuple(t for t in teams if isinstance(t, str)) if isinstance(teams, list) else ()
