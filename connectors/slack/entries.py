"""Decides which records a message of Slack's becomes, out of an export or as it happens (docs/slack-export.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from turngate.connectors.slack.ids import EntryError, is_id, millis
from turngate.connectors.slack.people import Account, Accounts
from turngate.connectors.slack.quotes import quotes_of
from turngate.schemas.metadata import named_in
from turngate.schemas.shapes import AuthorKind, MemberKind

JOINS = frozenset({"channel_join", "group_join"})
LEAVES = frozenset({"channel_leave", "group_leave"})
#: What makes every earlier listing of the room void (R-ROOM-5). A new name does not: it says nothing of readers.
CHANGES: MappingProxyType[str, str] = MappingProxyType(
    {
        "channel_archive": "archived",
        "group_archive": "archived",
        "channel_unarchive": "unarchived",
        "group_unarchive": "unarchived",
        "channel_convert_to_private": "converted to private",
        "channel_convert_to_public": "converted to public",
        "sh_room_shared": "shared",
        "channel_shared": "shared",
        "channel_unshared": "unshared",
    }
)
#: What Slack itself writes into a conversation.
SYSTEM = frozenset(
    JOINS
    | LEAVES
    | CHANGES.keys()
    | {f"{kind}_{what}" for kind in ("channel", "group") for what in ("topic", "purpose", "name")}
    | {"bot_add", "bot_remove", "bot_enable", "bot_disable", "pinned_item", "unpinned_item", "reminder_add"}
    | {"channel_posting_permissions", "ekm_access_denied", "joiner_notification", "joiner_notification_for_inviter"}
    | {"channel_canvas_updated", "sh_room_created", "huddle_thread", "tombstone"}
)
#: Of these, what holds nobody else's words. A topic, say, is what somebody wrote (R-TNT-2).
_SLACKS_WORDS = frozenset(JOINS | LEAVES | CHANGES.keys())
_MISTRUSTED = (MemberKind.EXTERNAL, MemberKind.BOT)
BOTS = frozenset({"bot_message", "slackbot_response", "assistant_app_thread"})
#: Entries that stand for something that no longer can be read.
GONE = "tombstone"
#: Entries that log an edit or a deletion.
CHANGED, DELETED = "message_changed", "message_deleted"
#: Entries whose text is not what was said.
NO_TEXT = frozenset({"ekm_access_denied"})


@dataclass(frozen=True, slots=True)
class RoomEvent:
    """One record of the contract: its name, topic and fields, and `at`, the time (ms) that its log is to give it."""

    record: str
    at: int
    topic: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """Whose entries they are: the tenant and agent that records name, the accounts, and the rooms that are listed."""

    tenant: str
    agent: str
    accounts: Accounts
    rooms: frozenset[str]

    def room(self, conversation: str) -> str:
        """The room id of a conversation of this workspace."""
        return f"{self.accounts.namespace}/{conversation}"

    def event(self, record: str, at: int, topic: str, **fields: object) -> RoomEvent:
        """A record of this tenant."""
        return RoomEvent(record, at, topic, {"tenant": self.tenant, "at": at, "agent": self.agent, **fields})


def events_of(entry: dict[str, Any], conversation: str, scene: Scene, last: int) -> Iterator[RoomEvent]:
    """The records of one entry. `last`: the time of an edit of which the entry does not say when it was.

    Raises `EntryError` where a field that decides something has a type that Slack does not write.
    """
    at = millis(entry.get("ts"))
    room, subtype = scene.room(conversation), _text_or_none(entry, "subtype")
    if subtype in (CHANGED, DELETED):
        yield from _logged(entry, subtype, room, at, scene)
        return
    if subtype in JOINS or subtype in LEAVES:
        yield _membership(entry, room, at, scene)
    elif subtype is not None and subtype in CHANGES:
        yield scene.event("RoomChanged", at, "membership-refreshes", room=room, what=CHANGES[subtype])
    if subtype == GONE or entry.get("hidden") is True:
        yield _deleted(room, entry["ts"], at, scene)
    else:
        yield from _observed(entry, room, at, scene, last)


def author_team(entry: dict[str, Any], own: str) -> str | None:
    """The workspace to which a message says its author belongs: another one, if any of its fields says so."""
    profile = entry.get("user_profile")
    stated = [entry.get("user_team"), entry.get("team"), entry.get("source_team")]
    stated += [profile.get("team")] if isinstance(profile, dict) else []
    teams = [t for t in stated if t is not None]
    if not all(is_id(t) for t in teams):
        raise EntryError("a team is no id of Slack's")
    return next((t for t in teams if t != own), teams[0] if teams else None)


def author_id(entry: dict[str, Any]) -> str | None:
    """The account that wrote an entry; of a comment on a file, the comment's; None where it is not said."""
    comment = entry.get("comment")
    user = entry.get("user") or (comment.get("user") if isinstance(comment, dict) else None)
    if user in (None, ""):
        return None
    if not is_id(user):
        raise EntryError("user is no id of Slack's")
    return str(user)


def _observed(entry: dict[str, Any], room: str, at: int, scene: Scene, last: int) -> Iterator[RoomEvent]:
    """A message as first said, and again as it was edited: only the last text is there, so the first is not known."""
    author, kind = _author(entry, scene)
    text = None if entry.get("subtype") in NO_TEXT else _text_or_none(entry, "text")
    thread = entry.get("thread_ts")
    if thread is not None:
        millis(thread, "thread_ts")
    said = {
        "room": room,
        "message": f"{room}/{entry['ts']}",
        "thread": None if thread == entry["ts"] else thread,
        "author": author,
        "author_kind": kind.value,
        "turn": named_in(entry.get("metadata")) if kind is AuthorKind.SELF else None,
    }
    now: dict[str, Any] = {
        "text": text,
        "quotes": list(quotes_of(entry, room, scene.accounts.namespace, scene.rooms)),
    }
    edited = _edit_time(entry, at, last)
    if edited is None:
        yield scene.event("MessageObserved", at, "observed-messages", **said, **now, edited=False)
    else:
        yield scene.event("MessageObserved", at, "observed-messages", **said, text=None, quotes=[], edited=False)
        yield scene.event("MessageObserved", edited, "observed-messages", **said, **now, edited=True)


def _author(entry: dict[str, Any], scene: Scene) -> tuple[str | None, AuthorKind]:
    """Who said it. Whoever is not established to be a person of this workspace counts as external."""
    user, subtype = author_id(entry), entry.get("subtype")
    account = None if user is None else scene.accounts.of(user, author_team(entry, scene.accounts.team))
    if account is not None and account.kind is MemberKind.SELF:
        return account.reader, AuthorKind.SELF
    bot = None if entry.get("bot_id") == "" else entry.get("bot_id")
    if bot is not None and not is_id(bot):
        raise EntryError("bot_id is no id of Slack's")
    mistrusted = bot is not None or (account is not None and account.kind in _MISTRUSTED)
    if subtype in _SLACKS_WORDS or (subtype in SYSTEM and not mistrusted):
        return None, AuthorKind.SYSTEM
    if bot is not None or subtype in BOTS or (account is not None and account.kind is MemberKind.BOT):
        return (account.reader if account else scene.accounts.reader(bot) if bot is not None else None), AuthorKind.BOT
    if account is None:
        return None, AuthorKind.EXTERNAL
    return account.reader, AuthorKind.EXTERNAL if account.kind is MemberKind.EXTERNAL else AuthorKind.PERSON


def _membership(entry: dict[str, Any], room: str, at: int, scene: Scene) -> RoomEvent:
    """A join or leave; of nobody in particular, the listings so far say nothing any more (R-ROOM-5)."""
    user = author_id(entry)
    change = "joined" if entry["subtype"] in JOINS else "left"
    if user is None:
        what = f"somebody {change}, and the export does not say who"
        return scene.event("RoomChanged", at, "membership-refreshes", room=room, what=what)
    account: Account = scene.accounts.of(user, author_team(entry, scene.accounts.team))
    return scene.event(
        "MembershipChanged",
        at,
        "membership-refreshes",
        room=room,
        reader=account.reader,
        kind=account.kind.value,
        workspaces=[],
        change=change,
    )


def _logged(entry: dict[str, Any], subtype: str, room: str, at: int, scene: Scene) -> Iterator[RoomEvent]:
    """An edit or a deletion, as it happens or out of the log that some exports keep.

    An edit into a tombstone is a deletion. Slack also reports a change where a link was unfurled or a reply counted:
    what neither says, shows nor quotes anything new, and is not marked as edited anew, is no edit.
    """
    message = entry.get("message")
    of = message if isinstance(message, dict) else {}
    ts = entry.get("deleted_ts") if subtype == DELETED else of.get("ts")
    millis(ts, "deleted_ts" if subtype == DELETED else "message.ts")
    if subtype == DELETED or of.get("subtype") == GONE:
        yield _deleted(room, str(ts), at, scene)
        return
    now = {k: v for k, v in of.items() if k != "edited"}
    before = entry.get("previous_message")
    if isinstance(before, dict):
        (said, shown), (said_before, shown_before) = _says(of, room, scene), _says(before, room, scene)
        if said == said_before and shown == shown_before:
            return
        if said == said_before:  # what is new is not in the text, and an edit is known by its text
            now["text"] = "\n".join([_text_or_none(of, "text") or "", json.dumps(shown, ensure_ascii=False)])
    for event in _observed(now, room, at, scene, at):
        yield RoomEvent(event.record, at, event.topic, {**event.fields, "edited": True})


def _says(entry: dict[str, Any], room: str, scene: Scene) -> tuple[object, object]:
    """What an entry says and quotes, and what it shows; of attachments only what they quote counts."""
    quotes = quotes_of({"ts": None, **entry}, room, scene.accounts.namespace, scene.rooms)
    shown = {name: entry.get(name) for name in ("blocks", "files", "edited")}
    return (entry.get("text"), quotes), shown


def _deleted(room: str, ts: str, at: int, scene: Scene) -> RoomEvent:
    return scene.event("MessageDeleted", at, "observed-messages", room=room, message=f"{room}/{ts}")


def _edit_time(entry: dict[str, Any], at: int, last: int) -> int | None:
    """When a message was last edited: `last` where that is not said, or not after it was written; None if never."""
    edited = entry.get("edited")
    if edited is None:
        return None
    ts = edited.get("ts") if isinstance(edited, dict) else None
    when = millis(ts, "edited.ts") if ts is not None else last
    return when if when >= at else last


def _text_or_none(entry: dict[str, Any], field: str) -> str | None:
    value = entry.get(field)
    if value is not None and not isinstance(value, str):
        raise EntryError(f"{field} is no text")
    return None if value is None else value.encode("utf-8", "replace").decode("utf-8")
