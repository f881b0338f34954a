"""Decides what the listings so far tell of accounts and rooms, for events that tell less."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable

from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.members import namespaces
from turngate.connectors.slack.people import SLACKBOT, Account
from turngate.schemas.inputs import MembershipPage, PolicyPublished, Record
from turngate.schemas.policy import PolicyInvalid, parse_policy
from turngate.schemas.shapes import Member, MemberKind
from turngate.streams.feed import Feed

#: Tenant, agent and namespace of rooms that one installation lists.
Place = tuple[str, str, str]
#: Milliseconds for which listings are looked back at, and longer where a policy lets observations be good for longer.
DAY = 86_400_000


class Directory:
    """Every room that was listed, whom its listings named, and who these accounts were.

    Whoever was listed in a room once counts as listed there for good, which invalidates more and never less.
    """

    def __init__(self) -> None:
        self._accounts: defaultdict[Place, dict[str, Member]] = defaultdict(dict)
        self._rooms: defaultdict[Place, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def learn(self, record: Record) -> None:
        """Take a record of `membership-refreshes` in."""
        if not isinstance(record, MembershipPage):
            return
        namespace, _, _ = record.room.partition("/")
        place = (record.tenant, record.agent, namespace)
        users = self._rooms[place][record.room]
        for member in record.members:
            _, _, user = member.reader.partition("/")
            users.add(user)
            self._accounts[place][user] = member

    def account(self, home: Installation, user: str) -> Member | None:
        """An account as it was listed last."""
        return self._accounts[_place(home)].get(user)

    def reader(self, home: Installation, user: str) -> str | None:
        """The id under which listings name an account; of an organisation's account only those tell it."""
        known = self.account(home, user)
        if known is not None:
            return known.reader
        return None if home.enterprise is not None else home.room(user)

    def forget(self, home: Installation, user: str) -> None:
        """What was listed of an account holds no more."""
        self._accounts[_place(home)].pop(user, None)

    def rooms(self, home: Installation) -> list[str]:
        """Every room that was listed or could not be."""
        return list(self._rooms[_place(home)])

    def knows(self, home: Installation, room: str) -> bool:
        """Whether a room was listed or could not be."""
        return room in self._rooms[_place(home)]

    def rooms_with(self, home: Installation, user: str) -> list[str]:
        """Those whose listings named this account."""
        return [room for room, users in self._rooms[_place(home)].items() if user in users]

    def named_in(self, tenant: str, agent: str, room: str) -> Iterable[str]:
        """The accounts that the listings of a room named."""
        return frozenset(self._rooms[tenant, agent, room.partition("/")[0]].get(room, ()))


async def looked_back(feed: Feed, now: int) -> Directory:
    """What every listing told that may still count, by whichever policy there was. Raises `LogError`."""
    good = DAY
    async for record in feed.follow("policies", 0, forever=False):
        if isinstance(record, PolicyPublished):
            with contextlib.suppress(PolicyInvalid):
                good = max(good, parse_policy(record.document).freshness.observation)
    directory = Directory()
    async for record in feed.follow("membership-refreshes", max(0, now - good), forever=False):
        directory.learn(record)
    return directory


def _place(home: Installation) -> Place:
    return (home.tenant, home.agent, home.namespace)


class LiveAccounts:
    """The accounts that an event is about (`people.Accounts`).

    `shared`: whether the event says, or does not deny, that its conversation is another organisation's too. Who is not
    established to be of this workspace is external, and who is not established to be a full member is none.
    """

    def __init__(self, home: Installation, directory: Directory, *, shared: bool) -> None:
        self.team = home.team
        self.namespace = home.namespace
        self._home = home
        self._directory = directory
        self._shared = shared

    def of(self, user: str, team: str | None = None) -> Account:
        """The account of an id; `team`: the workspace that the event says it belongs to."""
        if user == self._home.bot_user:
            return Account(self.reader(user), MemberKind.SELF, listed=True, foreign=False)
        if user == SLACKBOT:
            return Account(self.reader(user), MemberKind.BOT, listed=True, foreign=False)
        known = self._directory.account(self._home, user)
        if known is not None and (team is None or f"slack:{team}" in namespaces(known)):
            return Account(known.reader, known.kind, listed=True, foreign=known.kind is MemberKind.EXTERNAL)
        if team is None and self._shared:
            return Account(self.reader(user), MemberKind.EXTERNAL, listed=False, foreign=False)
        if team is not None and team != self.team:
            return Account(f"slack:{team}/{user}", MemberKind.EXTERNAL, listed=False, foreign=True)
        return Account(self.reader(user), MemberKind.GUEST, listed=False, foreign=False)

    def reader(self, user: str) -> str:
        """The reader id of an account of this workspace."""
        return f"{self.namespace}/{user}"
