"""Decides who a listed account is: its reader id, its kind, and its further workspaces (R-ROOM-7)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.people import SLACKBOT, enterprise_teams, kind_of
from turngate.connectors.slack.rooms import Odd
from turngate.schemas.shapes import Member, MemberKind

#: Seconds for which Slack's word on an account is taken for a further listing. `user_change` ends it at once.
KNOWN_FOR = 600.0
#: So many unknown accounts of one room are looked up one by one; more by reading the workspace's whole list first.
FEW = 50
#: Accounts of one page of that list.
_PAGE = 1_000
_MOST_PAGES = 10_000
#: Accounts that are asked about at once.
_AT_ONCE = 8


def member_of(user: Mapping[str, Any], asked: str, home: Installation) -> Member:
    """An account as a listing names it. Raises `Odd` where Slack does not say whose account it is."""
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


class People:
    """The accounts that Slack was asked about, for a while."""

    def __init__(self, api: SlackApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        # of each app its own: what one knows as itself is a bot to another
        self._known: dict[tuple[str, str, str], tuple[float, Member]] = {}
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}

    async def of(self, home: Installation, accounts: Iterable[str]) -> list[Member]:
        """These accounts, in this order. Raises `CallFailed` or `Odd`: one that is not known is never left out."""
        wanted = list(accounts)
        async with self._asking.setdefault((home.app, home.team), asyncio.Lock()):
            now = self._clock()
            keys = {account: (home.app, home.team, account) for account in wanted}
            held = {account: self._known[key] for account, key in keys.items() if key in self._known}
            found = {account: member for account, (until, member) in held.items() if now < until}
            if len(wanted) - len(found) > FEW:
                found |= await self._read_all(home, frozenset(wanted) - found.keys())
            found |= await self._ask(home, [a for a in wanted if a not in found])
        return [found[account] for account in wanted]

    def forget(self, home: Installation, accounts: Iterable[str]) -> None:
        """Ask again about these accounts."""
        for account in accounts:
            self._known.pop((home.app, home.team, account), None)

    async def _ask(self, home: Installation, accounts: list[str]) -> dict[str, Member]:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(account: str) -> tuple[str, Member]:
            async with turn:
                answer = await self._api.call(home, "users.info", user=account)
            return account, self._learn(home, account, answer.get("user"))

        tasks = [asyncio.create_task(one(account)) for account in accounts]
        try:
            return dict(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_all(self, home: Installation, wanted: frozenset[str]) -> dict[str, Member]:
        """What the list of the workspace says of these accounts. Who is not on it is asked about singly."""
        found: dict[str, Member] = {}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            answer = await self._api.call(home, "users.list", limit=_PAGE, cursor=cursor, team_id=_team_id(home))
            members = answer.get("members")
            for user in members if isinstance(members, list) else ():
                if isinstance(user, dict) and user.get("id") in wanted:
                    found[user["id"]] = self._learn(home, user["id"], user)
            cursor = next_cursor(answer)
            if cursor is None:
                return found
        raise Odd("pages_without_end")

    def _learn(self, home: Installation, account: str, user: object) -> Member:
        if not isinstance(user, dict):
            raise Odd("no_account")
        member = member_of(user, account, home)
        self._known[home.app, home.team, account] = (self._clock() + KNOWN_FOR, member)
        return member


def next_cursor(answer: Mapping[str, Any]) -> str | None:
    """Where the next page begins, None on the last. Raises `Odd` where the answer does not say it."""
    metadata = answer.get("response_metadata")
    cursor = metadata.get("next_cursor") if isinstance(metadata, dict) else None
    if cursor is None or cursor == "":
        return None
    if not isinstance(cursor, str):
        raise Odd("no_cursor")
    return cursor


def _team_id(home: Installation) -> str | None:
    """An organisation's token must say whose list it wants."""
    return None if home.enterprise is None else home.team
