"""Which records an event becomes, for everything that Slack tells of who can read what."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.slack.conftest import installed
from tests.slack import Conversation, Workspace
from tests.slack.world import World
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.events import ACCOUNT_CHANGED, UNREADABLE, translate
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.listing import Listing
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MembershipChanged, MessageDeleted, MessageObserved, Record, RoomChanged
from turngate.schemas.metadata import TURN, metadata
from turngate.schemas.shapes import Member, MemberKind, RoomInfo

CODEC = Codec()
NOW = 1_800_000_000_000
C1 = "slack:T1/C1"


class Scene:
    """A workspace with a channel, and what its installation makes of the events that are told."""

    def __init__(self, **more: Any) -> None:
        self.world = World()
        self.world.clock = lambda: NOW // 1000
        self.acme: Workspace = self.world.workspace("T1", bot="UBOT", **more)
        for user in ("UALEX", "UBO"):
            self.acme.user(user)
        self.acme.user("UAPP", bot=True)
        self.room: Conversation = self.world.channel("C1", self.acme, ["UBOT", "UALEX"])
        self.home: Installation = installed(self.acme)
        self.directory = Directory()

    def listed(self, *members: Member, room: str = "C1") -> None:
        for page in Listing(self.home, room, NOW, RoomInfo(), members).pages(NOW):
            self.directory.learn(page)

    def records(self) -> list[Record]:
        told, self.world.queue = self.world.queue, []
        return [record for envelope in told for record in translate(envelope, self.home, self.directory, NOW)]

    def one(self) -> Record:
        (record,) = self.records()
        return record

    def tell(self, event: dict[str, Any], **more: Any) -> list[Record]:
        self.world.tell(self.acme, event, **more)
        return self.records()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def said(record: Record) -> MessageObserved:
    assert isinstance(record, MessageObserved)
    return record


def test_a_message_of_a_person(scene: Scene) -> None:
    ts = scene.world.say(scene.room, "UALEX", "hello")
    record = scene.one()
    assert record == MessageObserved(
        tenant="acme",
        at=NOW,
        agent="mesh",
        room=C1,
        message=f"{C1}/{ts}",
        author="slack:T1/UALEX",
        author_kind="person",  # type: ignore[arg-type]
        text="hello",
    )


def test_a_mention_of_the_agent_is_told_by_its_message_alone(scene: Scene) -> None:
    scene.world.say(scene.room, "UALEX", "<@UBOT> hello", attachments=[{"is_share": True}])
    mention = copy.deepcopy(scene.world.queue[0])
    del mention["event"]["channel_type"], mention["event"]["attachments"]  # so its quotes would not be known
    mention["event"]["type"], mention["event_id"] = "app_mention", "Ev9"
    scene.world.queue.insert(0, mention)
    assert len(said(scene.one()).quotes) == 1


def test_threads_and_broadcasts(scene: Scene) -> None:
    root = scene.world.say(scene.room, "UALEX", "root", thread_ts=None)
    scene.world.say(scene.room, "UBO", "reply", thread_ts=root)
    more = {"subtype": "thread_broadcast", "thread_ts": root, "root": scene.room.messages[root]}
    scene.world.say(scene.room, "UBO", "to all", **more)
    records = [said(r) for r in scene.records()]
    assert [r.thread for r in records] == [None, root, root]
    assert records[2].quotes == (f"message:{C1}/{root}",)


@pytest.mark.parametrize(
    ("message", "author", "kind"),
    [
        ({"user": "UALEX", "team": "T1"}, "slack:T1/UALEX", "person"),
        ({"user": "UALEX"}, "slack:T1/UALEX", "person"),
        ({"user": "UALEX", "subtype": "me_message"}, "slack:T1/UALEX", "person"),
        ({"user": "UALEX", "subtype": "file_share", "files": [{"id": "F1"}]}, "slack:T1/UALEX", "person"),
        ({"user": "UALEX", "subtype": "never_heard_of"}, "slack:T1/UALEX", "person"),
        ({"user": "UEVE", "team": "T2"}, "slack:T2/UEVE", "external"),
        ({"user": "UEVE", "team": "T1", "user_team": "T2"}, "slack:T2/UEVE", "external"),
        ({"user": "UALEX", "bot_id": "B1"}, "slack:T1/UALEX", "bot"),
        ({"bot_id": "B1", "subtype": "bot_message", "username": "Alex"}, "slack:T1/B1", "bot"),
        ({"user": "USLACKBOT"}, "slack:T1/USLACKBOT", "bot"),
        ({"user": "UBOT", "bot_id": "BBOT"}, "slack:T1/UBOT", "self"),
        ({"user": "UALEX", "subtype": "channel_topic"}, None, "system"),
        ({"user": "UEVE", "team": "T2", "subtype": "channel_topic"}, "slack:T2/UEVE", "external"),  # whose words it has
        ({"bot_id": "B1", "subtype": "channel_purpose"}, "slack:T1/B1", "bot"),
        ({"user": "USLACKBOT", "subtype": "reminder_add"}, "slack:T1/USLACKBOT", "bot"),
        ({"user": "UEVE", "team": "T2", "subtype": "channel_join"}, None, "system"),
        ({}, None, "external"),
    ],
)
def test_who_said_it(scene: Scene, message: dict[str, Any], author: str | None, kind: str) -> None:
    record = said(scene.tell({"type": "message", "channel": "C1", "ts": scene.world.ts(), "text": "x", **message})[-1])
    assert (record.author, record.author_kind.value) == (author, kind)


def test_in_a_shared_channel_nobody_is_taken_to_be_of_this_workspace(scene: Scene) -> None:
    message = {"type": "message", "channel": "C1", "ts": scene.world.ts(), "text": "x", "user": "UEVE"}
    for shared in (True, None):
        record = said(scene.tell(message, is_ext_shared_channel=shared)[0])
        assert record.author_kind.value == "external"
    assert said(scene.tell({**message, "team": "T1"}, is_ext_shared_channel=True)[0]).author_kind.value == "person"


def test_a_turn_is_known_again_by_the_agents_own_metadata_alone(scene: Scene) -> None:
    turn = metadata(TURN, "t1")
    for user in ("UBOT", "UALEX", "UAPP"):
        scene.world.say(scene.room, user, "x", metadata=turn)
    assert [said(r).turn for r in scene.records()] == ["t1", None, None]


def test_an_edit(scene: Scene) -> None:
    ts = scene.world.say(scene.room, "UALEX", "one")
    scene.world.edit(scene.room, ts, "two")
    first, second = (said(r) for r in scene.records())
    assert (first.message, first.text, first.edited) == (f"{C1}/{ts}", "one", False)
    assert (second.message, second.text, second.edited, second.author) == (f"{C1}/{ts}", "two", True, first.author)


@pytest.mark.parametrize(
    ("change", "edits"),
    [
        ({"reply_count": 1, "latest_reply": "1.1"}, 0),
        ({"attachments": [{"from_url": "https://example.com/a", "text": "a page"}]}, 0),
        ({"language": "en"}, 0),
        ({"attachments": [{"is_msg_unfurl": True, "channel_id": "C2", "ts": "1700000000.000100", "text": "x"}]}, 1),
        ({"blocks": [{"type": "section"}]}, 1),
        ({"files": [{"id": "F1"}]}, 1),
        ({"attachments": [{"text": "an app's words"}], "edited": {"user": "UAPP", "ts": "1800000000.000200"}}, 1),
    ],
)
def test_what_slack_changes_itself_is_no_edit(scene: Scene, change: dict[str, Any], edits: int) -> None:
    ts = scene.world.say(scene.room, "UALEX", "one")
    scene.records()
    scene.world.edit(scene.room, ts, **change)
    records = [said(r) for r in scene.records()]
    assert len(records) == edits
    if "is_msg_unfurl" in json.dumps(change):  # it embeds another conversation's text
        assert records[0].quotes == ("message:slack:T1/C2/1700000000.000100",)


def test_each_edit_is_told_from_those_before_it_though_the_text_stays(scene: Scene) -> None:  # R-AUD-6
    ts = scene.world.say(scene.room, "UAPP", "Deploying", blocks=[{"text": "0 %"}])
    for percent in ("50 %", "100 %", "50 %"):
        scene.world.edit(scene.room, ts, blocks=[{"text": percent}])
    records = [said(r) for r in scene.records()]
    texts = [r.text for r in records]
    assert texts[0] == "Deploying"
    assert [str(text).startswith("Deploying\n") for text in texts] == [False, True, True, True]
    assert ("50 %" in str(texts[1]), "100 %" in str(texts[2]), texts[3] == texts[1]) == (True, True, True)
    scene.world.edit(scene.room, ts, "Deployed", blocks=[])
    assert said(scene.one()).text == "Deployed"


def test_a_deletion_does_not_bring_the_text_back(scene: Scene) -> None:
    ts = scene.world.say(scene.room, "UALEX", "secret")
    scene.records()
    scene.world.delete(scene.room, ts)
    record = scene.one()
    assert isinstance(record, MessageDeleted)
    assert record.message == f"{C1}/{ts}"
    assert "secret" not in record.model_dump_json()


def test_an_edit_into_a_tombstone_is_a_deletion(scene: Scene) -> None:
    ts = scene.world.say(scene.room, "UALEX", "one")
    scene.records()
    scene.world.edit(scene.room, ts, "This message was deleted.", subtype="tombstone")
    assert isinstance(scene.one(), MessageDeleted)


@pytest.mark.parametrize("subtype", ["channel_convert_to_private", "channel_join"])
def test_what_happens_to_a_room_counts_where_its_message_is_hidden(scene: Scene, subtype: str) -> None:
    event = {"type": "message", "subtype": subtype, "channel": "C1", "user": "UBO", "ts": "1700000000.000100"}
    changed, gone = scene.tell({**event, "hidden": True})
    assert isinstance(changed, RoomChanged | MembershipChanged)
    assert isinstance(gone, MessageDeleted)


def test_a_share_quotes_what_it_shares(scene: Scene) -> None:
    shared = {"is_share": True, "channel_id": "D9", "ts": "1700000000.000100", "channel_team": "T1"}
    scene.world.say(scene.room, "UALEX", "look", attachments=[shared])
    assert said(scene.one()).quotes == ("message:slack:T1/D9/1700000000.000100",)


def test_reply_counts_are_nothing(scene: Scene) -> None:
    assert scene.tell({"type": "message", "subtype": "message_replied", "channel": "C1", "ts": scene.world.ts()}) == []


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
        scene.listed(Member(reader="slack:T1/UALEX"), room=room)
    found = [r.room for r in scene.tell({"type": kind}) if isinstance(r, RoomChanged)]
    assert found == [C1, "slack:T1/C2"]


def test_events_that_slack_left_out_are_a_gap(scene: Scene) -> None:
    scene.listed(Member(reader="slack:T1/UALEX"))
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
    scene.listed(Member(reader="slack:T1/UALEX"))
    scene.listed(Member(reader="slack:T1/UBO"), room="C2")
    user = scene.acme.user("UALEX", **becomes).json("T1", None)
    found = [(r.room, r.what) for r in scene.tell({"type": "user_change", "user": user}) if isinstance(r, RoomChanged)]
    assert found == ([(C1, ACCOUNT_CHANGED)] if void else [])


def test_an_organisations_account_is_not_guessed() -> None:
    scene = Scene(enterprise="E1")
    scene.world.join(scene.room, "UBO")
    scene.world.leave(scene.room, "UBO")
    unknown = scene.records()
    assert [type(r).__name__ for r in unknown] == ["RoomChanged", "RoomChanged"]  # its id's workspace is not known
    scene.listed(Member(reader="slack:T0/UBO", workspaces=("slack:T1",)), room="C2")
    scene.world.join(scene.room, "UBO")
    (joined,) = scene.records()
    assert isinstance(joined, MembershipChanged)
    assert (joined.reader, joined.kind.value, joined.workspaces) == ("slack:T0/UBO", "member", ("slack:T1",))


def test_a_guest_of_several_workspaces_speaks_as_what_listings_name_it() -> None:
    scene = Scene(enterprise="E1")
    scene.listed(Member(reader="slack:T0/UBO", kind=MemberKind.GUEST))
    scene.world.say(scene.room, "UBO", "approve it")
    record = said(scene.one())
    assert (record.author, record.author_kind.value) == ("slack:T0/UBO", "person")


@pytest.mark.parametrize("kind", ["reaction_added", "im_created", "team_join", "emoji_changed", "link_shared", None])
def test_the_rest_is_nothing(scene: Scene, kind: str | None) -> None:
    scene.listed(Member(reader="slack:T1/UALEX"))
    assert scene.tell({"type": kind, "channel": "C1", "user": "UALEX"}) == []


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["C1", "UALEX", "T1", "1.1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_SAID = ("channel", "user", "ts", "text", "team", "subtype", "bot_id", "event_ts", "hidden", "thread_ts")
_SHOWN = ("message", "previous_message", "attachments", "metadata", "root", "edited", "deleted_ts", "files", "comment")
_FIELDS = st.sampled_from((*_SAID, *_SHOWN, "user_profile"))
_KINDS = st.sampled_from(
    ["message", "member_joined_channel", "channel_rename", "channel_id_changed", "user_change", "app_uninstalled"]
)
_SUBTYPES = st.sampled_from([None, "message_changed", "message_deleted", "channel_join", "thread_broadcast"])


@given(_KINDS, _SUBTYPES, st.dictionaries(_FIELDS, _JSON, max_size=5))
def test_whatever_comes_it_is_records_that_can_be_written(kind: str, subtype: str | None, odd: dict[str, Any]) -> None:
    scene = Scene()
    event = {"type": kind, "subtype": subtype, "channel": "C1", "user": "UALEX", "ts": "1700000000.000100"} | odd
    envelope = scene.world.tell(scene.acme, event)
    records = translate(envelope, scene.home, scene.directory, NOW)
    assert [CODEC.decode(CODEC.encode(record)) for record in records] == records
    rooms = [r.room for r in records if isinstance(r, RoomChanged) and r.what == UNREADABLE]
    assert rooms in ([], [f"slack:T1/{event['channel']}"])
