"""Decides which other messages' text an entry embeds: shares, unfurls, and the root that a broadcast reply shows."""

from __future__ import annotations

import re
from typing import Any

from turngate.connectors.slack.ids import TS, is_id

_PERMALINK = re.compile(r"https://[a-z0-9.-]+\.slack(?:-gov)?\.com/archives/([A-Za-z0-9_-]{1,64})/p([0-9]{7,17})\b")
#: Stands in a ref where a quoted message cannot be told. No id of Slack's has a dot, so nothing is observed there.
NOWHERE = "not.established"


def quotes_of(entry: dict[str, Any], room: str, namespace: str, rooms: frozenset[str]) -> tuple[str, ...]:
    """Refs of the messages that this one embeds; one that cannot be told is a ref of a message never observed.

    `rooms`: the conversations that are listed. A conversation outside them is of the workspace that the
    attachment names (`channel_team`).
    """
    quoted: dict[str, None] = {}
    for number, attachment in enumerate(_attachments(entry)):
        ref = _ref(attachment, namespace, rooms)
        if ref is not None:
            quoted[ref or f"message:{namespace}/{NOWHERE}/{entry['ts']}.{number}"] = None
    root = entry.get("root")
    if root is not None:
        ts = root.get("ts") if isinstance(root, dict) else None
        known = isinstance(ts, str) and TS.fullmatch(ts) is not None
        quoted[f"message:{room}/{ts}" if known else f"message:{namespace}/{NOWHERE}/{entry['ts']}.root"] = None
    return tuple(quoted)


def _attachments(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Every attachment, those inside of shared messages too: what they embed is embedded here as well."""
    found: list[dict[str, Any]] = []
    waiting = [entry.get("attachments")]
    while waiting:
        attachments = waiting.pop()
        for attachment in attachments if isinstance(attachments, list) else ():
            if isinstance(attachment, dict):
                found.append(attachment)
                waiting.append(attachment.get("attachments"))
    return found


def _ref(attachment: dict[str, Any], namespace: str, rooms: frozenset[str]) -> str | None:
    """The message that an attachment quotes; empty where that cannot be told; None where it quotes none."""
    conversation, ts = attachment.get("channel_id"), attachment.get("ts")
    url = attachment.get("from_url")
    link = _PERMALINK.match(url) if isinstance(url, str) else None
    quotes = link or any(attachment.get(flag) for flag in ("is_msg_unfurl", "is_share", "is_reply_unfurl"))
    if not quotes and not (conversation and ts):
        return None
    if link and (conversation is None or ts is None):
        conversation, ts = link[1], f"{link[2][:-6]}.{link[2][-6:]}"
    team = attachment.get("channel_team")
    if not is_id(conversation) or not isinstance(ts, str) or TS.fullmatch(ts) is None:
        return ""
    at_home = conversation in rooms or team is None
    if not at_home and not is_id(team):
        return ""
    return f"message:{namespace if at_home else f'slack:{team}'}/{conversation}/{ts}"
