"""What each method of the Web API answers to the token of one workspace, and what it does."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.slack.people import User, Workspace
from tests.slack.rooms import Conversation
from tests.slack.world import World

Json = dict[str, Any]
#: As Slack documents them: what a page may ask for, and where a text is cut.
MOST, LONGEST = 1000, 40_000
EVENT_TYPE = re.compile(r"[A-Za-z0-9_]+")
#: Reading methods; with a JSON body they know no arguments.
READING = frozenset(
    {
        *("conversations.info", "conversations.members", "conversations.history", "conversations.replies"),
        *("users.info", "users.list", "auth.teams.list"),
    }
)


class Refused(Exception):
    """`ok: false`, with this code."""


@dataclass(frozen=True, slots=True)
class Post:
    """A message that `chat.postMessage` said: its arguments as they came, and what it became."""

    team: str
    room: str
    ts: str
    args: Json


@dataclass
class Methods:
    """The methods, over a world. `page`: the most that a page holds; `codes`: what OAuth codes are good for."""

    world: World
    page: int = MOST
    #: Whether a cursor counts the items before it. Slack's name an item, but nothing promises it.
    counting: bool = False
    codes: dict[str, Workspace] = field(default_factory=dict)
    #: Whether OAuth hands out tokens that expire, and the refresh tokens that are good for a new one.
    rotating: bool = False
    refreshing: dict[str, Workspace] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    posts: list[Post] = field(default_factory=list)
    ephemerals: list[Post] = field(default_factory=list)

    def answer(self, method: str, token: str | None, args: Json) -> Json:
        """The body of the answer."""
        try:
            with self.world.lock:
                if method == "oauth.v2.access":
                    return {"ok": True, **self._oauth(args)}
                home = self.home(token, args)
                known: dict[str, Callable[[Workspace, Json], Json]] = {
                    "auth.test": self._auth,
                    "auth.teams.list": self._teams,
                    "users.info": self._user,
                    "users.list": self._users,
                    "conversations.info": self._info,
                    "conversations.members": self._members,
                    "conversations.history": self._history,
                    "conversations.replies": self._replies,
                    "conversations.open": self._open,
                    "chat.postMessage": self._post,
                    "chat.postEphemeral": self._whisper,
                    "chat.update": self._update,
                }
                if method not in known:
                    raise Refused("unknown_method")
                return {"ok": True, **known[method](home, args)}
        except Refused as refusal:
            return {"ok": False, "error": str(refusal)}

    def home(self, token: str | None, args: Json) -> Workspace:
        """The workspace whose token this is; of an organisation's, that of `team_id` or of the conversation."""
        if not token:
            raise Refused("not_authed")
        if token in self.expired:
            raise Refused("token_expired")
        homes = [w for w in self.world.workspaces.values() if w.token == token]
        if not homes:
            raise Refused("invalid_auth")
        room = self.world.rooms.get(str(args.get("channel")))
        wanted = [args.get("team_id"), *(room.teams if room else ())]
        home = next((w for team in wanted for w in homes if w.id == team), homes[0])
        if not home.installed:
            raise Refused("account_inactive")
        return home

    # Reading.

    def _auth(self, home: Workspace, args: Json) -> Json:
        answer: Json = {"url": f"https://{home.id.lower()}.slack.com/", "team": home.id.lower(), "team_id": home.id}
        answer |= {"user": "agent", "user_id": home.bot, "bot_id": home.bot_id, "is_enterprise_install": home.org_wide}
        return answer if home.enterprise is None else answer | {"enterprise_id": home.enterprise}

    def _teams(self, home: Workspace, args: Json) -> Json:
        """The workspaces in which an app of the organisation's is."""
        homes = [w for w in self.world.workspaces.values() if w.token == home.token and w.installed]
        page, more = self._paged(homes, args, lambda w: w.id)
        return {"teams": [{"id": w.id, "name": w.id.lower()} for w in page], **more}

    def _user(self, home: Workspace, args: Json) -> Json:
        user = self.world.user(str(args.get("user")))
        if user is None or not self._sees(home, user):
            raise Refused("user_not_found")
        return {"user": user.json(home.id, home.enterprise, org_wide=home.org_wide)}

    def _users(self, home: Workspace, args: Json) -> Json:
        """Whoever is of the workspace; strangers are not on it."""
        users = [u for w in self.world.workspaces.values() for u in w.users.values() if home.id in (u.team, *u.teams)]
        page, more = self._paged(users, args, lambda user: user.id)
        return {"members": [user.json(home.id, home.enterprise, org_wide=home.org_wide) for user in page], **more}

    def _sees(self, home: Workspace, user: User) -> bool:
        if home.id in (user.team, *user.teams) or (home.enterprise and home.enterprise == user.enterprise):
            return True
        return any(home.id in room.teams and user.id in room.members for room in self.world.rooms.values())

    def _room(self, home: Workspace, args: Json) -> Conversation:
        """What is hidden from the token is answered as what is not there."""
        room = self.world.rooms.get(str(args.get("channel")))
        if room is None or home.id not in room.teams or (room.private and home.bot not in room.members):
            raise Refused("channel_not_found")
        return room

    def _info(self, home: Workspace, args: Json) -> Json:
        room = self._room(home, args)
        channel = room.json(home.id, home.bot)
        if str(args.get("include_num_members")).lower() in ("1", "true"):
            channel["num_members"] = len(room.members)
        return {"channel": channel}

    def _members(self, home: Workspace, args: Json) -> Json:
        members, more = self._paged(self._room(home, args).members, args, str)
        return {"members": members, **more}

    def _history(self, home: Workspace, args: Json) -> Json:
        room = self._readable(home, args)
        said = [m for m in room.messages.values() if m.get("thread_ts") in (None, m["ts"]) or _broadcast(m)]
        return self._said(list(reversed(said)), args)

    def _replies(self, home: Workspace, args: Json) -> Json:
        room, root = self._readable(home, args), str(args.get("ts"))
        if root not in room.messages:
            raise Refused("thread_not_found")
        return self._said([m for m in room.messages.values() if root in (m["ts"], m.get("thread_ts"))], args)

    def _readable(self, home: Workspace, args: Json) -> Conversation:
        room = self._room(home, args)
        if home.bot not in room.members:
            raise Refused("not_in_channel")
        return room

    def _said(self, messages: list[Json], args: Json) -> Json:
        oldest, latest = str(args.get("oldest") or "0"), str(args.get("latest") or "9999999999.999999")
        ends = (oldest, latest) if str(args.get("inclusive")).lower() in ("1", "true") else ()
        within = [m for m in messages if oldest < m["ts"] < latest or m["ts"] in ends]
        page, more = self._paged(within, args, lambda m: m["ts"])
        shown = copy.deepcopy(page)
        if str(args.get("include_all_metadata")).lower() not in ("1", "true"):
            for message in shown:
                message.pop("metadata", None)
        return {"messages": shown, "has_more": bool(more["response_metadata"]["next_cursor"]), **more}

    def _paged(self, items: list[Any], args: Json, name: Callable[[Any], str]) -> tuple[list[Any], Json]:
        """A page; its cursor names the item that the next one begins with, so what joins behind it is on it."""
        named = [str(i) if self.counting else name(item) for i, item in enumerate(items)]
        try:
            limit = int(args.get("limit") or 100)
        except ValueError:
            raise Refused("invalid_limit") from None
        if not 1 <= limit <= MOST:
            raise Refused("invalid_limit")
        start = 0
        if args.get("cursor"):
            try:
                wanted = base64.b64decode(str(args["cursor"]), validate=True).decode()
            except ValueError:
                raise Refused("invalid_cursor") from None
            start = named.index(wanted) if wanted in named else len(items)
        end = start + min(limit, self.page)
        cursor = base64.b64encode(named[end].encode()).decode() if end < len(items) else ""
        return items[start:end], {"response_metadata": {"next_cursor": cursor}}

    # Writing.

    def _open(self, home: Workspace, args: Json) -> Json:
        if args.get("channel"):
            return {"channel": {"id": self._room(home, args).id}}
        users = args.get("users") or []
        users = users.split(",") if isinstance(users, str) else list(users)
        if not 1 <= len(users) <= 8:
            raise Refused("not_enough_users" if not users else "too_many_users")
        if any(self.world.user(u) is None for u in users):
            raise Refused("user_not_found")
        room, already = self._direct(home, users, create=not args.get("prevent_creation"))
        return {"channel": {"id": room.id}, "already_open": already, "no_op": already}

    def _direct(self, home: Workspace, users: list[str], *, create: bool = True) -> tuple[Conversation, bool]:
        kind = "im" if len(users) == 1 else "mpim"
        for room in self.world.rooms.values():
            if room.kind == kind and room.team == home.id and set(room.members) == {home.bot, *users}:
                return room, True
        if not create:
            raise Refused("channel_not_found")
        new = f"D{len(self.world.rooms):06d}"
        made = self.world.direct(new, home, *users) if kind == "im" else self.world.group(new, home, users)
        return made, False

    def _destination(self, home: Workspace, args: Json) -> Conversation:
        user = self.world.user(str(args.get("channel")))
        if user is not None:
            return self._direct(home, [user.id])[0]
        room = self._room(home, args)
        if home.bot not in room.members:
            raise Refused("not_in_channel")
        if room.archived:
            raise Refused("is_archived")
        return room

    def _post(self, home: Workspace, args: Json) -> Json:
        room = self._destination(home, args)
        message = self._message(home, args)
        root = args.get("thread_ts")
        if root in room.messages:  # Slack does not check it: one that is not there is dropped
            message["thread_ts"] = root
            if str(args.get("reply_broadcast")).lower() in ("1", "true"):
                message |= {"subtype": "thread_broadcast", "root": copy.deepcopy(room.messages[root])}
        ts = self.world.put(room, message)
        self.posts.append(Post(home.id, room.id, ts, args))
        return {"channel": room.id, "ts": ts, "message": {k: v for k, v in message.items() if k != "metadata"}}

    def _message(self, home: Workspace, args: Json) -> Json:
        text = args.get("text") or ""
        if not text and not args.get("blocks") and not args.get("attachments"):
            raise Refused("no_text")
        message = {"type": "message", "user": home.bot, "bot_id": home.bot_id, "app_id": home.app, "team": home.id}
        message |= {"text": text[:LONGEST], "ts": self.world.ts()}
        for name in ("blocks", "attachments", "metadata"):
            if args.get(name):
                message[name] = json.loads(args[name]) if isinstance(args[name], str) else args[name]
        metadata = message.get("metadata")
        if metadata is not None and not (
            metadata.get("event_type") and isinstance(metadata.get("event_payload"), dict)
        ):
            raise Refused("invalid_metadata_format")
        if metadata is not None and not EVENT_TYPE.fullmatch(metadata["event_type"]):
            del message["metadata"]  # as bolt-python#863 reports
        return message

    def _whisper(self, home: Workspace, args: Json) -> Json:
        room = self._destination(home, args)
        if args.get("user") not in room.members:
            raise Refused("user_not_in_channel")
        ts = self.world.ts()
        self.ephemerals.append(Post(home.id, room.id, ts, args))
        return {"message_ts": ts}

    def _update(self, home: Workspace, args: Json) -> Json:
        room, ts = self._destination(home, args), str(args.get("ts"))
        if ts not in room.messages:
            raise Refused("message_not_found")
        if room.messages[ts].get("user") != home.bot:
            raise Refused("cant_update_message")
        new = {k: v for k, v in self._message(home, args).items() if k in ("blocks", "attachments", "metadata")}
        self.world.edit(room, ts, (args.get("text") or "")[:4000], **new)
        return {"channel": room.id, "ts": ts, "text": args.get("text")}

    # Installing.

    def _oauth(self, args: Json) -> Json:
        if not args.get("client_id") or not args.get("client_secret"):
            raise Refused("invalid_client_id")
        if args.get("grant_type") == "refresh_token":
            home = self.refreshing.pop(str(args.get("refresh_token")), None)
            if home is None:
                raise Refused("invalid_refresh_token")
        else:
            home = self.codes.pop(str(args.get("code")), None)  # a code is good once
            if home is None:
                raise Refused("invalid_code")
        answer = {"app_id": home.app, "scope": "channels:read,chat:write", "token_type": "bot", "bot_user_id": home.bot}
        answer |= {"team": None if home.org_wide else {"id": home.id, "name": home.id.lower()}}
        answer |= {"enterprise": None if home.enterprise is None else {"id": home.enterprise, "name": "org"}}
        answer |= {"is_enterprise_install": home.org_wide, "authed_user": {"id": "UADMIN"}}
        home.installed = True
        if self.rotating:
            answer |= self._rotated(home)
        return answer | {"access_token": home.token}

    def _rotated(self, home: Workspace) -> Json:
        old, number = home.token, len(self.expired) + 1
        for workspace in self.world.workspaces.values():
            if workspace.token == old:
                workspace.token = f"xoxe.xoxb-{number}-{home.id}"
        self.expired.add(old)
        self.refreshing[f"xoxe-{number}-{home.id}"] = home
        return {"refresh_token": f"xoxe-{number}-{home.id}", "expires_in": 43_200}


def _broadcast(message: Json) -> bool:
    return message.get("subtype") == "thread_broadcast"
