"""Slack is asked who an account is, not too often, and what it does not say of a workspace is not taken as said."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.connectors.slack.conftest import APPS, Log, listing_of, long, members
from tests.connectors.slack.scene import installed
from tests.slack import Slack, User, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.listing import Listing
from turngate.connectors.slack.resolving import FEW, KNOWN_FOR, KNOWN_FOR_IF_SHORT, PAGE, SHORT, People
from turngate.schemas.inputs import RoomChanged


async def test_an_account_is_asked_about_once_for_a_while(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX", "UBO"])
    slack.channel("C2", acme, ["UBOT", "UALEX"])
    long(slack)
    now = [0.0]
    people = People(api, clock=lambda: now[0])
    await asyncio.gather(listing_of(api, home, "C1", people), listing_of(api, home, "C2", people))
    assert len(slack.called("users.info")) == 3
    acme.user("UALEX", guest=True)
    assert members(await listing_of(api, home, "C1", people))["UALEX"] == "member"
    people.forget(["UALEX"])
    now[0] = 1
    assert members(await listing_of(api, home, "C1", people))["UALEX"] == "guest"
    assert len(slack.called("users.info")) == 4
    now[0] = KNOWN_FOR
    await listing_of(api, home, "C1", people)
    assert len(slack.called("users.info")) == 6  # all but the one that was asked about later than the rest


async def test_two_agents_of_a_workspace_are_bots_to_each_other(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    acme.user("UAPP", bot=True)
    other = replace(home, app="A2", agent="scout", bot_user="UAPP")
    slack.channel("C1", acme, ["UBOT", "UAPP", "UALEX"])
    people = People(api)
    kinds = [members(await listing_of(api, one, people=people)) for one in (home, other, home)]
    assert [(k["UBOT"], k["UAPP"]) for k in kinds] == [("self", "bot"), ("bot", "self"), ("self", "bot")]


async def test_strangers_are_not_on_the_workspaces_list(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    users = [f"U{n:04d}" for n in range(FEW + 1)]
    for user in users:
        acme.user(user)
    slack.workspace("T2", bot="UBOT2").user("UEVE")
    slack.channel("C1", acme, ["UBOT", *users, "UEVE"])
    listing = await listing_of(api, home)
    assert listing.info is not None
    assert listing.info.visibility == "open"
    assert [call.args["user"] for call in slack.called("users.info")] == ["UEVE"]


async def test_one_reading_of_a_short_list_serves_every_room_for_a_minute(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    rooms = ["C1", "C2", "C3"]
    for room in rooms:
        slack.channel(room, acme, ["UBOT", "UALEX", "UBO", "UCY"])
    now = [0.0]
    people = People(api, clock=lambda: now[0])
    for room in rooms:
        assert members(await listing_of(api, home, room, people))["UALEX"] == "member"
    acme.user("UALEX", guest=True)  # and nothing tells of it
    now[0] = KNOWN_FOR_IF_SHORT
    for room in rooms:
        assert members(await listing_of(api, home, room, people))["UALEX"] == "guest"
    assert len(slack.called("users.list")) == 2
    assert slack.called("users.info") == []
    acme.user("UNEW")
    slack.join(slack.rooms["C1"], "UNEW")
    assert members(await listing_of(api, home, "C1", people))["UNEW"] == "member"
    assert len(slack.called("users.list")) == 2
    assert len(slack.called("users.info")) == 1


async def test_a_list_that_turns_out_to_be_long_is_not_read_to_its_end_for_a_few(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX", "UBO", "UCY"])
    slack.page = 2
    now = [0.0]
    people = People(api, clock=lambda: now[0])
    for moment in (0.0, KNOWN_FOR_IF_SHORT, KNOWN_FOR):
        now[0] = moment
        assert len(members(await listing_of(api, home, people=people))) == 4
    assert len(slack.called("users.list")) == SHORT
    assert len(slack.called("users.info")) == 4  # once more for each, but that two of these were on its first pages
    assert PAGE * SHORT >= 2_000  # as docs/slack.md says


@pytest.mark.parametrize(
    ("members_there", "accounts", "first"),
    [
        (10, 100, {"conversations.info": 2, "conversations.members": 1, "users.list": 1}),
        (10, 2_500, {"conversations.info": 2, "conversations.members": 1, "users.list": 2, "users.info": 9}),
        (1_000, 2_500, {"conversations.info": 2, "conversations.members": 2, "users.list": 3}),
    ],
)
async def test_what_a_listing_costs(  # as docs/slack.md says
    slack: Slack, home: Installation, acme: Workspace, api: SlackApi, members_there: int, accounts: int, first: Any
) -> None:
    users = [f"W{n:05d}" for n in range(accounts)]
    for user in users:
        acme.user(user)
    slack.channel("C1", acme, ["UBOT", *users[-members_there + 1 :]])
    people = People(api)
    assert len(members(await listing_of(api, home, people=people))) == members_there
    assert Counter(call.method for call in slack.calls) == first
    slack.calls.clear()
    await listing_of(api, home, people=people)
    again = {method: calls for method, calls in first.items() if method.startswith("conversations")}
    assert Counter(call.method for call in slack.calls) == again


class Organisation:
    """Two workspaces, and a channel in each and in both; Alex is in both, and in the first one he is first."""

    def __init__(self, slack: Slack, *, org_wide: bool = False) -> None:
        self.one, self.two = (slack.workspace(t, bot="UBOT", enterprise="E1", org_wide=org_wide) for t in ("T1", "T2"))
        self.one.user("UALEX", teams=("T2",))
        self.one.user("UBO")
        self.homes = {home.id: installed(home) for home in (self.one, self.two)}
        slack.channel("C1", self.one, ["UBOT", "UALEX", "UBO"])
        slack.channel("C2", self.two, ["UBOT", "UALEX"])

    @property
    def alex(self) -> User:
        return self.one.users["UALEX"]

    def people(self, api: SlackApi, *without: str) -> People:
        return People(api, Installations(APPS, [home for team, home in self.homes.items() if team not in without]))


def alex(listing: Listing) -> tuple[str, str, tuple[str, ...]]:
    (found,) = (m for m in listing.members if m.reader.endswith("/UALEX"))
    return found.reader, found.kind.value, found.workspaces


async def alex_in_both(api: SlackApi, organisation: Organisation, people: People) -> list[tuple[str, tuple[str, ...]]]:
    """As what each workspace's room lists him."""
    found = [alex(await listing_of(api, organisation.homes[t], c, people)) for t, c in (("T1", "C1"), ("T2", "C2"))]
    assert {reader for reader, _, _ in found} == {"slack:T1/UALEX"}
    return [(kind, workspaces) for _, kind, workspaces in found]


@pytest.mark.parametrize(
    ("guest_in", "listed"),
    [
        ((), [("member", ("slack:T2",)), ("member", ("slack:T2",))]),
        (("T2",), [("member", ()), ("guest", ())]),
        (("T1",), [("guest", ()), ("guest", ())]),  # under an id of T1 he would count as a full member there
        (("T1", "T2"), [("guest", ()), ("guest", ())]),
    ],
)
async def test_who_is_in_two_workspaces_is_asked_about_in_each(
    slack: Slack, api: SlackApi, guest_in: tuple[str, ...], listed: list[tuple[str, tuple[str, ...]]]
) -> None:
    organisation = Organisation(slack)
    organisation.alex.guest_in = guest_in
    assert await alex_in_both(api, organisation, organisation.people(api)) == listed


async def test_where_a_workspace_is_not_asked_nobody_is_taken_to_be_a_full_member(slack: Slack, api: SlackApi) -> None:
    organisation = Organisation(slack)
    first = await listing_of(api, organisation.homes["T1"], "C1", organisation.people(api, "T2"))
    assert alex(first)[1:] == ("member", ())
    second = await listing_of(api, organisation.homes["T2"], "C2", organisation.people(api, "T1"))
    assert alex(second)[1:] == ("guest", ())


async def test_an_organisations_token_establishes_it_for_those_of_one_workspace_alone(
    slack: Slack, api: SlackApi
) -> None:
    organisation = Organisation(slack, org_wide=True)
    organisation.alex.guest_in = ("T2",)
    listing = await listing_of(api, organisation.homes["T1"], "C1", organisation.people(api))
    assert members(listing) == {"UBOT": "self", "UALEX": "guest", "UBO": "member"}


@pytest.mark.parametrize(("org_wide", "without", "kind"), [
    (False, (), "member"),
    (False, ("T1",), "guest"),
    (True, (), "member"),
])  # fmt: skip
async def test_who_is_of_another_workspace_alone_is_asked_about_there(
    slack: Slack, api: SlackApi, org_wide: bool, without: tuple[str, ...], kind: str
) -> None:
    organisation = Organisation(slack, org_wide=org_wide)
    slack.channel("C3", organisation.one, ["UBOT", "UBO"], org=["T2"])
    listing = await listing_of(api, organisation.homes["T2"], "C3", organisation.people(api, *without))
    assert members(listing)["UBO"] == kind


async def test_who_becomes_a_guest_in_one_workspace_is_looked_at_anew_in_others(slack: Slack, api: SlackApi) -> None:
    organisation, log, directory = Organisation(slack), Log(), Directory()
    people = organisation.people(api)
    taking = Intake(Installations(APPS, organisation.homes.values()), directory, log.append)
    for page in (await listing_of(api, organisation.homes["T1"], "C1", people)).pages(1):
        await taking.listed(page)
    told = {"type": "user_change", "user": organisation.alex.json("T2", "E1")}
    await taking.take("A1", slack.tell(organisation.two, told))
    assert log.records == []  # a picture
    organisation.alex.guest_in = ("T2",)
    told = {"type": "user_change", "user": organisation.alex.json("T2", "E1")}
    await taking.take("A1", slack.tell(organisation.two, told))
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T1/C1"]
    people.forget(["UALEX"])  # as whoever lists does then
    assert alex(await listing_of(api, organisation.homes["T1"], "C1", people))[1:] == ("member", ())
