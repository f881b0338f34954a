"""What people do in Slack, and which events it tells of that; nothing of it is delivered before a test says so."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.slack.people import User, Workspace
from tests.slack.rooms import Conversation

Json = dict[str, Any]


class World:
    """Workspaces, users and conversations, by id, and the `queue` of envelopes that Slack has still to deliver."""

    def __init__(self) -> None:
        self.workspaces: dict[str, Workspace] = {}
        self.rooms: dict[str, Conversation] = {}
        self.queue: list[Json] = []
        self.lock = threading.RLock()
        #: What time it is in Slack, in seconds since the epoch.
        self.clock: Callable[[], float] = time.time
        self._numbers = itertools.count(1)

    def workspace(self, team: str, bot: str = "UBOT", *, enterprise: str | None = None, **more: Any) -> Workspace:
        """A new workspace, in which the app is installed with this bot user; `enterprise`: of an organisation.

        `org_wide`: the app is installed once for the whole organisation, `app`: under another id than A1.
        """
        self.workspaces[team] = Workspace(team, enterprise, bot, **more)
        return self.workspaces[team]

    def channel(self, room: str, home: Workspace, members: list[str], **more: Any) -> Conversation:
        """A new channel: `private`, `archived`, `org`, `external`, `pending`, `odd`, as in `Conversation`."""
        self.rooms[room] = Conversation(room, home.id, list(members), **more)
        return self.rooms[room]

    def direct(self, room: str, home: Workspace, user: str, **more: Any) -> Conversation:
        """A direct message between the app's bot and a user."""
        return self.channel(room, home, [home.bot, user], kind="im", private=True, **more)

    def group(self, room: str, home: Workspace, users: list[str], **more: Any) -> Conversation:
        """A multi-party direct message between the app's bot and users."""
        return self.channel(room, home, [home.bot, *users], kind="mpim", private=True, **more)

    def user(self, user: str) -> User | None:
        """An account, of whichever workspace."""
        return next((w.users[user] for w in self.workspaces.values() if user in w.users), None)

    # What is said.

    def say(self, room: Conversation, user: str, text: str, **more: Any) -> str:
        """A message, a reply (`thread_ts`), a share (`attachments`), …; returns its ts."""
        author = self.user(user)
        message = {"type": "message", "user": user, "text": text, "ts": self.ts(), **more}
        if author is not None:
            message = {"team": author.team, **message}
            if author.bot:
                message = {"bot_id": "B" + user[1:], **message}
        return self.put(room, message)

    def put(self, room: Conversation, message: Json) -> str:
        """Any message, as it is."""
        with self.lock:
            room.messages[message["ts"]] = message
            self._message(room, message)
        return str(message["ts"])

    def edit(self, room: Conversation, ts: str, text: str | None = None, **more: Any) -> None:
        """A message gets another text; without one it is as Slack changes messages itself, for an unfurl or a count."""
        with self.lock:
            before = copy.deepcopy(room.messages[ts])
            now = self.ts()
            after = room.messages[ts] | more
            if text is not None:
                after |= {"text": text, "edited": {"user": before.get("user"), "ts": now}}
            room.messages[ts] = after
            self._message(
                room,
                {
                    "type": "message",
                    "subtype": "message_changed",
                    "hidden": True,
                    "message": copy.deepcopy(after),
                    "previous_message": before,
                    "ts": now,
                },
            )

    def delete(self, room: Conversation, ts: str) -> None:
        """A message is deleted."""
        with self.lock:
            before = room.messages.pop(ts)
            deleted = {"type": "message", "subtype": "message_deleted", "hidden": True, "deleted_ts": ts}
            self._message(room, {**deleted, "previous_message": before, "ts": self.ts()})

    # Who is there.

    def join(self, room: Conversation, user: str, *, told: bool = True) -> None:
        """Somebody joins; `told`: whether Slack tells of it, which it sometimes does not."""
        with self.lock:
            if user not in room.members:
                room.members.append(user)
            if told:
                self._membership(room, "member_joined_channel", user)

    def leave(self, room: Conversation, user: str, *, told: bool = True) -> None:
        """Somebody leaves. Where it is the app's own bot, Slack tells of it in another way."""
        with self.lock:
            room.members.remove(user)
            for team in room.teams if told else ():
                home = self.workspaces[team]
                if user == home.bot:
                    left = "group_left" if room.private else "channel_left"
                    self.tell(home, {"type": left, "channel": room.id, "actor_id": "UADMIN"})
            if told and user not in {self.workspaces[t].bot for t in room.teams}:
                self._membership(room, "member_left_channel", user)

    # What becomes of a conversation.

    def convert(self, room: Conversation, *, private: bool) -> None:
        """A public channel becomes private, or the other way round; that is told by a message."""
        room.private = private
        subtype = "channel_convert_to_private" if private else "channel_convert_to_public"
        self.put(room, {"type": "message", "subtype": subtype, "user": "UADMIN", "text": "", "ts": self.ts()})

    def share(self, room: Conversation, team: str) -> None:
        """Another organisation's workspace gets the channel."""
        room.external.append(team)
        self._room(room, {"type": "channel_shared", "connected_team_id": team})

    def unshare(self, room: Conversation, team: str) -> None:
        """It loses it."""
        room.external.remove(team)
        event = {"type": "channel_unshared", "previously_connected_team_id": team, "is_ext_shared": bool(room.external)}
        self._room(room, event)

    def archive(self, room: Conversation, *, archived: bool = True) -> None:
        """A channel is archived, or comes back."""
        room.archived = archived
        event = ("group_" if room.private else "channel_") + ("archive" if archived else "unarchive")
        self._room(room, {"type": event, "user": "UADMIN"})

    def rename(self, room: Conversation, name: str) -> None:
        """A channel gets another name."""
        room.name = name
        channel = {"id": room.id, "name": name, "created": 1_700_000_000}
        event = {"type": "group_rename" if room.private else "channel_rename", "channel": channel}
        for team in room.teams:
            self.tell(self.workspaces[team], event)

    def change_id(self, room: Conversation, new: str) -> None:
        """A channel gets another id, as some do when they are shared."""
        with self.lock:
            old, room.id = room.id, new
            self.rooms[new] = self.rooms.pop(old)
            changed = {"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": new}
            for team in room.teams:
                self.tell(self.workspaces[team], changed)

    def uninstall(self, home: Workspace) -> None:
        """The app is removed: its token counts no more. Both events come, in no order that Slack promises."""
        home.installed = False
        self.tell(home, {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [home.bot]}})
        self.tell(home, {"type": "app_uninstalled"})

    def take_access(self, gone: Workspace, told: Workspace) -> None:
        """An organisation takes a workspace from its app, whose token still counts in the others; one is told."""
        gone.installed = False
        self.tell(told, {"type": "team_access_revoked", "team_ids": [gone.id]})

    # How it is told.

    def tell(self, home: Workspace, event: Json, **more: Any) -> Json:
        """Queue the envelope of an event for the app in this workspace, and return it; `more`: fields of its own."""
        envelope = {
            "token": "verification",
            "team_id": home.id,
            "context_team_id": home.id,
            "context_enterprise_id": home.enterprise,
            "api_app_id": home.app,
            "event": copy.deepcopy(event) | {"event_ts": event.get("ts", self.ts())},
            "type": "event_callback",
            "event_id": f"Ev{next(self._numbers):09d}",
            "event_time": int(self.clock()),
            "authorizations": [{"team_id": home.id, "user_id": home.bot, "is_bot": True, "enterprise_id": None}],
            "is_ext_shared_channel": False,
        } | more
        if home.enterprise is not None:
            envelope["enterprise_id"] = home.enterprise
        self.queue.append(envelope)
        return envelope

    def ts(self) -> str:
        """The next message's id."""
        with self.lock:
            return f"{int(self.clock())}.{next(self._numbers):06d}"

    def _message(self, room: Conversation, message: Json) -> None:
        for team in room.teams:
            home = self.workspaces[team]
            if home.bot in room.members:
                event = {**message, "channel": room.id, "channel_type": room.type}
                self.tell(home, event, is_ext_shared_channel=bool(room.external))

    def _membership(self, room: Conversation, kind: str, user: str) -> None:
        member = self.user(user)
        event = {"type": kind, "user": user, "channel": room.id, "channel_type": room.letter}
        for team in room.teams:
            if self.workspaces[team].bot in room.members:
                self.tell(self.workspaces[team], event | {"team": member.team if member else team})

    def _room(self, room: Conversation, event: Json) -> None:
        for team in room.teams:
            if self.workspaces[team].bot in room.members and team not in room.external:
                self.tell(self.workspaces[team], {**event, "channel": room.id})
