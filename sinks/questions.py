"""Decides how a question about a turn and an offer to share look in Slack, and what a pressed button says (R-TNT-6).

Texts are shown as plain text, in which Slack makes nothing of what they hold: who approves sees exactly the bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from turngate.connectors.slack.ids import TS, is_id
from turngate.connectors.slack.installations import Installation
from turngate.processors.approvals import action_fingerprint, turn_fingerprint
from turngate.schemas.inputs import ActionApproved, ApprovalWithdrawn, TurnDrafted
from turngate.schemas.metadata import NOTE
from turngate.schemas.outputs import SharingOffered, TurnDecided, Verdict
from turngate.schemas.shapes import Action, Audience, Scope
from turngate.sinks.ports import Said

APPROVE, WITHDRAW = "turngate_approve", "turngate_withdraw"
#: Characters of one text of a block, and blocks of a message, as Slack documents them.
_LONGEST, _MOST = 3_000, 50
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def asked(draft: TurnDrafted, fingerprint: str) -> tuple[str | None, Action | None] | None:
    """The text and the action that a fingerprint stands for; None where it stands for nothing in this draft.

    Of the action's own fingerprint that is the action alone.
    """
    if draft.action is not None and action_fingerprint(draft.action) == fingerprint:
        return None, draft.action
    for text in (*(rendering.text for rendering in draft.renderings), None):
        if turn_fingerprint(draft, text) == fingerprint:
            return text, draft.action
    return None


def question(draft: TurnDrafted, decided: TurnDecided, name: str, until: int, *, here: bool) -> Said | None:
    """What is asked, with two buttons; `here`: in the draft's own room. None where it cannot be shown as a whole.

    A yes counts `until` (ms) the draft asks no more: of one that is pressed later nobody knows any more what it is to.
    """
    found = None if decided.fingerprint is None else asked(draft, decided.fingerprint)
    if found is None or decided.fingerprint is None:
        return None
    text, action = found
    where = "here" if here else f"in {draft.room}"
    codes = ", ".join(dict.fromkeys(reason.code for reason in decided.reasons))
    blocks = list(_plain(f"{draft.agent} asks: may this be {'said' if action is None else 'done'} {where}? ({codes})"))
    blocks += [] if text is None else [*_divided(text)]
    blocks += [] if action is None else [*_divided(_described(action))]
    about = {"tenant": draft.tenant, "room": draft.room, "fingerprint": decided.fingerprint, "until": until}
    value = json.dumps(about)
    blocks.append(
        {
            "type": "actions",
            "elements": [
                _button("Approve", APPROVE, value, "primary"),
                _button("Withdraw my approval", WITHDRAW, value, "danger"),
            ],
        }
    )
    if len(blocks) > _MOST:
        return None
    return Said("Something waits for somebody's approval.", NOTE, name, blocks=tuple(blocks))


def offer(offered: SharingOffered, name: str) -> Said | None:
    """What would be shared, with whom, and what to type. None where it cannot be shown as a whole."""
    blocks = [*_plain(f"May {_words(offered.audience)} be told this? Nobody else will be."), *_divided(offered.text)]
    blocks += _plain(f"To share exactly this, type: share {offered.code}")
    blocks += _plain(f"To take it back at any time: unshare {offered.code}")
    return (
        None
        if len(blocks) > _MOST
        else Said("You are asked whether to share something.", NOTE, name, blocks=tuple(blocks))
    )


def answered(decided: TurnDecided, name: str) -> Said:
    """What a question becomes when the turn is decided: nothing of what was asked, and no buttons."""
    goes = "does not go ahead" if decided.verdict is Verdict.DROP else "goes ahead"
    return Said("This is decided.", NOTE, name, blocks=tuple(_plain(f"This is decided: it {goes}.")))


def pressed(payload: Mapping[str, Any], home: Installation, at: int) -> ActionApproved | ApprovalWithdrawn | None:
    """What a button says, in a payload that Slack signed for an app of this installation; None where it is not ours.

    An approval is a person's on one message, and once withdrawn it stays so; `presses` says when pressing again is
    another one. It may be about a room of another workspace of the tenant's: approvers are asked in their own.
    """
    actions, user, place = payload.get("actions"), payload.get("user"), payload.get("container")
    if payload.get("type") != "block_actions" or not isinstance(actions, list) or len(actions) != 1:
        return None
    action = actions[0]
    if not all(isinstance(part, dict) for part in (action, user, place)):
        return None
    account, team = user.get("id"), user.get("team_id")  # type: ignore[union-attr]
    channel, ts = place.get("channel_id"), place.get("message_ts")  # type: ignore[union-attr]
    if not (is_id(account) and is_id(team) and is_id(channel) and isinstance(ts, str) and TS.fullmatch(ts)):
        return None
    said = _value(action.get("value"))
    if said is None or said["tenant"] != home.tenant:
        return None
    by = f"slack:{team}/{account}"
    approval = f"{home.room(channel)}/{ts} {by}"
    if action.get("action_id") == WITHDRAW:
        return ApprovalWithdrawn(tenant=home.tenant, at=at, approval=approval)
    if action.get("action_id") != APPROVE:
        return None
    return ActionApproved(
        tenant=home.tenant,
        at=at,
        approval=approval,
        fingerprint=said["fingerprint"],
        by=by,
        room=said["room"],
        expires_at=said["until"],
    )


def _value(text: object) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    names = ("tenant", "room", "fingerprint")
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in names):
        return None
    if type(value.get("until")) is not int:
        return None
    return value if _FINGERPRINT.fullmatch(value["fingerprint"]) else None


def _described(action: Action) -> str:
    """An action as it was drafted: every value, exactly. One that would look like more lines than one is escaped."""
    lines = [f"operation: {action.operation}", f"skill: {action.skill}"]
    shown = (param.value if param.value.isprintable() else json.dumps(param.value) for param in action.params)
    return "\n".join(lines + [f"{param.name}: {value}" for param, value in zip(action.params, shown, strict=True)])


def _words(audience: Audience) -> str:
    if audience.scope is Scope.PUBLIC:
        return "anybody"
    workspaces = [f"everybody in {workspace}" for workspace in audience.workspaces]
    return ", ".join([*workspaces, *audience.readers])


def _divided(text: str) -> Iterator[dict[str, Any]]:
    """A text between two lines, in as many blocks as it takes."""
    yield {"type": "divider"}
    yield from _plain(text)
    yield {"type": "divider"}


def _plain(text: str) -> Iterator[dict[str, Any]]:
    for start in range(0, len(text), _LONGEST):
        part = text[start : start + _LONGEST]
        yield {"type": "section", "text": {"type": "plain_text", "text": part, "emoji": False}}


def _button(label: str, action: str, value: str, style: str) -> dict[str, Any]:
    text = {"type": "plain_text", "text": label, "emoji": False}
    return {"type": "button", "text": text, "action_id": action, "value": value, "style": style}
