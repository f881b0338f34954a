"""Which records an entry of a conversation becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connectors.slack_export.workspace import NS, changed, day, events, fields, read, said, user, workspace
from turngate.connectors.slack_export import ExportError

TS, LATER = "1767600000.000100", "1767600060.000200"
AT, LATER_AT = 1767600000000, 1767600060000
C1 = f"{NS}/C1"


def observed(root: Path, *entries: dict[str, Any], **how: Any) -> list[dict[str, Any]]:
    return fields(root, day(*entries), "MessageObserved", **how)


def author(root: Path, entry: dict[str, Any], **how: Any) -> tuple[str | None, str]:
    (message,) = observed(root, entry, **how)
    return message["author"], message["author_kind"]


def test_a_message_of_a_person(tmp_path: Path) -> None:
    event = events(tmp_path, workspace())[0]
    assert (event.record, event.topic, event.at) == ("MessageObserved", "observed-messages", AT)
    assert event.fields == {
        "tenant": "acme",
        "at": AT,
        "agent": "mesh",
        "room": C1,
        "message": f"{C1}/{TS}",
        "thread": None,
        "author": f"{NS}/UALEX",
        "author_kind": "person",
        "text": "hello",
        "edited": False,
        "turn": None,
        "quotes": [],
    }


def test_a_reply_names_its_thread_and_a_root_none(tmp_path: Path) -> None:
    root, reply = observed(tmp_path, said(TS, thread_ts=TS), said(LATER, thread_ts=TS))
    assert (root["thread"], reply["thread"]) == (None, TS)


def test_records_come_in_order_of_time_across_files_and_rooms(tmp_path: Path) -> None:
    tree = workspace() | {
        "channels.json": [{"id": "C1", "name": "one", "members": []}, {"id": "C2", "name": "two", "members": []}],
        "one/2026-01-06.json": [said("1767600003.000000"), said("1767600001.000000")],
        "one/2026-01-07.json": [said("1767600000.500000")],
        "two/2026-01-05.json": [said("1767600002.000000"), said("1767600003.000000", subtype="channel_join")],
    }
    told = [(e.at - AT, e.record) for e in events(tmp_path, tree)]
    assert told[:6] == [
        (500, "MessageObserved"),
        (1000, "MessageObserved"),
        (2000, "MessageObserved"),
        (3000, "MembershipChanged"),  # before the messages of the same instant (contract section 3)
        (3000, "MessageObserved"),
        (3000, "MessageObserved"),
    ]


def test_an_edit_is_told_apart_from_what_was_first_said(tmp_path: Path) -> None:
    """The export holds only the last text, so what was first said is unknown, and the last text is of the edit."""
    first, last = events(tmp_path, day(said(TS, edited={"user": "UALEX", "ts": LATER})), "MessageObserved")
    assert (first.at, first.fields["text"], first.fields["edited"]) == (AT, None, False)
    assert (last.at, last.fields["text"], last.fields["edited"]) == (LATER_AT, "hello", True)


@pytest.mark.parametrize("edited", [{}, {"user": "UALEX"}, {"ts": "1767500000.000000"}, {"ts": None}, True])
def test_an_edit_of_unknown_time_is_told_with_the_last_record(tmp_path: Path, edited: Any) -> None:
    """Not with the listing, which would settle a message that was edited nobody knows when (R-AUD-9)."""
    first, other, last = events(tmp_path, day(said(TS, edited=edited), said(LATER)), "MessageObserved")
    assert (first.at, other.at, last.at) == (AT, LATER_AT, LATER_AT)
    assert last.fields["edited"] is True
    assert last.fields["at"] == LATER_AT


@pytest.mark.parametrize("entry", [{"subtype": "tombstone"}, {"hidden": True}])
def test_what_was_deleted_is_deleted_from_the_start(tmp_path: Path, entry: dict[str, Any]) -> None:
    tree = day(said(TS, "USLACKBOT", "This message was deleted.", **entry))
    assert fields(tmp_path, tree, "MessageObserved") == []
    (gone,) = events(tmp_path, tree, "MessageDeleted")
    assert (gone.at, gone.fields["message"]) == (AT, f"{C1}/{TS}")


def test_logged_deletions_and_edits_happen_when_they_were_logged(tmp_path: Path) -> None:
    """Some exports keep a log of edits and deletions as entries of their own."""
    log = [
        said(TS),
        {"type": "message", "subtype": "message_changed", "ts": LATER, "message": said(TS, text="new")},
        {"type": "message", "subtype": "message_deleted", "ts": "1767600090.000000", "deleted_ts": TS},
        {
            "type": "message",
            "subtype": "message_changed",
            "ts": "1767600099.000000",
            "message": said("1767600001.000000", subtype="tombstone"),
        },
    ]
    told = events(tmp_path, day(*log))[:4]
    assert [(e.record, e.at - AT) for e in told] == [
        ("MessageObserved", 0),
        ("MessageObserved", 60_000),
        ("MessageDeleted", 90_000),
        ("MessageDeleted", 99_000),
    ]
    assert (told[1].fields["message"], told[1].fields["text"]) == (f"{C1}/{TS}", "new")
    assert told[1].fields["edited"] is True


@pytest.mark.parametrize(("subtype", "change"), [("channel_join", "joined"), ("group_leave", "left")])
def test_joins_and_leaves_change_the_membership_and_are_messages_of_the_system(
    tmp_path: Path, subtype: str, change: str
) -> None:
    event, message = events(tmp_path, day(said(TS, subtype=subtype)))[:2]
    assert (event.record, event.topic, event.at) == ("MembershipChanged", "membership-refreshes", AT)
    assert event.fields == {
        "tenant": "acme",
        "at": AT,
        "agent": "mesh",
        "room": C1,
        "reader": f"{NS}/UALEX",
        "kind": "member",
        "workspaces": [],
        "change": change,
    }
    assert (message.fields["author"], message.fields["author_kind"]) == (None, "system")


def test_somebody_unnamed_who_joins_makes_earlier_listings_void(tmp_path: Path) -> None:
    assert [e.record for e in events(tmp_path, day(said(TS, "", subtype="channel_join")))[:2]] == [
        "RoomChanged",
        "MessageObserved",
    ]


def test_a_guest_and_a_stranger_join_as_what_they_are(tmp_path: Path) -> None:
    tree = day(said(TS, "UG", subtype="channel_join"), said(LATER, "UX", subtype="channel_join", user_team="T9"))
    tree["users.json"].append(user("UG", is_restricted=True))
    joined = [(f["reader"], f["kind"]) for f in fields(tmp_path, tree, "MembershipChanged")]
    assert joined == [(f"{NS}/UG", "guest"), ("slack:T9/UX", "external")]


@pytest.mark.parametrize(
    ("subtype", "what"),
    [
        ("channel_archive", "archived"),
        ("group_unarchive", "unarchived"),
        ("channel_convert_to_private", "converted to private"),
        ("channel_convert_to_public", "converted to public"),
    ],
)
def test_what_makes_listings_void(tmp_path: Path, subtype: str, what: str) -> None:
    (event,) = fields(tmp_path, day(said(TS, subtype=subtype)), "RoomChanged")
    assert (event["room"], event["what"], event["agent"]) == (C1, what, "mesh")


@pytest.mark.parametrize("subtype", ["channel_name", "channel_topic", "channel_purpose", "pinned_item", "bot_add"])
def test_a_name_or_topic_changes_no_readers(tmp_path: Path, subtype: str) -> None:
    told = events(tmp_path, day(said(TS, subtype=subtype)))
    assert [e.record for e in told] == ["MessageObserved", "MembershipPage"]
    assert told[0].fields["author_kind"] == "system"


def test_who_said_it(tmp_path: Path) -> None:
    assert author(tmp_path, said(TS)) == (f"{NS}/UALEX", "person")
    assert author(tmp_path, said(TS, "UBOT")) == (f"{NS}/UBOT", "bot")
    assert author(tmp_path, said(TS, bot_id="B1")) == (f"{NS}/UALEX", "bot")
    assert author(tmp_path, said(TS, bot_id=None)) == (f"{NS}/UALEX", "person")
    assert author(tmp_path, said(TS, None, subtype="bot_message", bot_id="B1")) == (f"{NS}/B1", "bot")
    assert author(tmp_path, said(TS, None, subtype="bot_message")) == (None, "bot")
    assert author(tmp_path, said(TS, "UBOT", bot_id="B1"), accounts=["UBOT"]) == (f"{NS}/UBOT", "self")


def test_whoever_is_not_established_to_be_of_this_workspace_is_external(tmp_path: Path) -> None:
    assert author(tmp_path, said(TS, "UWHO")) == (f"{NS}/UWHO", "external")
    assert author(tmp_path, said(TS, None)) == (None, "external")
    for field in ("user_team", "team", "source_team"):
        assert author(tmp_path, said(TS, "UEXT", **{field: "T9"})) == ("slack:T9/UEXT", "external")
        assert author(tmp_path, said(TS, "UALEX", **{field: "T9"})) == ("slack:T9/UALEX", "external")
        assert author(tmp_path, said(TS, "UALEX", **{field: "T1"})) == (f"{NS}/UALEX", "person")
    assert author(tmp_path, said(TS, "UEXT", team="T1", user_profile={"team": "T9"}))[1] == "external"


def test_a_comment_on_a_file_is_its_commenters(tmp_path: Path) -> None:
    entry = said(TS, None, subtype="file_comment", comment={"user": "UMORGAN"})
    assert author(tmp_path, entry) == (f"{NS}/UMORGAN", "person")


def test_an_unknown_subtype_is_a_message_of_its_author(tmp_path: Path) -> None:
    assert author(tmp_path, said(TS, subtype="something_new")) == (f"{NS}/UALEX", "person")


def test_a_text_that_slack_withheld_is_not_known(tmp_path: Path) -> None:
    (message,) = observed(tmp_path, said(TS, text="access suspended", subtype="ekm_access_denied"))
    assert message["text"] is None


def test_a_file_is_counted_and_not_imported(tmp_path: Path) -> None:
    tree = day(said(TS, subtype="file_share", files=[{"id": "F1"}]))
    assert read(tmp_path, tree).summary.skipped["content of a file (the message is there)"] == 1
    assert len(fields(tmp_path, tree, "MessageObserved")) == 1


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    (message,) = observed(tmp_path, said(TS, text="\ud83d half"))
    assert message["text"] == "? half"


def test_entries_that_are_no_messages_are_counted(tmp_path: Path) -> None:
    summary = read(tmp_path, day(said(TS), {"type": "event", "ts": TS}, {"ts": TS})).summary
    assert (summary.messages, dict(summary.skipped)) == (1, {"entry that is no message": 2})


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"ts": 1767600000.0001}, "ts is no timestamp"),
        ({"ts": "yesterday"}, "ts is no timestamp"),
        ({"ts": "-1.000000"}, "ts is no timestamp"),
        ({"ts": None}, "ts is no timestamp"),
        ({"thread_ts": "x"}, "thread_ts is no timestamp"),
        ({"edited": {"ts": []}}, r"edited\.ts is no timestamp"),
        ({"user": ["UALEX"]}, "user is no id"),
        ({"user": "U/X"}, "user is no id"),
        ({"bot_id": 7}, "bot_id is no id"),
        ({"team": "a b"}, "a team is no id"),
        ({"text": {"a": 1}}, "text is no text"),
        ({"subtype": 3}, "subtype is no text"),
        ({"subtype": "message_deleted", "deleted_ts": "x"}, "deleted_ts is no timestamp"),
        ({"subtype": "message_changed", "message": None}, r"message\.ts is no timestamp"),
    ],
)
def test_an_entry_that_slack_does_not_write_breaks_its_file(tmp_path: Path, wrong: dict[str, Any], what: str) -> None:
    with pytest.raises(ExportError, match=r"general/2026-01-05\.json: entry 2: " + what):
        read(tmp_path, day(said(LATER), {**said(TS), **wrong}))


def test_a_summary_counts_what_was_told(tmp_path: Path) -> None:
    tree = changed(
        "general/2026-01-05.json",
        [
            said(TS, subtype="channel_join"),
            said(LATER, edited={"ts": "1767600070.000000"}),
            said("1767600080.000000", subtype="channel_leave"),
            said("1767600090.000000", subtype="channel_archive"),
            said("1767600099.000000", subtype="tombstone"),
        ],
    )
    s = read(tmp_path, tree).summary
    assert (s.rooms, s.accounts, s.messages, s.edits, s.deletions) == (1, 3, 4, 1, 1)
    assert (s.joins, s.leaves, s.changes, s.listings, s.established) == (1, 1, 1, 1, 1)
    assert (s.first_at, s.last_at) == (AT, AT + 99_000)
