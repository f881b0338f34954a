"""Decides which listings name an account as what it is no more: whoever lists takes Slack's word for a while.

A listing may be under way when an account changes, and whoever lists may hold an account that no listing has named yet,
so that no room is known to be concerned. What accounts became is therefore remembered for longer than that.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.members import contradicts
from turngate.connectors.slack.resolving import KNOWN_FOR
from turngate.schemas.inputs import MembershipPage
from turngate.schemas.shapes import Member

#: Milliseconds: an account is held for ten minutes, and a listing takes a few.
REMEMBERED = int(1000 * KNOWN_FOR) + 300_000
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Change:
    """What an account became at a time (ms), None where that was not said; and the rooms that were told of it."""

    at: int
    now: Member | None
    rooms: set[str] = field(default_factory=set)


class Became:
    """The accounts that changed of late."""

    def __init__(self) -> None:
        self._changes: OrderedDict[_Key, _Change] = OrderedDict()

    def note(self, home: Installation, account: str, now: Member | None, at: int) -> None:
        """An account of this installation's workspace changed; times in milliseconds."""
        while self._changes and next(iter(self._changes.values())).at <= at - REMEMBERED:
            self._changes.popitem(last=False)
        key = _key(home, account)
        self._changes[key] = _Change(at, now)
        self._changes.move_to_end(key)

    def belied(self, home: Installation, page: MembershipPage, at: int) -> list[str]:
        """The accounts that a listing names as what they are no more; a room is told of each change once."""
        if not self._changes:
            return []
        accounts = []
        for member in page.members:
            account = member.reader.partition("/")[2]
            change = self._changes.get(_key(home, account))
            if change is None or change.at <= at - REMEMBERED or page.room in change.rooms:
                continue
            if page.started_at <= change.at if change.now is None else contradicts(member, change.now):
                change.rooms.add(page.room)
                accounts.append(account)
        return accounts


def _key(home: Installation, account: str) -> _Key:
    return (home.tenant, home.agent, home.team, account)
