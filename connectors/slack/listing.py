"""Decides when a conversation's members are established: all of them, of one and the same conversation, or no listing.

`conversations.info`, every page of `conversations.members`, and `conversations.info` again, which must not differ. Any
error, limit or oddity on the way makes a listing that says so, and never a shorter one (R-ROOM-2).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.members import next_cursor
from turngate.connectors.slack.resolving import People
from turngate.connectors.slack.rooms import Odd, counterpart, deciding, room_info
from turngate.schemas.inputs import MembershipPage
from turngate.schemas.shapes import Member, MemberKind, RoomInfo, RoomKind, Visibility

#: The most that `conversations.members` is asked for at once, and members of one record.
_PAGE, _RECORD = 999, 1_000
_MOST_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing that began at `started_at` (ms): of whom, or why there is none (`error`, a code).

    `wait`: seconds after which it may be tried again, None where that would not help.
    """

    home: Installation
    conversation: str
    started_at: int
    info: RoomInfo | None = None
    members: tuple[Member, ...] = ()
    error: str | None = None
    wait: float | None = None
    refresh: str = field(default_factory=lambda: f"slack:{uuid.uuid4().hex}")

    def pages(self, at: int) -> list[MembershipPage]:
        """The listing as records."""
        count = max(1, -(-len(self.members) // _RECORD))
        return [
            MembershipPage(
                tenant=self.home.tenant,
                at=at,
                agent=self.home.agent,
                room=self.home.room(self.conversation),
                refresh=self.refresh,
                page=page,
                last=page == count - 1,
                started_at=self.started_at,
                info=self.info if page == 0 else None,
                members=self.members[page * _RECORD : (page + 1) * _RECORD],
                error=self.error,
            )
            for page in range(count)
        ]


async def list_room(api: SlackApi, people: People, home: Installation, conversation: str, started_at: int) -> Listing:
    """A conversation's listing; `started_at` is now (ms). It never raises for what Slack answers, or does not."""
    try:
        info, members = await _established(api, people, home, conversation)
    except CallFailed as failed:
        return Listing(home, conversation, started_at, error=str(failed), wait=worth_it(failed))
    except Odd as odd:
        return Listing(home, conversation, started_at, error=str(odd), wait=0.0 if str(odd) in _PASSING else None)
    return Listing(home, conversation, started_at, info, tuple(members))


#: What may be over when it is looked at again.
_PASSING = frozenset({"changed_meanwhile", "members_missing"})
_NO_ANSWER = ("timeout", "connection_failed", "no_answer", "http_5", "ratelimited", "fatal_error", "internal_error")
_NO_ANSWER_EITHER = ("unreachable", "service_unavailable", "request_timeout", "fetch_members_failed")


def worth_it(failed: CallFailed) -> float | None:
    """Seconds after which a call may be tried again that changes nothing; None where that would not help."""
    if failed.wait is not None:
        return failed.wait
    return 0.0 if failed.code.startswith(_NO_ANSWER + _NO_ANSWER_EITHER) else None


async def _established(
    api: SlackApi, people: People, home: Installation, conversation: str
) -> tuple[RoomInfo, list[Member]]:
    before = await _info(api, home, conversation)
    info = room_info(before, conversation, home)
    if info.visibility is Visibility.OPEN:  # whoever is listed, others read along
        return info, []
    if info.kind is RoomKind.DIRECT:
        accounts = [home.bot_user, counterpart(before)]
    else:
        accounts = await _accounts(api, home, conversation)
    members = await people.of(home, dict.fromkeys(accounts))
    after = await _info(api, home, conversation)
    if deciding(before) != deciding(after):
        raise Odd("changed_meanwhile")
    if info.kind is not RoomKind.DIRECT:
        _counted(before.get("num_members"), after.get("num_members"), len(members))
    if any(member.kind is MemberKind.EXTERNAL for member in members):
        # No flag says that it is shared, and somebody of another organisation is there: others may read along.
        return info.model_copy(update={"visibility": Visibility.OPEN}), []
    return info, members


def _counted(before: object, after: object, listed: int) -> None:
    """Pages are no snapshot: where somebody leaves between two of them, somebody else may be on neither."""
    if before != after:
        raise Odd("changed_meanwhile")
    if isinstance(after, int) and after > listed:
        raise Odd("members_missing")


async def _info(api: SlackApi, home: Installation, conversation: str) -> dict[str, Any]:
    answer = await api.call(home, "conversations.info", channel=conversation, include_num_members=True)
    channel = answer.get("channel")
    if not isinstance(channel, dict):
        raise Odd("no_conversation")
    return channel


async def _accounts(api: SlackApi, home: Installation, conversation: str) -> list[str]:
    """Every account on every page, up to the one that says it is the last."""
    accounts: list[str] = []
    cursors: set[str | None] = set()
    cursor: str | None = None
    while len(cursors) < _MOST_PAGES:
        cursors.add(cursor)
        answer = await api.call(home, "conversations.members", channel=conversation, limit=_PAGE, cursor=cursor)
        page = answer.get("members")
        if not isinstance(page, list) or not all(is_id(account) for account in page):
            raise Odd("members_unreadable")
        accounts += page
        cursor = next_cursor(answer)
        if cursor is None:
            if not accounts:
                raise Odd("no_members")
            return accounts
        if cursor in cursors:
            break
    raise Odd("pages_without_end")
