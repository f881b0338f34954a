"""Decides who an account of an export is: its namespace, and whether its workspace counts it as a full member."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.people import SLACKBOT, Account, enterprise_teams, kind_of
from turngate.connectors.slack_export.errors import ExportError
from turngate.connectors.slack_export.files import USERS
from turngate.schemas.shapes import MemberKind


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
        return Account(
            self.reader(user["id"]),
            kind_of(user, foreign=team is None),
            listed=True,
            foreign=user.get("is_stranger") is True,
        )


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
    return own if own in enterprise_teams(user) else None
