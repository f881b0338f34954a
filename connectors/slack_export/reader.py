"""Decides in which order an export is told, and that it is told whole or not at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from turngate.connectors.slack.entries import (
    GONE,
    RoomEvent,
    Scene,
    author_id,
    author_team,
    events_of,
)
from turngate.connectors.slack.ids import EntryError
from turngate.connectors.slack_export.accounts import Accounts, read_accounts
from turngate.connectors.slack_export.errors import ExportError
from turngate.connectors.slack_export.files import USERS, Files, Limits, load, open_files
from turngate.connectors.slack_export.listings import day_after, pages
from turngate.connectors.slack_export.rooms import INDEXES, Room, accounts_of, contradicted, read_rooms, visibility
from turngate.connectors.slack_export.spool import Spool

_DAY_FILE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")
#: Stands for the time of the export's last record while that is not known; later than any time of Slack's.
_LAST = 2**53


@dataclass(slots=True)
class Summary:
    """What an export came to. Times in ms; `skipped`: what was left out, and how often; `problems`: broken files."""

    namespace: str
    accounts: int
    rooms: int = 0
    messages: int = 0
    edits: int = 0
    deletions: int = 0
    joins: int = 0
    leaves: int = 0
    changes: int = 0
    listings: int = 0
    established: int = 0
    first_at: int | None = None
    last_at: int | None = None
    exported_at: int | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[ExportError] = field(default_factory=list)


class Export:
    """An export that was read: an iterator over its records in order of time, and a summary of them.

    All of it has been read and checked when this exists, so no record is handed out of an export that turns out to be
    broken. Use it as a context manager, or `close` it, to let go of the temporary file.
    """

    def __init__(
        self, scene: Scene, rooms: tuple[Room, ...], summary: Summary, spool: Spool, listings: list[RoomEvent]
    ) -> None:
        self.scene = scene
        self.rooms = rooms
        self.summary = summary
        self._spool = spool
        self._listings = listings
        self._events = self._told()

    def __iter__(self) -> Iterator[RoomEvent]:
        return self

    def __next__(self) -> RoomEvent:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the temporary file."""
        self._spool.close()

    def _told(self) -> Iterator[RoomEvent]:
        for event in self._spool.in_order():
            if event.at != _LAST:
                yield event
            elif self.summary.last_at is not None:
                at = self.summary.last_at
                yield replace(event, at=at, fields={**event.fields, "at": at})
        yield from self._listings


def read_export(
    path: Path,
    *,
    tenant: str,
    agent: str,
    accounts: Collection[str] = (),
    team: str | None = None,
    not_shared: bool = False,
    exported_at: int | None = None,
    keep_going: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> Export:
    """Read a workspace export, a folder or the zip archive that Slack hands out.

    `tenant`, `agent`: whose log it is for. `accounts`: Slack's ids of the agent's own accounts, which are no readers
    to it. `team`: the workspace, needed only where the accounts are of several. `not_shared`: the operator declares
    that no conversation of this workspace is shared with another organisation; Slack's exports often do not say, and
    what is not said is not established. `exported_at`: the time (ms) of the export, without it the first midnight UTC
    at least an hour after its last record. `on_progress(done, total)` is called in bytes, after each file.

    Raises `ExportError` for the first file that cannot be used; with `keep_going` such files are left out and listed
    in `Export.summary.problems`, but for the account list, without which nothing is known.
    """
    with open_files(path, limits) as files:
        reading = _Reading(files, keep_going, on_progress)
        known = read_accounts(reading.load(USERS), team, accounts)
        reading.summary = Summary(known.namespace, len(known))
        rooms = reading.rooms(known)
        scene = Scene(tenant, agent, known, frozenset(rooms))
        spool = Spool()
        try:
            for folder, room in reading.folders(rooms):
                for name in reading.days(folder):
                    reading.take(name, room, scene, spool)
            listings = reading.listings(rooms, scene, not_shared, exported_at)
        except BaseException:
            spool.close()
            raise
    return Export(scene, tuple(rooms.values()), reading.summary, spool, listings)


class _Reading:
    """One pass over the files of an export."""

    summary: Summary

    def __init__(self, files: Files, keep_going: bool, on_progress: Callable[[int, int], None] | None) -> None:
        self._files = files
        self._keep_going = keep_going
        self._on_progress = on_progress
        self._done, self._total = 0, sum(files.sizes.values())
        self._teams: dict[str, str] = {}
        self._outsiders: set[str] = set()

    def load(self, name: str) -> list[dict[str, Any]]:
        """The entries of a file."""
        entries = load(self._files, name)
        self._done += self._files.sizes[name]
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)
        return entries

    def broken(self, error: ExportError) -> None:
        """Note a file that is left out, or give up."""
        if not self._keep_going:
            raise error
        self.summary.problems.append(error)

    def rooms(self, accounts: Accounts) -> dict[str, Room]:
        """Every conversation that an index lists, by id."""
        rooms: dict[str, Room] = {}
        present = [name for name in INDEXES if name in self._files.sizes]
        if not present:
            raise ExportError("channels.json", "is missing, and so is every other list of conversations")
        for name in present:
            try:
                found = read_rooms(name, self.load(name), accounts.team)
            except ExportError as error:
                self.broken(error)
                continue
            for room in found:
                if room.id in rooms:
                    self.broken(ExportError(name, f"lists {room.id}, which {rooms[room.id].file} lists too"))
                rooms[room.id] = contradicted(room) if room.id in rooms else room
        self.summary.rooms = len(rooms)
        return rooms

    def folders(self, rooms: dict[str, Room]) -> Iterator[tuple[str, Room]]:
        """Every folder of messages, with the conversation whose they are."""
        names = sorted({path.split("/")[0] for path in self._files.sizes if "/" in path})
        claims: dict[str, list[Room]] = {}
        for room in rooms.values():
            for name in room.folders:
                claims.setdefault(name, []).append(room)
        for name in names:
            owners = claims.get(name, [])
            if len(owners) == 1:
                yield name, owners[0]
            elif owners:
                self.broken(
                    ExportError(name, f"{len(owners)} conversations have this folder; whose it is is not known")
                )
            else:
                self.summary.skipped["folder that no list of conversations names"] += 1

    def days(self, folder: str) -> Iterator[str]:
        """The files of a folder that are named by a day."""
        for path in sorted(p for p in self._files.sizes if p.startswith(folder + "/")):
            if _DAY_FILE.fullmatch(path.split("/")[1]):
                yield path
            else:
                self.summary.skipped["file in a conversation's folder that is not named by a day"] += 1

    def take(self, name: str, room: Room, scene: Scene, spool: Spool) -> None:
        """The records of one file, all of them or none."""
        events: list[RoomEvent] = []
        skipped: Counter[str] = Counter()
        strangers: dict[str, str | None] = {}
        try:
            for number, entry in enumerate(self.load(name), 1):
                try:
                    if entry.get("type") != "message":
                        skipped["entry that is no message"] += 1
                        continue
                    events += events_of(entry, room.id, scene, _LAST)
                    strangers |= _stranger(entry, scene)
                    skipped["content of a file (the message is there)"] += bool(entry.get("files") or entry.get("file"))
                except EntryError as error:
                    raise ExportError(name, f"entry {number}: {error}") from error
        except ExportError as error:
            self.broken(error)
            return
        self._count(events)
        self.summary.skipped += skipped
        if strangers:
            self._outsiders.add(room.id)
        self._teams |= {user: team for user, team in strangers.items() if team is not None}
        spool.add(events)

    def listings(
        self, rooms: dict[str, Room], scene: Scene, not_shared: bool, exported_at: int | None
    ) -> list[RoomEvent]:
        """The member lists, as listings of the day of the export."""
        last, summary = self.summary.last_at, self.summary
        if exported_at is not None and last is not None and exported_at < last:
            raise ExportError("exported_at", "is before the export's last message")
        at = exported_at
        if at is None and last is not None:
            at = day_after(last)
        summary.exported_at = at
        listings: list[RoomEvent] = []
        for room in rooms.values():
            if at is None or room.members is None:
                summary.skipped["listing of a conversation: no member list, or no message that dates it"] += 1
                continue
            members = accounts_of(room, scene.accounts, self._teams)
            can_read = visibility(room, members, room.id in self._outsiders, not_shared)
            summary.listings += 1
            summary.established += can_read is not None
            listings += pages(scene, room, members, can_read, at)
        return listings

    def _count(self, events: list[RoomEvent]) -> None:
        summary = self.summary
        for event in events:
            match event.record, event.fields:
                case "MessageObserved", {"edited": True}:
                    summary.edits += 1
                case "MessageObserved", _:
                    summary.messages += 1
                case "MessageDeleted", _:
                    summary.deletions += 1
                case "MembershipChanged", {"change": "joined"}:
                    summary.joins += 1
                case "MembershipChanged", _:
                    summary.leaves += 1
                case _:
                    summary.changes += 1
            if event.at != _LAST:
                summary.first_at = event.at if summary.first_at is None else min(summary.first_at, event.at)
                summary.last_at = event.at if summary.last_at is None else max(summary.last_at, event.at)


def _stranger(entry: dict[str, Any], scene: Scene) -> dict[str, str | None]:
    """The author, where it is not established to be of this workspace, and the workspace that the entry names."""
    user = author_id(entry)
    if user is None or entry.get("subtype") == GONE:
        return {}
    team = author_team(entry, scene.accounts.team)
    account = scene.accounts.of(user, team)
    if account.listed and not account.foreign:
        return {}
    return {user: team if team != scene.accounts.team else None}
