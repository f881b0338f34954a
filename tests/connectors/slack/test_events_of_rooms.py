"""Which records an event becomes that changes who can read a room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connectors.slack.scene import C1, NOW, Scene
from turngate.connectors.slack.events import ACCOUNT_CHANGED, translate
from turngate.schemas.inputs import MembershipChanged, MessageDeleted, RoomChanged
from turngate.schemas.shapes import Member, MemberKind


@pytest.mark.parametrize("subtype", ["channel_convert_to_private", "channel_join"])
def test_what_happens_to_a_room_counts_where_its_message_is_hidden(scene: Scene, subtype: str) -> None:
    event = {"type": "message", "subtype": subtype, "channel": "C1", "user": "UBO", "ts": "1700000000.000100"}
    changed, gone = scene.tell({**event, "hidden": True})
    assert isinstance(changed, RoomChanged | MembershipChanged)
    assert isinstance(gone, MessageDeleted)


def test_joins_and_leaves(scene: Scene) -> None:
    scene.world.workspace("T2", bot="UBOT2").user("UEVE")
    for user in ("UBO", "UEVE"):
        scene.world.join(scene.room, user)
    scene.world.leave(scene.room, "UBO")
    found = [r for r in scene.records() if isinstance(r, MembershipChanged)]
    assert [(r.room, r.reader, r.kind.value, r.change.value) for r in found] == [
        (C1, "slack:T1/UBO", "guest", "joined"),  # nothing says yet that it is a full member
        (C1, "slack:T2/UEVE", "external", "joined"),
        (C1, "slack:T1/UBO", "guest", "left"),
    ]


def test_what_happens_to_a_room_is_dated_when_it_is_heard_of_and_what_is_said_when_it_was_said(scene: Scene) -> None:
    scene.world.clock = lambda: NOW // 1000 - 60  # Slack tries for minutes, and its clock may be behind
    scene.world.say(scene.room, "UALEX", "hello")
    scene.world.join(scene.room, "UBO")
    scene.world.convert(scene.room, private=False)
    assert [(type(r).__name__, r.at) for r in scene.records()] == [
        ("MessageObserved", NOW - 60_000),
        ("MembershipChanged", NOW),
        ("RoomChanged", NOW),
        ("MessageObserved", NOW - 60_000),
    ]
    scene.world.clock = lambda: NOW // 1000 + 60
    scene.world.leave(scene.room, "UBO")
    assert scene.one().at == NOW + 60_000


def test_who_was_listed_joins_as_what_it_was_listed_as(scene: Scene) -> None:
    scene.listed(Member(reader="slack:T1/UBO", kind=MemberKind.MEMBER), room="C2")
    scene.world.join(scene.room, "UBO")
    record = scene.one()
    assert isinstance(record, MembershipChanged)
    assert record.kind is MemberKind.MEMBER


def test_the_agents_own_account_comes_and_goes(scene: Scene) -> None:
    scene.world.leave(scene.room, "UBOT", told=False)  # Slack does not always tell of it
    scene.world.leave(scene.room, "UALEX")
    scene.world.convert(scene.room, private=True)
    assert scene.records() == []  # of all this
    scene.world.join(scene.room, "UBOT")
    joined = scene.one()
    assert isinstance(joined, RoomChanged)
    assert (joined.room, joined.what) == (C1, "the agent's account joined")
    scene.world.leave(scene.room, "UBOT")
    left = scene.one()
    assert isinstance(left, RoomChanged)
    assert (left.room, left.what) == (C1, "the agent's account left")


@pytest.mark.parametrize(
    ("happens", "what"),
    [
        (lambda world, room: world.convert(room, private=True), "converted to private"),
        (lambda world, room: world.convert(room, private=False), "converted to public"),
        (lambda world, room: world.share(room, "T2"), "shared"),
        (lambda world, room: world.archive(room), "archived"),
        (lambda world, room: world.archive(room, archived=False), "unarchived"),
        (lambda world, room: world.rename(room, "other"), "renamed"),
    ],
)
def test_what_becomes_of_a_room_makes_its_listings_void(scene: Scene, happens: Any, what: str) -> None:  # R-ROOM-5
    scene.world.workspace("T2", bot="UBOT2")
    happens(scene.world, scene.room)
    found = [(r.room, r.what) for r in scene.records() if isinstance(r, RoomChanged)]
    assert found == [(C1, what)]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "channel_unshared", "channel": "C1", "is_ext_shared": False},
        {"type": "shared_channel_invite_approved", "channel": {"id": "C1", "name": "x"}},
        {"type": "channel_history_changed", "channel": "C1", "latest": "1.1", "ts": "1.2"},
        {"type": "group_deleted", "channel": "C1"},
        {"type": "group_left", "channel": "C1"},
        {"type": "member_joined_channel", "channel": "C1"},
        {"type": "member_joined_channel", "channel": "C1", "user": ["UBO"]},
        {"type": "message", "channel": "C1", "ts": "soon", "text": "x"},
        {"type": "message", "channel": "C1", "ts": "1700000000.000100", "text": 5},
        {"type": "message", "subtype": "channel_join", "channel": "C1", "ts": "1700000000.000100", "user": ["UBO"]},
    ],
)
def test_whatever_else_may_change_readers_makes_them_void_too(scene: Scene, event: dict[str, Any]) -> None:
    assert [r.room for r in scene.tell(event) if isinstance(r, RoomChanged)] == [C1]


def test_a_changed_id_makes_both_void(scene: Scene) -> None:
    scene.world.change_id(scene.room, "C7")
    assert [r.room for r in scene.records() if isinstance(r, RoomChanged)] == [C1, "slack:T1/C7"]


@pytest.mark.parametrize("kind", ["tokens_revoked", "app_uninstalled", "grid_migration_started", "team_access_revoked"])
def test_what_concerns_the_workspace_makes_every_listed_room_void(scene: Scene, kind: str) -> None:
    for room in ("C1", "C2"):
        scene.listed(Member(reader="slack:T1/UALEX", kind=MemberKind.MEMBER), room=room)
    found = [r.room for r in scene.tell({"type": kind}) if isinstance(r, RoomChanged)]
    assert found == [C1, "slack:T1/C2"]


def test_events_that_slack_left_out_are_a_gap(scene: Scene) -> None:
    scene.listed(Member(reader="slack:T1/UALEX", kind=MemberKind.MEMBER))
    limited = {"type": "app_rate_limited", "team_id": "T1", "api_app_id": "A1", "minute_rate_limited": 1_800_000_000}
    (record,) = translate(limited, scene.home, scene.directory, NOW)
    assert isinstance(record, RoomChanged)
    assert record.at == NOW


@pytest.mark.parametrize(
    ("becomes", "void"),
    [
        ({}, False),
        ({"odd": {"profile": {"status_text": "lunch"}}}, False),
        ({"guest": True}, True),
        ({"deleted": True}, True),
        ({"odd": {"team_id": None}}, True),
    ],
)
def test_an_account_that_becomes_something_else(scene: Scene, becomes: dict[str, Any], void: bool) -> None:
    scene.listed(Member(reader="slack:T1/UALEX", kind=MemberKind.MEMBER))
    scene.listed(Member(reader="slack:T1/UBO", kind=MemberKind.MEMBER), room="C2")
    user = scene.acme.user("UALEX", **becomes).json("T1", None)
    found = [(r.room, r.what) for r in scene.tell({"type": "user_change", "user": user}) if isinstance(r, RoomChanged)]
    assert found == ([(C1, ACCOUNT_CHANGED)] if void else [])


def test_an_organisations_account_is_not_guessed() -> None:
    scene = Scene(enterprise="E1")
    scene.world.join(scene.room, "UBO")
    scene.world.leave(scene.room, "UBO")
    unknown = scene.records()
    assert [type(r).__name__ for r in unknown] == ["RoomChanged", "RoomChanged"]  # its id's workspace is not known
    scene.listed(Member(reader="slack:T0/UBO", kind=MemberKind.MEMBER, workspaces=("slack:T1",)), room="C2")
    scene.world.join(scene.room, "UBO")
    (joined,) = scene.records()
    assert isinstance(joined, MembershipChanged)
    assert (joined.reader, joined.kind.value, joined.workspaces) == ("slack:T0/UBO", "member", ("slack:T1",))
