"""Decides what an export's member list is worth: a listing of the day of the export, and of no day before."""

from __future__ import annotations

from collections.abc import Iterator

from turngate.connectors.slack.entries import RoomEvent, Scene
from turngate.connectors.slack.people import Account
from turngate.connectors.slack_export.rooms import Room
from turngate.schemas.shapes import Visibility

DAY = 86_400_000
#: The export's day begins at least this long after the last record (ms), so that no listing can settle a message that
#: the export merely ends with (R-AUD-9 settles within `freshness.settle`, 30 s by default).
AFTER = 3_600_000
#: Members of one page; a listing of 100 000 members arrives as pages.
PAGE = 1_000


def day_after(last: int) -> int:
    """The earliest day (its beginning, UTC, in ms) on which an export that ends with a record of this time was made."""
    return -(-(last + AFTER) // DAY) * DAY


def pages(
    scene: Scene, room: Room, members: list[Account], visibility: Visibility | None, at: int
) -> Iterator[RoomEvent]:
    """The listing of a conversation at `at`, in pages; without a visibility it is not complete (R-ROOM-2, R-ROOM-7)."""
    info = {
        "kind": room.kind.value,
        "visibility": None if visibility is None else visibility.value,
        "workspaces": [scene.accounts.namespace],
        "archived": room.archived,
    }
    named: list[dict[str, object]] = [{"reader": m.reader, "kind": m.kind.value, "workspaces": []} for m in members]
    count = max(1, -(-len(named) // PAGE))
    for page in range(count):
        yield scene.event(
            "MembershipPage",
            at,
            "membership-refreshes",
            room=scene.room(room.id),
            refresh=f"slack-export:{room.id}:{at}",
            page=page,
            last=page == count - 1,
            started_at=at,
            info=info if page == 0 else None,
            members=named[page * PAGE : (page + 1) * PAGE],
            error=None,
        )
