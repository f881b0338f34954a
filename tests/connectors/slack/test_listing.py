"""A listing has everybody who can read a conversation, or says that it does not know (R-ROOM-2, R-ROOM-6, R-ROOM-7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connectors.slack.conftest import APPS, long, members
from tests.connectors.slack.conftest import listing_of as listed
from tests.connectors.slack.scene import installed
from tests.slack import Call, Fault, Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.listing import Listing
from turngate.connectors.slack.resolving import People

NS = "slack:T1"


def shape(listing: Listing) -> tuple[str, str, tuple[str, ...]]:
    assert listing.error is None
    info = listing.info
    assert info is not None
    assert info.kind is not None
    assert info.visibility is not None
    return info.kind.value, info.visibility.value, info.workspaces or ()


async def test_a_public_channel(slack: Slack, acme: Workspace, home: Installation, api: SlackApi) -> None:
    acme.user("UONE", single_channel=True)
    acme.user("UFLOW", workflow=True)
    acme.user("UGONE", deleted=True)
    everybody = ["UBOT", "UALEX", "UGUEST", "UONE", "UAPP", "UFLOW", "UGONE", "USLACKBOT"]
    acme.user("USLACKBOT")
    slack.channel("C1", acme, everybody)
    listing = await listed(api, home)
    assert shape(listing) == ("channel", "workspace", (NS,))
    assert members(listing) == {
        "UBOT": "self",
        "UALEX": "member",
        "UGUEST": "guest",
        "UONE": "guest",
        "UAPP": "bot",
        "UFLOW": "bot",
        "UGONE": "guest",  # Slack leaves the flags out, and a missing flag is not `false`
        "USLACKBOT": "bot",
    }


async def test_conversations_that_only_their_members_read(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"], private=True)
    slack.channel("C2", acme, ["UBOT", "UALEX"], private=True, odd={"name": "mpdm-alex--bo-1"})
    slack.group("G1", acme, ["UALEX", "UBO"])
    slack.direct("D1", acme, "UALEX")
    assert [shape(await listed(api, home, room))[:2] for room in ("C1", "C2", "G1", "D1")] == [
        ("channel", "members"),
        ("channel", "members"),
        ("group", "members"),
        ("direct", "members"),
    ]
    assert members(await listed(api, home, "D1")) == {"UBOT": "self", "UALEX": "member"}


@pytest.mark.parametrize(
    "how",
    [
        {"external": ["T2"]},
        {"external": ["T2"], "private": True},
        {"pending": ["T2"]},
        {"pending": ["T2"], "private": True},
        {"odd": {"is_shared": True}},
        {"odd": {"is_shared": True}, "private": True},
        {"odd": {"connected_team_ids": ["E2"]}},
        {"odd": {"connected_limited_team_ids": ["T2"]}},
        {"odd": {"shared_team_ids": ["T1", "T2"]}},
        {"odd": {"is_org_shared": True, "is_shared": True, "is_org_mandatory": True}},
        {"odd": {"is_org_shared": True, "is_shared": True, "shared_team_ids": ["T1", "E1"]}},
    ],
)
async def test_what_others_may_read_is_open(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, how: dict[str, Any]
) -> None:
    slack.workspace("T2", bot="UBOT2")
    slack.channel("C1", acme, ["UBOT", "UALEX"], **how)
    listing = await listed(api, home)
    assert shape(listing)[1] == "open"
    assert len(slack.called("conversations.members")) == 0  # whoever is listed, others read along


async def test_a_direct_message_with_another_organisation_is_open(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    slack.workspace("T2", bot="UBOT2").user("UEVE")
    slack.direct("D1", acme, "UEVE", external=["T2"])
    slack.direct("D2", acme, "UEVE")  # no flag says so, as Slack leaves most of them out
    assert shape(await listed(api, home, "D1"))[:2] == ("direct", "open")
    assert shape(await listed(api, home, "D2"))[:2] == ("direct", "open")


async def test_a_stranger_makes_a_room_open_whatever_the_flags_say(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    slack.workspace("T2", bot="UBOT2").user("UEVE", odd={"is_stranger": False})
    slack.channel("C1", acme, ["UBOT", "UALEX", "UEVE"], private=True)
    assert shape(await listed(api, home))[1] == "open"


@pytest.mark.parametrize("flag", ["is_private", "is_shared", "is_ext_shared", "is_pending_ext_shared", "is_org_shared"])
@pytest.mark.parametrize("value", [None, "false", 0])
async def test_a_missing_flag_is_not_false(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, flag: str, value: Any
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX"], odd={flag: value})
    assert (await listed(api, home)).error == "flag_missing"


@pytest.mark.parametrize(
    ("odd", "error"),
    [
        ({"id": "C9"}, "other_conversation"),
        ({"context_team_id": "T9"}, "other_workspace"),
        ({"is_im": True, "is_mpim": True}, "kind_contradicted"),
        ({"is_mpim": True, "is_private": False}, "kind_contradicted"),
        ({"is_im": True, "user": "UALEX", "is_private": False}, "kind_contradicted"),
        ({"is_im": True, "is_private": True, "user": None}, "no_counterpart"),
        ({"shared_team_ids": "T1"}, "teams_unreadable"),
        ({"num_members": 3}, "members_missing"),
    ],
)
async def test_an_odd_answer_is_no_listing(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, odd: dict[str, Any], error: str
) -> None:
    room = slack.channel("C1", acme, ["UBOT", "UALEX"], odd=odd)
    if "num_members" in odd:  # whom Slack counts and does not list
        room.odd = {}
        room.members.append("UBO")
        slack.before["conversations.members"] = lambda call: room.members.remove("UBO")
        seen = iter(("UBO",))
        slack.before["conversations.info"] = lambda call: (
            room.members.append(next(seen)) if slack.called("conversations.members") else None
        )
    assert (await listed(api, home)).error == error


@pytest.mark.parametrize(
    ("odd", "error"),
    [
        ({"team_id": None}, "account_without_team"),
        ({"id": "UBO"}, "other_account"),
    ],
)
async def test_an_odd_account_is_no_listing(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, odd: dict[str, Any], error: str
) -> None:
    acme.user("UALEX", odd=odd)
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    assert (await listed(api, home)).error == error


@pytest.mark.parametrize("missing", ["is_bot", "is_restricted", "is_ultra_restricted"])
async def test_who_is_not_established_to_be_a_full_member_is_none(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, missing: str
) -> None:
    acme.user("UALEX", odd={missing: None})
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    assert members(await listed(api, home))["UALEX"] == "guest"


async def test_every_page_is_read(slack: Slack, acme: Workspace, home: Installation, api: SlackApi) -> None:
    users = [f"U{n:04d}" for n in range(2_500)]
    for user in users:
        acme.user(user)
    slack.channel("C1", acme, ["UBOT", *users])
    listing = await listed(api, home)
    assert set(members(listing)) == {"UBOT", *users}
    # 2 to look at the room, 3 pages of members, 3 of the workspace's accounts, and none of these singly
    assert (len(slack.called("conversations.members")), len(slack.calls)) == (3, 8)
    pages = listing.pages(at=9)
    assert [(p.page, p.last, len(p.members)) for p in pages] == [(0, False, 1000), (1, False, 1000), (2, True, 501)]
    assert [p.info is None for p in pages] == [False, True, True]
    assert len({(p.refresh, p.started_at, p.room) for p in pages}) == 1


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize(
    ("method", "after"),
    [
        ("conversations.info", 0),
        ("conversations.members", 0),
        ("conversations.members", 1),
        ("users.info", 3),
        ("conversations.info", 1),
    ],
)
async def test_what_fails_midway_is_no_shorter_listing(
    slack: Slack, acme: Workspace, home: Installation, fault: Fault, method: str, after: int
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX", "UBO", "UCY"])
    slack.page = 2
    if method == "users.info":
        long(slack)
    # aiohttp asks once more where a connection was closed on it
    slack.fail(method, fault, after=after, times=2 if fault in (Fault.REFUSED, Fault.RESET) else 1)
    never = fault in (Fault.LOST, Fault.SILENT)
    async with SlackApi(slack.url, patience=0.3 if never else 10) as hasty, SlackApi(slack.url) as api:
        listing = await listed(hasty, home)
        assert listing.error is not None
        assert listing.error.startswith(method)
        (page,) = listing.pages(at=9)
        assert (page.members, page.info, page.error, page.last) == ((), None, listing.error, True)
        assert listing.wait == (1.0 if fault is Fault.RATE_LIMITED else 0.0)  # worth another try, the delivered twin:
        if fault is not Fault.RATE_LIMITED:
            assert set(members(await listed(api, home))) == {"UBOT", "UALEX", "UBO", "UCY"}


async def test_what_slack_refuses_is_not_tried_again(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    slack.channel("C1", acme, ["UALEX"], private=True)
    listing = await listed(api, home)
    assert (listing.error, listing.wait) == ("conversations.info: channel_not_found", None)


@pytest.mark.parametrize("code", ["user_not_found", "user_not_visible"])
async def test_a_member_who_cannot_be_resolved_is_not_left_out(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, code: str
) -> None:
    slack.channel("C1", acme, ["UBOT", "UALEX", "UBO"])
    long(slack)
    slack.fail("users.info", code, after=1)
    listing = await listed(api, home)
    assert (listing.error, listing.members, listing.wait) == (f"users.info: {code}", (), None)
    assert set(members(await listed(api, home))) == {"UBOT", "UALEX", "UBO"}


async def test_after_a_429_slack_is_not_asked_before_its_time(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    other = installed(slack.workspace("T2", bot="UBOT2"))
    slack.channel("C1", acme, ["UBOT", "UALEX"])
    slack.channel("C2", slack.workspaces["T2"], ["UBOT2"])
    slack.fail("conversations.info", Fault.RATE_LIMITED)
    slack.retry_after = 40
    first, second = await listed(api, home), await listed(api, home)
    assert (first.wait, first.error, second.error) == (40, *["conversations.info: ratelimited"] * 2)
    assert second.wait is not None
    assert 39 < second.wait <= 40
    assert len(slack.calls) == 1
    assert (await listed(api, other, "C2")).error is None  # another workspace has its own limit


@pytest.mark.parametrize("change", ["joined", "left", "converted", "shared"])
async def test_what_changes_while_it_is_listed(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi, change: str
) -> None:
    slack.workspace("T2", bot="UBOT2")
    room = slack.channel("C1", acme, ["UBOT", "UALEX", "UBO"])
    slack.page = 2

    def happen(call: Call) -> None:
        if len(slack.called("conversations.members")) == 2:
            match change:
                case "joined":
                    slack.join(room, "UCY")
                case "left":
                    slack.leave(room, "UALEX")
                case "converted":
                    slack.convert(room, private=True)
                case "shared":
                    slack.share(room, "T2")

    slack.before["conversations.members"] = happen
    listing = await listed(api, home)
    assert (listing.error, listing.wait) == ("changed_meanwhile", 0.0)
    assert (await listed(api, home)).error is None


async def test_nobody_is_left_out_where_a_leave_shifts_the_pages(
    slack: Slack, acme: Workspace, home: Installation, api: SlackApi
) -> None:
    room = slack.channel("C1", acme, ["UBOT", "UALEX", "UBO", "UCY"], private=True)
    slack.page = 2
    slack.count_pages()

    def happen(call: Call) -> None:
        if call.args.get("cursor"):
            slack.before.clear()
            slack.leave(room, "UALEX")  # so UBO is on neither page, and three are listed where three are left

    slack.before["conversations.members"] = happen
    assert (await listed(api, home)).error == "changed_meanwhile"
    assert set(members(await listed(api, home))) == {"UBOT", "UBO", "UCY"}


async def test_an_organisation_with_several_workspaces(slack: Slack) -> None:
    one = slack.workspace("T1", bot="UBOT", enterprise="E1")
    two = slack.workspace("T2", bot="UBOT2", enterprise="E1")
    three = slack.workspace("T3", bot="UBOT3", enterprise="E3")
    one.user("UALEX", teams=("T2",))
    two.user("UBO")
    two.user("UGUEST", guest=True)
    three.user("UEVE")
    home = installed(one)
    slack.channel("C1", one, ["UBOT", "UALEX", "UBO", "UGUEST"], org=["T2"])
    slack.channel("C2", one, ["UBOT", "UALEX", "UEVE"], org=["T2"])
    async with SlackApi(slack.url) as api:
        people = People(api, Installations(APPS, [home, installed(two)]))
        listing = await listed(api, home, people=people)
        assert shape(listing) == ("channel", "workspace", ("slack:T1", "slack:T2"))
        assert [(m.reader, m.kind.value, m.workspaces) for m in listing.members] == [
            ("slack:T1/UBOT", "self", ()),
            ("slack:T1/UALEX", "member", ("slack:T2",)),
            ("slack:T2/UBO", "member", ()),
            ("slack:T2/UGUEST", "guest", ()),
        ]
        assert shape(await listed(api, home, "C2", people))[1] == "open"
