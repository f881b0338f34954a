"""Whatever event comes becomes records that can be written, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.slack.scene import CODEC, NOW, Scene
from turngate.connectors.slack.events import UNREADABLE, translate
from turngate.schemas.inputs import RoomChanged
from turngate.schemas.shapes import Member, MemberKind


@pytest.mark.parametrize("kind", ["reaction_added", "im_created", "team_join", "emoji_changed", "link_shared", None])
def test_the_rest_is_nothing(scene: Scene, kind: str | None) -> None:
    scene.listed(Member(reader="slack:T1/UALEX", kind=MemberKind.MEMBER))
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
