"""Which other messages' text a message embeds; one that cannot be told is of no known audience (R-AUD-6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connectors.slack_export.workspace import NS, day, fields, said, workspace

TS, QUOTED = "1767600000.000100", "1767500000.000300"
LINK = "https://example.slack.com/archives/C1/p1767500000000300?thread_ts=1767500000.000100"


def quotes(path: Path, *attachments: Any, **more: Any) -> list[str]:
    (message,) = fields(path, day(said(TS, attachments=list(attachments), **more)), "MessageObserved")
    return list(message["quotes"])


def test_a_share_names_its_message(tmp_path: Path) -> None:
    share = {"is_msg_unfurl": True, "channel_id": "C1", "channel_team": "T1", "ts": QUOTED, "from_url": LINK}
    assert quotes(tmp_path, share) == [f"message:{NS}/C1/{QUOTED}"]


def test_a_permalink_names_its_message(tmp_path: Path) -> None:
    assert quotes(tmp_path, {"is_share": True, "from_url": LINK}) == [f"message:{NS}/C1/{QUOTED}"]
    assert quotes(tmp_path, {"from_url": LINK}) == [f"message:{NS}/C1/{QUOTED}"]


def test_a_message_of_another_workspace_is_of_its_namespace(tmp_path: Path) -> None:
    share = {"is_msg_unfurl": True, "channel_id": "C77", "channel_team": "T9", "ts": QUOTED}
    assert quotes(tmp_path, share) == [f"message:slack:T9/C77/{QUOTED}"]


def test_a_conversation_that_the_export_lists_is_of_this_workspace(tmp_path: Path) -> None:
    share = {"is_msg_unfurl": True, "channel_id": "C1", "channel_team": "T9", "ts": QUOTED}
    assert quotes(tmp_path, share) == [f"message:{NS}/C1/{QUOTED}"]


@pytest.mark.parametrize(
    "share",
    [
        {"is_share": True, "text": "words of somebody"},
        {"is_msg_unfurl": True, "channel_id": "C1", "ts": 1767500000.0003},
        {"is_msg_unfurl": True, "channel_id": "C 1", "ts": QUOTED},
        {"is_msg_unfurl": True, "channel_id": "C77", "channel_team": "T 9", "ts": QUOTED},
        {"is_msg_unfurl": True, "from_url": "https://example.org/archives/C1/p1767500000000300"},
    ],
)
def test_a_share_that_cannot_be_told_quotes_a_message_that_nobody_observed(
    tmp_path: Path, share: dict[str, Any]
) -> None:
    (ref,) = quotes(tmp_path, share)
    assert ref.startswith(f"message:{NS}/not.established/")


def test_two_shares_that_cannot_be_told_are_two(tmp_path: Path) -> None:
    assert len(set(quotes(tmp_path, {"is_share": True}, {"is_share": True}))) == 2


def test_what_a_shared_message_embeds_is_embedded_too(tmp_path: Path) -> None:
    inner = {"is_msg_unfurl": True, "channel_id": "C2", "ts": "1767400000.000000"}
    outer = {"is_msg_unfurl": True, "channel_id": "C1", "ts": QUOTED, "attachments": [inner]}
    assert quotes(tmp_path, outer) == [f"message:{NS}/C1/{QUOTED}", f"message:{NS}/C2/1767400000.000000"]


def test_a_preview_of_a_page_quotes_nobody(tmp_path: Path) -> None:
    assert quotes(tmp_path, {"from_url": "https://example.org/", "text": "a page", "id": 1}, "nonsense") == []


def test_a_reply_that_is_broadcast_shows_its_root(tmp_path: Path) -> None:
    assert quotes(tmp_path, subtype="thread_broadcast", root={"ts": QUOTED, "text": "asked"}) == [
        f"message:{NS}/C1/{QUOTED}"
    ]


def test_an_edit_quotes_and_what_was_first_said_is_not_known_to(tmp_path: Path) -> None:
    tree = day(said(TS, edited={"ts": "1767600009.000000"}, attachments=[{"from_url": LINK}]))
    first, last = fields(tmp_path, tree, "MessageObserved")
    assert (first["quotes"], last["quotes"]) == ([], [f"message:{NS}/C1/{QUOTED}"])
    assert fields(tmp_path, workspace(), "MessageObserved")[0]["quotes"] == []
