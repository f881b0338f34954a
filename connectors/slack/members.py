"""Decides who a listed account is: its reader id, its kind, and its further workspaces (R-ROOM-7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.people import SLACKBOT, enterprise_teams, kind_of
from turngate.connectors.slack.rooms import Odd
from turngate.schemas.shapes import Member, MemberKind


def member_of(user: Mapping[str, Any], asked: str, home: Installation) -> Member:
    """An account as Slack's answer to this installation tells it. Raises `Odd` where that does not say whose it is.

    Of a full member of an organisation `workspaces` are those that Slack names, whatever it is there.
    """
    if user.get("id") != asked:
        raise Odd("other_account")
    if asked == home.bot_user:
        return Member(reader=home.account, kind=MemberKind.SELF)
    if asked == SLACKBOT:
        return Member(reader=home.room(asked), kind=MemberKind.BOT)
    teams = _teams(user, home)
    stated = user.get("team_id")
    if not teams and not is_id(stated):
        raise Odd("account_without_team")
    foreign = not teams and stated != home.team
    kind = kind_of(user, foreign=foreign)
    team, *others = teams or (str(stated),)
    further = tuple(sorted(f"slack:{t}" for t in others)) if kind is MemberKind.MEMBER else ()
    return Member(reader=f"slack:{team}/{asked}", kind=kind, workspaces=further)


def _teams(user: Mapping[str, Any], home: Installation) -> tuple[str, ...]:
    """The workspaces of an account of this organisation, the first being its id's; none for everybody else."""
    enterprise = user.get("enterprise_user")
    own = home.enterprise is not None and isinstance(enterprise, dict)
    if not own or enterprise.get("enterprise_id") != home.enterprise:  # type: ignore[union-attr]
        return ()
    teams = tuple(dict.fromkeys(t for t in enterprise_teams(user) if is_id(t)))
    return teams or ((str(user["team_id"]),) if is_id(user.get("team_id")) else ())


def namespaces(member: Member) -> tuple[str, ...]:
    """Where an account is, its id's first."""
    return (member.reader.partition("/")[0], *member.workspaces)


def contradicts(listed: Member, said: Member) -> bool:
    """Whether a listing names an account as more than Slack's answer does, or as somebody else.

    Of an account of several workspaces a listing names those alone in which it is established to be a full member, and
    where that is not so for its id's, it is a guest there.
    """
    if listed.reader != said.reader or not set(listed.workspaces) <= set(said.workspaces):
        return True
    unsure = said.kind is MemberKind.MEMBER and bool(said.workspaces) and listed.kind is MemberKind.GUEST
    return listed.kind is not said.kind and not unsure


def next_cursor(answer: Mapping[str, Any]) -> str | None:
    """Where the next page begins, None on the last. Raises `Odd` where the answer does not say it."""
    metadata = answer.get("response_metadata")
    cursor = metadata.get("next_cursor") if isinstance(metadata, dict) else None
    if cursor is None or cursor == "":
        return None
    if not isinstance(cursor, str):
        raise Odd("no_cursor")
    return cursor
