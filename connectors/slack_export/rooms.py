"""Decides what an export establishes of a conversation: its shape, and who can read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.people import Account, Accounts
from turngate.connectors.slack_export.errors import ExportError
from turngate.schemas.shapes import RoomKind, Visibility


@dataclass(frozen=True, slots=True)
class Index:
    """What it means to stand in one of the files that list conversations, as Slack documents them."""

    kind: RoomKind
    private: bool


#: Slack's "How to read Slack data exports": public channels, private channels, group and one-to-one direct messages.
INDEXES: MappingProxyType[str, Index] = MappingProxyType(
    {
        "channels.json": Index(RoomKind.CHANNEL, private=False),
        "groups.json": Index(RoomKind.CHANNEL, private=True),
        "mpims.json": Index(RoomKind.GROUP, private=True),
        "dms.json": Index(RoomKind.DIRECT, private=True),
    }
)
_SHARING = ("is_shared", "is_ext_shared", "is_pending_ext_shared")
_SHARING_TOO = ("is_org_shared", "is_global_shared", "is_org_default", "is_org_mandatory")
_TEAM_LISTS = ("shared_team_ids", "internal_team_ids")
_FOREIGN_LISTS = ("connected_team_ids", "connected_limited_team_ids", "pending_shared", "pending_connected_team_ids")


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation as one entry of an index states it; None is what the entry does not say.

    `private`, `shared`: None also where two statements contradict each other. `members`: account ids, None where
    there is no list. `folders`: names under which its messages may lie.
    """

    id: str
    file: str
    folders: tuple[str, ...]
    kind: RoomKind
    private: bool | None
    shared: bool | None
    archived: bool | None
    members: tuple[str, ...] | None


def read_rooms(file: str, entries: list[dict[str, Any]], team: str) -> list[Room]:
    """The conversations of one index. Raises `ExportError` where an entry has no id or a list of no ids."""
    return [_room(file, number, entry, team) for number, entry in enumerate(entries, 1)]


def visibility(room: Room, members: list[Account], outsiders: bool, not_shared: bool) -> Visibility | None:
    """Who can read a conversation on the day of the export, or None where the export does not establish it.

    `members` are its listed accounts, `outsiders` whether anybody wrote in it or joined it who is not established to
    be of this workspace, `not_shared` whether the operator declares that nothing in this workspace is shared with
    another one. Only what is established is said: a listing without a visibility is not complete, and changes nothing
    (R-ROOM-7).
    """
    if room.private is None:
        return None
    if room.shared is True:
        return Visibility.OPEN
    if any(m.foreign for m in members):
        return None if room.shared is False else Visibility.OPEN
    if any(not m.listed for m in members) or (room.shared is None and outsiders):
        return None
    if room.kind is not RoomKind.CHANNEL:  # a direct message has the members it was opened with, and all are ours
        return Visibility.MEMBERS
    if room.shared is None and not not_shared:
        return None
    return Visibility.MEMBERS if room.private else Visibility.WORKSPACE


def _room(file: str, number: int, entry: dict[str, Any], team: str) -> Room:
    if not is_id(entry.get("id")):
        raise ExportError(file, f"entry {number}: id is no id of Slack's")
    index = INDEXES[file]
    folders = [entry["name"]] if isinstance(entry.get("name"), str) and entry["name"] else []
    archived = entry.get("is_archived")
    return Room(
        id=entry["id"],
        file=file,
        folders=tuple(dict.fromkeys([*folders, entry["id"]])),
        kind=index.kind,
        private=_private(entry, index),
        shared=_shared(entry, team),
        archived=archived if isinstance(archived, bool) else None,
        members=_members(file, number, entry),
    )


def contradicted(room: Room) -> Room:
    """The room where two indexes list it: neither is believed."""
    return replace(room, private=None)


def _private(entry: dict[str, Any], index: Index) -> bool | None:
    """What the file says, unless the entry says something else."""
    stated = entry.get("is_private")
    return index.private if stated is None or stated is index.private else None


def _shared(entry: dict[str, Any], team: str) -> bool | None:
    """True for any sign of sharing, a flag of an unexpected type included; False only where every flag says so."""
    flags = [entry[name] for name in (*_SHARING, *_SHARING_TOO) if entry.get(name) is not None]
    lists = [entry[name] for name in (*_TEAM_LISTS, *_FOREIGN_LISTS) if entry.get(name) is not None]
    if any(flag is not False for flag in flags) or any(not isinstance(teams, list) for teams in lists):
        return True
    if any(t != team for name in _TEAM_LISTS for t in entry.get(name) or ()):
        return True
    if any(entry.get(name) for name in _FOREIGN_LISTS):
        return True
    return False if all(entry.get(name) is False for name in _SHARING) else None


def _members(file: str, number: int, entry: dict[str, Any]) -> tuple[str, ...] | None:
    members = entry.get("members")
    if members is None:
        return None
    if not isinstance(members, list) or not all(is_id(m) for m in members):
        raise ExportError(file, f"entry {number}: members is no list of ids")
    return tuple(dict.fromkeys(members))


def accounts_of(room: Room, accounts: Accounts, teams: dict[str, str]) -> list[Account]:
    """The listed accounts of a conversation; `teams`: the workspaces that messages gave for accounts."""
    return [accounts.of(m, teams.get(m)) for m in room.members or ()]
