"""Decides whom Slack is asked about listed accounts, and for how long its word is taken.

On Enterprise Grid an answer says what an account is in the workspace whose token asked. It may be a guest in another
one, so each is asked; where there is no token of that workspace alone, nothing is established there.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.members import member_of, namespaces, next_cursor
from turngate.connectors.slack.rooms import Odd
from turngate.schemas.shapes import Member, MemberKind

#: Seconds for which Slack's word on an account is taken for a further listing. `user_change` ends it at once.
KNOWN_FOR = 600.0
#: The same in a workspace whose whole list is few pages, and how many that are.
KNOWN_FOR_IF_SHORT, SHORT = 60.0, 2
#: So many unknown accounts of one room are looked up one by one; more by reading the workspace's whole list first.
FEW = 50
#: Of a workspace of unknown length that list is tried for more than so many.
FEW_AT_FIRST = 2
#: Accounts of one page of that list.
PAGE = 1_000
_MOST_PAGES = 10_000
#: Accounts that are asked about at once.
_AT_ONCE = 8
_NOT_THERE = ("user_not_found", "user_not_visible")
_Home = tuple[str, str]


class People:
    """The accounts that Slack was asked about, for a while. `installations`: further workspaces of an organisation."""

    def __init__(
        self, api: SlackApi, installations: Installations | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._installations = Installations([], []) if installations is None else installations
        self._clock = clock
        # by account, and of each app and workspace its own: what one knows as itself is a bot to another
        self._known: defaultdict[str, dict[_Home, tuple[float, Member]]] = defaultdict(dict)
        self._asking: defaultdict[_Home, asyncio.Lock] = defaultdict(asyncio.Lock)
        #: Whether a workspace's list is short, and when it was read last.
        self._lists: dict[_Home, tuple[bool, float]] = {}
        self._everywhere: dict[str, bool] = {}

    async def of(self, home: Installation, accounts: Iterable[str]) -> list[Member]:
        """These accounts, in this order. Raises `CallFailed` or `Odd`: one that is not known is never left out."""
        wanted = list(accounts)
        said = await self._said(home, wanted)
        full = {a: m for a, m in said.items() if m.kind is MemberKind.MEMBER}
        elsewhere = {a: m for a, m in full.items() if namespaces(m) != (home.namespace,)}
        found = said | (await self._established(home, elsewhere) if elsewhere else {})
        return [found[account] for account in wanted]

    def forget(self, accounts: Iterable[str]) -> None:
        """Ask again about these accounts."""
        for account in accounts:
            self._known.pop(account, None)

    async def _established(self, home: Installation, elsewhere: Mapping[str, Member]) -> dict[str, Member]:
        """Accounts of other workspaces too, as full members of those where Slack says so to the workspace's own token.

        Whose id would claim more than that is a guest.
        """
        full: dict[str, set[str]] = {account: set() for account in elsewhere}
        for team in sorted({team for member in elsewhere.values() for team in namespaces(member)}):
            there = self._in(home, team)
            if there is None:
                continue
            accounts = [account for account, member in elsewhere.items() if team in namespaces(member)]
            if await self._of_all(there):  # of several workspaces it is not told which one is meant
                accounts = [account for account in accounts if not elsewhere[account].workspaces]
            said = elsewhere if there is home else await self._said(there, accounts, all_of_them=False)
            for account in accounts:
                if account in said and said[account].kind is MemberKind.MEMBER:
                    full[account].add(team)
        return {account: _as(member, full[account]) for account, member in elsewhere.items()}

    def _in(self, home: Installation, team: str) -> Installation | None:
        """The agent's installation in another workspace of the organisation."""
        if team == home.namespace:
            return home
        found = self._installations.of_agent(home.tenant, home.agent, team.removeprefix("slack:"))
        return found if found is not None and found.enterprise == home.enterprise else None

    async def _of_all(self, home: Installation) -> bool:
        """Whether its token is the whole organisation's."""
        if home.token not in self._everywhere:
            answer, _ = await self._api.identity(home)
            self._everywhere[home.token] = answer.get("is_enterprise_install") is not False
        return self._everywhere[home.token]

    async def _said(self, home: Installation, wanted: list[str], *, all_of_them: bool = True) -> dict[str, Member]:
        """What Slack says of these accounts in one workspace; not `all_of_them`: without those that are not there."""
        key = (home.app, home.team)
        async with self._asking[key]:
            now = self._clock()
            held = {account: self._known[account].get(key) for account in wanted if account in self._known}
            found = {account: known[1] for account, known in held.items() if known is not None and now < known[0]}
            missing = frozenset(wanted) - found.keys()
            if len(missing) > FEW:
                found |= await self._listed(home, missing, _MOST_PAGES)
            elif self._worth_a_list(key, len(missing), now):
                with suppress(CallFailed):
                    found |= await self._listed(home, missing, SHORT)
            found |= await self._ask(home, [a for a in wanted if a not in found], all_of_them=all_of_them)
        return found

    def _worth_a_list(self, key: _Home, missing: int, now: float) -> bool:
        """Whether the workspace's list is, or may be, so short that it is asked for instead of a few accounts."""
        short, read_at = self._lists.get(key, (None, 0.0))
        if short is None:
            return missing > FEW_AT_FIRST
        return short and missing > 0 and now - read_at >= KNOWN_FOR_IF_SHORT

    async def _ask(self, home: Installation, accounts: list[str], *, all_of_them: bool) -> dict[str, Member]:
        turn = asyncio.Semaphore(_AT_ONCE)
        found: dict[str, Member] = {}

        async def one(account: str) -> None:
            async with turn:
                try:
                    answer = await self._api.call(home, "users.info", user=account)
                except CallFailed as failed:
                    if all_of_them or failed.code not in _NOT_THERE:
                        raise
                    return
            found[account] = self._learn(home, account, answer.get("user"))

        tasks = [asyncio.create_task(one(account)) for account in accounts]
        try:
            await asyncio.gather(*tasks)
            return found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listed(self, home: Installation, wanted: frozenset[str], pages: int) -> dict[str, Member]:
        """What the list of the workspace says of these accounts, in so many pages. Who is not there is asked about.

        Of a short list everybody is remembered, so that one reading serves every room.
        """
        key, users = (home.app, home.team), dict[str, dict[str, Any]]()
        cursor: str | None = None
        for page in range(pages):
            answer = await self._api.call(home, "users.list", limit=PAGE, cursor=cursor, team_id=_team_id(home))
            members = answer.get("members")
            for user in members if isinstance(members, list) else ():
                if isinstance(user, dict) and (page < SHORT or user.get("id") in wanted):
                    users[str(user.get("id"))] = user
            cursor = next_cursor(answer)
            if cursor is None:
                break
        if cursor is not None and pages == _MOST_PAGES:
            raise Odd("pages_without_end")
        self._lists[key] = (cursor is None and page < SHORT, self._clock())
        for account in users.keys() - wanted if self._lists[key][0] else ():
            with suppress(Odd):
                self._learn(home, account, users[account])
        return {account: self._learn(home, account, users[account]) for account in wanted & users.keys()}

    def _learn(self, home: Installation, account: str, user: object) -> Member:
        if not isinstance(user, dict):
            raise Odd("no_account")
        member = member_of(user, account, home)
        key = (home.app, home.team)
        short, _ = self._lists.get(key, (False, 0.0))
        held_for = KNOWN_FOR_IF_SHORT if short else KNOWN_FOR
        self._known[account][key] = (self._clock() + held_for, member)
        return member


def _as(member: Member, full: set[str]) -> Member:
    first, *_ = namespaces(member)
    if first not in full:
        return Member(reader=member.reader, kind=MemberKind.GUEST)
    return Member(reader=member.reader, kind=member.kind, workspaces=tuple(sorted(full - {first})))


def _team_id(home: Installation) -> str | None:
    """An organisation's token must say whose list it wants."""
    return None if home.enterprise is None else home.team
