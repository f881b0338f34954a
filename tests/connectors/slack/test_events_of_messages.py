"""Which records a message becomes: said, edited, deleted, shared, and by whom."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.connectors.slack.scene import C1, NOW, Scene, said
from turngate.schemas.inputs import MessageDeleted, MessageObserved
from turngate.schemas.metadata import TURN, metadata
from turngate.schemas.shapes import Member, MemberKind


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


def test_a_share_quotes_what_it_shares(scene: Scene) -> None:
    shared = {"is_share": True, "channel_id": "D9", "ts": "1700000000.000100", "channel_team": "T1"}
    scene.world.say(scene.room, "UALEX", "look", attachments=[shared])
    assert said(scene.one()).quotes == ("message:slack:T1/D9/1700000000.000100",)


def test_reply_counts_are_nothing(scene: Scene) -> None:
    assert scene.tell({"type": "message", "subtype": "message_replied", "channel": "C1", "ts": scene.world.ts()}) == []


def test_a_guest_of_several_workspaces_speaks_as_what_listings_name_it() -> None:
    scene = Scene(enterprise="E1")
    scene.listed(Member(reader="slack:T0/UBO", kind=MemberKind.GUEST))
    scene.world.say(scene.room, "UBO", "approve it")
    record = said(scene.one())
    assert (record.author, record.author_kind.value) == ("slack:T0/UBO", "person")
