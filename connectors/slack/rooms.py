"""Decides what `conversations.info` establishes of a conversation: its kind, and who can read it (R-ROOM-6, R-ROOM-7).

`is_private` is the only switch for privacy. Every flag that decides must be there; one that is missing is not `false`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.installations import Installation
from turngate.schemas.shapes import RoomInfo, RoomKind, Visibility

_SHARING = ("is_shared", "is_org_shared", "is_ext_shared", "is_pending_ext_shared")
_WHOLE_ORGANISATION = ("is_global_shared", "is_org_default", "is_org_mandatory")
_OUTSIDE = ("connected_team_ids", "connected_limited_team_ids", "pending_shared", "pending_connected_team_ids")
_INSIDE = ("shared_team_ids", "internal_team_ids")
_KINDS = ("is_im", "is_mpim")
#: What two answers must agree in, if the members listed between them are to be believed.
_DECIDING = (
    "id",
    "user",
    "is_private",
    "context_team_id",
    *_KINDS,
    *_SHARING,
    *_WHOLE_ORGANISATION,
    *_OUTSIDE,
    *_INSIDE,
)


class Odd(ValueError):
    """An answer that establishes nothing. The message is a code, and quotes nothing."""


def room_info(channel: Mapping[str, Any], conversation: str, home: Installation) -> RoomInfo:
    """What a conversation is. Raises `Odd` where that is not established."""
    if channel.get("id") != conversation:
        raise Odd("other_conversation")
    context = channel.get("context_team_id")
    if context not in (None, home.team, home.enterprise):
        inside = [team for name in _INSIDE for team in _teams(channel, name)]
        if context not in inside or home.team not in inside:  # it is not one that both workspaces have
            raise Odd("other_workspace")
    direct, group = (_flag(channel, name, missing=False) for name in _KINDS)
    if direct and group:
        raise Odd("kind_contradicted")
    kind = RoomKind.DIRECT if direct else RoomKind.GROUP if group else RoomKind.CHANNEL
    archived = channel.get("is_archived")
    workspaces = _workspaces(channel, home)
    return RoomInfo(
        kind=kind,
        visibility=_visibility(channel, kind, workspaces),
        workspaces=tuple(f"slack:{team}" for team in workspaces),
        archived=archived if isinstance(archived, bool) else None,
    )


def deciding(channel: Mapping[str, Any]) -> dict[str, Any]:
    """What of an answer decides who can read."""
    return {name: channel.get(name) for name in _DECIDING}


def counterpart(channel: Mapping[str, Any]) -> str:
    """The one counterpart of a direct message. Raises `Odd` where none is named."""
    user = channel.get("user")
    if not is_id(user):
        raise Odd("no_counterpart")
    return str(user)


def _visibility(channel: Mapping[str, Any], kind: RoomKind, workspaces: list[str]) -> Visibility:
    direct = kind is RoomKind.DIRECT  # has hardly any of the flags; those that it has count
    private = _flag(channel, "is_private", missing=True if direct else None)
    shared, in_org, outside, pending = (_flag(channel, n, missing=False if direct else None) for n in _SHARING)
    everywhere = [_flag(channel, name, missing=False) for name in _WHOLE_ORGANISATION]
    elsewhere = [_teams(channel, name) for name in _OUTSIDE]
    if kind is not RoomKind.CHANNEL and not private:
        raise Odd("kind_contradicted")
    if outside or pending or (shared and not in_org) or any(elsewhere):
        return Visibility.OPEN
    if len(workspaces) > 1 and not in_org:
        return Visibility.OPEN
    if private:
        return Visibility.MEMBERS
    # Of a channel of the whole organisation, or of one that is named as a whole, the workspaces cannot be told.
    return (
        Visibility.OPEN if any(everywhere) or not all(t.startswith("T") for t in workspaces) else Visibility.WORKSPACE
    )


def _workspaces(channel: Mapping[str, Any], home: Installation) -> list[str]:
    return sorted({home.team, *(team for name in _INSIDE for team in _teams(channel, name))})


def _flag(channel: Mapping[str, Any], name: str, *, missing: bool | None) -> bool:
    value = channel.get(name)
    value = missing if value is None else value
    if not isinstance(value, bool):
        raise Odd("flag_missing")
    return value


def _teams(channel: Mapping[str, Any], name: str) -> list[Any]:
    """A list of workspaces; of pending ones, of whatever Slack says of them."""
    value = channel.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or (name in _INSIDE and not all(is_id(team) for team in value)):
        raise Odd("teams_unreadable")
    return value
