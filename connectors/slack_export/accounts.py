"""Decides who an account of an export is: its namespace, and whether its workspace counts it as a full member."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from turngate.connectors.slack_export.errors import ExportError
from turngate.connectors.slack_export.files import USERS
from turngate.schemas.shapes import MemberKind

#: An id that Slack gave: of an account, a conversation, a workspace or a bot. Compared byte for byte.
SLACK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Slack's own bot, which the account list does not mark as one.
SLACKBOT = "USLACKBOT"
_BOT_FLAGS = ("is_bot", "is_workflow_bot", "is_connector_bot")


def is_id(value: object) -> bool:
    """Whether this is text that can be an id of Slack's."""
    return isinstance(value, str) and SLACK_ID.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Account:
    """An account as records name it. `listed`: the account list has it; `foreign`: it belongs to another workspace."""

    reader: str
    kind: MemberKind
    listed: bool
    foreign: bool


class Accounts:
    """Every account of an export, by Slack's id."""

    def __init__(self, team: str, users: Iterable[dict[str, Any]], own: Collection[str]) -> None:
        self.team = team
        self.namespace = f"slack:{team}"
        self._own = frozenset(own)
        self._accounts = {u["id"]: self._account(u) for u in users}

    def __len__(self) -> int:
        return len(self._accounts)

    def of(self, user: str, team: str | None = None) -> Account:
        """The account of an id; `team`: the workspace that a message says it belongs to.

        An account that the list does not have, or of which a message says that it belongs elsewhere, is external.
        """
        if user in self._own:
            return Account(self.reader(user), MemberKind.SELF, listed=True, foreign=False)
        if user == SLACKBOT:
            return Account(self.reader(user), MemberKind.BOT, listed=True, foreign=False)
        account = self._accounts.get(user)
        if team is not None and team != self.team and (account is None or not account.foreign):
            return Account(f"slack:{team}/{user}", MemberKind.EXTERNAL, account is not None, foreign=True)
        return account or Account(self.reader(user), MemberKind.EXTERNAL, listed=False, foreign=False)

    def reader(self, user: str) -> str:
        """The reader id of an account of this workspace."""
        return f"{self.namespace}/{user}"

    def _account(self, user: dict[str, Any]) -> Account:
        team = _team(user, self.team)
        if team is not None and team != self.team:
            return Account(f"slack:{team}/{user['id']}", MemberKind.EXTERNAL, listed=True, foreign=True)
        return Account(self.reader(user["id"]), _kind(user, team), listed=True, foreign=user.get("is_stranger") is True)


def read_accounts(users: list[dict[str, Any]], team: str | None, own: Collection[str]) -> Accounts:
    """The accounts of `users.json`; `own`: the ids of the agent's accounts; `team`: the workspace, where it is named.

    Raises `ExportError` where an entry has no id, or where it is not established which workspace this is.
    """
    seen: set[str] = set()
    for number, user in enumerate(users, 1):
        if not is_id(user.get("id")):
            raise ExportError(USERS, f"entry {number}: id is no id of Slack's")
        if user["id"] in seen:
            raise ExportError(USERS, f"entry {number}: this id is there twice, so which one counts is not known")
        if user.get("team_id") is not None and not is_id(user["team_id"]):
            raise ExportError(USERS, f"entry {number}: team_id is no id of Slack's")
        seen.add(user["id"])
    return Accounts(_workspace({u["team_id"] for u in users if u.get("team_id") is not None}, team), users, own)


def _workspace(teams: set[str], named: str | None) -> str:
    if named is not None:
        if named not in teams:
            raise ExportError(USERS, "no account has the team_id of the workspace that was named")
        return named
    if len(teams) == 1:
        return next(iter(teams))
    if not teams:
        raise ExportError(USERS, "no account has a team_id, so which workspace this is is not known")
    raise ExportError(USERS, f"accounts have {len(teams)} different team_ids; name the workspace that was exported")


def _team(user: dict[str, Any], own: str) -> str | None:
    """The workspace of an account; of an organisation's account this one, where it lists this one."""
    if user.get("team_id") is not None:
        return str(user["team_id"])
    enterprise = user.get("enterprise_user")
    teams = enterprise.get("teams") if isinstance(enterprise, dict) else None
    return own if isinstance(teams, list) and own in teams else None


def _kind(user: dict[str, Any], team: str | None) -> MemberKind:
    """A missing flag is not `false`: who is not established to be a full member is none (R-ROOM-7)."""
    if user.get("is_stranger") is True or team is None:
        return MemberKind.EXTERNAL
    if any(user.get(flag) is True for flag in _BOT_FLAGS):
        return MemberKind.BOT
    full = all(user.get(flag) is False for flag in ("is_bot", "is_restricted", "is_ultra_restricted"))
    return MemberKind.MEMBER if full else MemberKind.GUEST
