"""Decides whom one complete listing shows, by itself and with what was told since it began (R-ROOM-2, R-DLV-1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turngate.processors.accounts import account, covered
from turngate.processors.audience import UNKNOWN
from turngate.processors.bounds import base, with_joiners
from turngate.processors.policy import Effective
from turngate.processors.rooms import page_of, roster_of, says_enough
from turngate.processors.rows import Listing
from turngate.schemas.inputs import Change, MembershipChanged, MembershipPage
from turngate.schemas.shapes import Audience, RoomKind, Visibility


@dataclass(frozen=True, slots=True)
class Shown:
    """A room as a complete listing that began at `started_at` shows it.

    `upper` is everybody who may possibly read (R-ROOM-1); unknown where the room is `open`, or where nobody is listed.
    """

    started_at: int
    kind: RoomKind
    visibility: Visibility
    upper: Audience

    @property
    def sole(self) -> str | None:
        """The one reader of a direct room (R-ROOM-9); None of any other."""
        direct = self.kind is RoomKind.DIRECT and self.visibility is Visibility.MEMBERS
        return self.upper.readers[0] if direct and len(self.upper.readers) == 1 else None


def shown(pages: Sequence[MembershipPage], policy: Effective, told: Iterable[MembershipChanged] = ()) -> Shown | None:
    """What the pages of one listing, in order, come to; None where they are no complete listing.

    `told` are events of the room since the listing began; of these, joins count (R-ROOM-4).
    """
    if not _whole(pages):
        return None
    first, rows = pages[0], [page_of(page) for page in pages]
    kind, visibility = rows[0].kind, rows[0].visibility
    if not says_enough(rows) or kind is None or visibility is None:
        return None
    if visibility is Visibility.OPEN:
        return Shown(first.started_at, kind, visibility, UNKNOWN)
    roster = roster_of(rows)
    workspaces = tuple(sorted(set(rows[0].workspaces or ())))
    listing = Listing(first.started_at, 0, (first.refresh,), kind, visibility, workspaces, roster.digest)
    upper = base(listing, roster, policy, first.agent)
    for event in told:
        if event.change is Change.JOINED and event.agent in (None, first.agent):
            own, trusted = policy.accounts(first.agent), policy.settings.trusted_bots
            found = account(event.reader, event.kind, event.workspaces, own, trusted)
            if found is not None and not covered(upper, found):
                upper = with_joiners(upper, (found,))
    if not upper.readers and not upper.workspaces:
        upper = UNKNOWN  # a destination without a single reader is not credible (R-AUD-1)
    return Shown(first.started_at, kind, visibility, upper)


def _whole(pages: Sequence[MembershipPage]) -> bool:
    """Whether these are pages 0 to n of one listing, the n-th saying `last` and none failed (R-ROOM-2)."""
    if not pages or [page.page for page in pages] != list(range(len(pages))):
        return False
    if len({(page.agent, page.room, page.refresh, page.started_at) for page in pages}) != 1:
        return False
    return [page.last for page in pages] == [False] * (len(pages) - 1) + [True]
