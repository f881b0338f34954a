"""A question shows exactly what a yes would let out, and a button says nothing but what was asked with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.slack.scene import installed
from tests.sinks.engine import REFUND, Engine, press
from tests.sinks.records import ALEX, AT, DIRECT, KIM, ROOM, SELF, made
from tests.sinks.stage import Stage
from turngate.processors.approvals import action_fingerprint, turn_fingerprint
from turngate.schemas.inputs import ActionApproved, TurnDrafted
from turngate.schemas.outputs import SharingOffered, TurnDecided
from turngate.sinks.questions import APPROVE, asked, offer, pressed, question

DRAFT = made(
    TurnDrafted, agent="mesh", turn="t1", room=ROOM, renderings=[{"text": "one"}, {"text": "two"}], action=REFUND
)
GOOD_VALUE = {"tenant": "acme", "room": ROOM, "fingerprint": "0" * 64, "until": AT}
BAD_PARTS: list[dict[str, Any]] = [{"fingerprint": "x"}, {"room": None}, {"until": None}, {"until": True}]
BAD_VALUES = ["", "{", "[]", "{}", *(json.dumps(GOOD_VALUE | part) for part in BAD_PARTS), None, 5]


def test_a_fingerprint_stands_for_one_of_the_texts_or_the_action_and_for_nothing_else() -> None:
    assert isinstance(DRAFT, TurnDrafted)
    assert DRAFT.action is not None
    assert asked(DRAFT, turn_fingerprint(DRAFT, "two")) == ("two", DRAFT.action)
    assert asked(DRAFT, turn_fingerprint(DRAFT, None)) == (None, DRAFT.action)
    assert asked(DRAFT, action_fingerprint(DRAFT.action)) == (None, DRAFT.action)
    assert asked(DRAFT, turn_fingerprint(DRAFT, "three")) is None


@given(st.text(min_size=1, max_size=20_000))
def test_a_text_is_shown_whole_and_unchanged_or_not_at_all(text: str) -> None:
    draft = made(TurnDrafted, agent="mesh", turn="t1", room=ROOM, renderings=[{"text": text}])
    assert isinstance(draft, TurnDrafted)
    decided = made(TurnDecided, turn="t1", agent="mesh", room=ROOM, verdict="ask", leaves_digest="", policy="1",
                   decision="d", fingerprint=turn_fingerprint(draft, text))  # fmt: skip
    assert isinstance(decided, TurnDecided)
    said = question(draft, decided, "q", AT, here=True)
    assert said is not None
    sections = [block["text"]["text"] for block in said.blocks if block["type"] == "section"]
    assert "".join(sections[1:]) == text
    assert all(len(section) <= 3000 for section in sections)


def test_what_cannot_be_shown_whole_is_not_asked() -> None:
    draft = made(TurnDrafted, agent="mesh", turn="t1", room=ROOM, renderings=[{"text": "x" * 200_000}])
    assert isinstance(draft, TurnDrafted)
    decided = made(TurnDecided, turn="t1", agent="mesh", room=ROOM, verdict="ask", leaves_digest="", policy="1",
                   decision="d", fingerprint=turn_fingerprint(draft, "x" * 200_000))  # fmt: skip
    assert isinstance(decided, TurnDecided)
    assert question(draft, decided, "q", AT, here=True) is None
    long = made(SharingOffered, request="s", agent="mesh", room=DIRECT, revision="r", text="x" * 200_000,
                audience="public", code="C", expires_at=AT)  # fmt: skip
    assert isinstance(long, SharingOffered)
    assert offer(long, "s") is None


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_button_with_another_value_says_nothing(stage: Stage, value: object) -> None:
    actions = [{"action_id": APPROVE, "value": value}]
    payload = {
        "type": "block_actions",
        "user": {"id": "UALEX", "team_id": "T1"},
        "container": {"message_ts": "1.1", "channel_id": "C1"},
        "actions": actions,
    }
    good = json.dumps(GOOD_VALUE)
    home = installed(stage.acme)
    assert pressed(payload, home, AT) is None
    assert pressed(payload | {"actions": [{"action_id": APPROVE, "value": good}]}, home, AT) is not None


CHANGES: list[dict[str, Any]] = [
    {"type": "view_submission"},
    {"actions": []},
    {"actions": ["x"]},
    {"actions": [{"action_id": "other"}]},
    {"user": None},
    {"user": {"id": "UALEX"}},
    {"user": {"id": "U ALEX", "team_id": "T1"}},
    {"container": {"message_ts": "now", "channel_id": "C1"}},
    {"container": None},
]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_payload_that_is_none_of_ours_says_nothing(engine: Engine, change: dict[str, Any]) -> None:
    engine.draft()
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    assert press(engine.stage, post, **change) is None
    assert press(engine.stage, post) is not None


async def test_an_approver_in_another_workspace_is_asked_there_and_says_yes(engine: Engine) -> None:
    stage, room = engine.stage, "slack:T1/C2"
    elsewhere = stage.slack.workspace("T2")
    elsewhere.user("UX")
    agents = {"mesh": {"accounts": [SELF, f"slack:T2/{elsewhere.bot}"]}}
    engine.policy(agents=agents, interlock={"mode": "ask", "approvers": ["slack:T2/UX"]})
    engine.listing(room, ALEX, {"reader": KIM, "kind": "guest"})  # who is shown no values
    stage.acme.user("UKIM", guest=True)
    stage.slack.channel("C2", stage.acme, ["UBOT", "UALEX", "UKIM"], private=True)
    engine.say(1, room)
    engine.draft(text=None, action=REFUND, room=room, trigger=f"message:{room}/1")
    await engine.deliver()
    (post,) = stage.slack.posts
    assert stage.slack.rooms[post.room].members == [elsewhere.bot, "UX"]
    yes = press(stage, post, home=elsewhere, user="UX")
    assert isinstance(yes, ActionApproved)
    assert (yes.by, yes.room) == ("slack:T2/UX", room)
    assert [r.verdict for r in engine.feed(yes) if isinstance(r, TurnDecided)] == ["deliver"]


async def test_a_button_of_another_tenant_says_nothing(engine: Engine) -> None:  # R-ROOM-11
    engine.draft()
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    home = installed(engine.stage.acme)
    (buttons,) = (block["elements"] for block in post.args["blocks"] if block["type"] == "actions")
    payload = {
        "type": "block_actions",
        "user": {"id": "UALEX", "team_id": "T1"},
        "container": {"message_ts": post.ts, "channel_id": "C1"},
        "actions": [{"action_id": APPROVE, "value": buttons[0]["value"]}],
    }
    other = {"app": home.app, "agent": home.agent, "bot_user": home.bot_user, "token": home.token}
    kind = type(home)
    assert pressed(payload, kind(team="T1", tenant="other", **other), AT) is None
    assert pressed(payload, home, AT) is not None
