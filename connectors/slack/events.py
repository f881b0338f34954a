"""Decides which records an event of Slack's becomes (docs/slack.md has the table).

Whatever changes who can read a conversation is an invalidation, never a listing: events are dropped, repeated and
reordered. An event that cannot be read makes its conversation unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from turngate.connectors.slack.directory import Directory, LiveAccounts
from turngate.connectors.slack.entries import RoomEvent, Scene, author_team, events_of
from turngate.connectors.slack.ids import EntryError, is_id, millis
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.members import contradicts, member_of
from turngate.connectors.slack.rooms import Odd
from turngate.schemas.catalog import RECORDS
from turngate.schemas.inputs import Record, RoomChanged
from turngate.schemas.shapes import Member, MemberKind

#: The one event that is an observation. An `app_mention` is told of the same message, perhaps without what it embeds,
#: and the engine takes the first that it is told.
MESSAGE = "message"
#: Counts the replies of a message; these come by themselves.
REPLIED = "message_replied"
#: Who came or went.
MEMBERSHIP: MappingProxyType[str, str] = MappingProxyType(
    {"member_joined_channel": "joined", "member_left_channel": "left"}
)
#: What makes a conversation's listings void (R-ROOM-5).
ROOM: MappingProxyType[str, str] = MappingProxyType(
    {
        **{f"{kind}_archive": "archived" for kind in ("channel", "group")},
        **{f"{kind}_unarchive": "unarchived" for kind in ("channel", "group")},
        **{f"{kind}_deleted": "deleted" for kind in ("channel", "group")},
        **{f"{kind}_rename": "renamed" for kind in ("channel", "group")},
        **{f"{kind}_left": "the agent's account left" for kind in ("channel", "group")},
        **{f"{kind}_history_changed": "its history was changed" for kind in ("channel", "group", "im")},
        **{f"shared_channel_invite_{what}": f"an invitation to share it was {what}" for what in
           ("requested", "received", "approved", "accepted", "declined")},
        "channel_shared": "shared",
        "channel_unshared": "unshared",
    }
)  # fmt: skip
_ACCESS = ("team_access_granted", "team_access_revoked")
#: What makes everything void that a workspace's app knew.
WORKSPACE: MappingProxyType[str, str] = MappingProxyType(
    {
        "tokens_revoked": "token revoked",
        "app_uninstalled": "app uninstalled",
        **dict.fromkeys(_ACCESS, "access of workspaces changed"),
        "grid_migration_started": "the organisation is migrated",
        "grid_migration_finished": "the organisation was migrated",
        "external_org_migration_started": "another organisation is migrated",
        "external_org_migration_finished": "another organisation was migrated",
        "app_rate_limited": "events were left out by Slack",
    }
)
#: An account in the room became a guest, or a full member, or was deactivated.
ACCOUNT_CHANGED = "an account in it became something else"
MISSED = "events may have been missed"
#: After these, what Slack said of a room's accounts is asked anew.
DOUBTED = (ACCOUNT_CHANGED, MISSED)
UNREADABLE = "an event that cannot be read"
#: Characters and quotes of a message that a record of 1 MB holds, in whatever script.
_TEXT, _QUOTES = 200_000, 2_000


def translate(envelope: Mapping[str, Any], home: Installation, directory: Directory, now: int) -> list[Record]:
    """The records of an envelope that was sent to this installation; `now` in milliseconds.

    What happened to a room is dated now, if Slack's clock does not say later: a listing that began before this was
    heard of must not count as one that began after it, whatever Slack's clock and that of listings differ by.
    """
    inner = envelope.get("event")
    event: Mapping[str, Any] = inner if isinstance(inner, dict) else envelope
    try:
        records = list(_records(envelope, event, home, directory, moment(event, now)))
        if any(len(r.fields.get("text") or "") > _TEXT or len(r.fields.get("quotes", ())) > _QUOTES for r in records):
            raise EntryError("larger than a record may be")
        return [RECORDS[made.record].model_validate(_dated(made, now)) for made in records]
    except (EntryError, ValidationError):
        conversation = _conversation(event)
        return [] if conversation is None else [changed(home, home.room(conversation), UNREADABLE, now)]


def everything(home: Installation, directory: Directory, what: str, at: int) -> list[Record]:
    """What is said of every room that this installation has listed."""
    return [changed(home, room, what, at) for room in directory.rooms(home)]


def changed(home: Installation, room: str, what: str, at: int) -> RoomChanged:
    """A room became something else."""
    return RoomChanged(tenant=home.tenant, at=at, agent=home.agent, room=room, what=what)


def _dated(made: RoomEvent, now: int) -> dict[str, Any]:
    """A message's time stays Slack's: a later one would let in who joined after it was said (R-AUD-9)."""
    if made.record in ("RoomChanged", "MembershipChanged"):
        return {**made.fields, "at": max(made.at, now)}
    return made.fields


def account_of(event: Mapping[str, Any]) -> str | None:
    """The account of which an event says that it changed."""
    user = event.get("user")
    account = user.get("id") if event.get("type") == "user_change" and isinstance(user, dict) else None
    return str(account) if is_id(account) else None


def teams_named(event: Mapping[str, Any]) -> list[str]:
    """The workspaces to which an organisation gave an app access, or from which it took it, whoever is told of it."""
    teams = event.get("team_ids") if event.get("type") in _ACCESS else None
    return [team for team in teams if is_id(team)] if isinstance(teams, list) else []


def rooms_named(event: Mapping[str, Any], home: Installation) -> frozenset[str]:
    """The rooms that an event is about, as this installation names them."""
    named = (_conversation(event), event.get("old_channel_id"), event.get("new_channel_id"))
    return frozenset(home.room(str(conversation)) for conversation in named if is_id(conversation))


def _records(
    envelope: Mapping[str, Any], event: Mapping[str, Any], home: Installation, directory: Directory, at: int
) -> Iterator[RoomEvent]:
    kind = str(event.get("type"))
    accounts = LiveAccounts(home, directory, shared=envelope.get("is_ext_shared_channel") is not False)
    scene = Scene(home.tenant, home.agent, accounts, frozenset())
    if kind == MESSAGE:
        for made in _of_message(event, scene):
            yield _certain(made, home, directory)
    elif kind in MEMBERSHIP:
        yield _certain(_membership(event, scene, MEMBERSHIP[kind], at), home, directory)
    elif kind == "channel_id_changed":
        for name in ("old_channel_id", "new_channel_id"):
            yield _changed(scene, event.get(name), "renamed id", at)
    elif kind in ROOM:
        yield _changed(scene, _conversation(event), ROOM[kind], at)
    elif kind in WORKSPACE:
        for room in directory.rooms(home):
            yield scene.event("RoomChanged", at, "membership-refreshes", room=room, what=WORKSPACE[kind])
    elif kind == "user_change":
        for room in _rooms_of_changed(event, home, directory):
            yield scene.event("RoomChanged", at, "membership-refreshes", room=room, what=ACCOUNT_CHANGED)


def _of_message(event: Mapping[str, Any], scene: Scene) -> Iterator[RoomEvent]:
    if event.get("subtype") == REPLIED:
        return
    conversation = _conversation(event)
    if conversation is None:
        raise EntryError("channel is no id of Slack's")
    when = millis(event.get("ts"))
    yield from events_of(dict(event), conversation, scene, when)


def _membership(event: Mapping[str, Any], scene: Scene, change: str, at: int) -> RoomEvent:
    user, conversation = event.get("user"), _conversation(event)
    if not is_id(user):
        return _changed(scene, conversation, f"somebody {change}, and Slack does not say who", at)
    account = scene.accounts.of(str(user), author_team({"team": event.get("team")}, scene.accounts.team))
    if conversation is None:
        raise EntryError("channel is no id of Slack's")
    return scene.event(
        "MembershipChanged",
        at,
        "membership-refreshes",
        room=scene.room(conversation),
        reader=account.reader,
        kind=account.kind.value,
        workspaces=[],
        change=change,
    )


def _certain(made: RoomEvent, home: Installation, directory: Directory) -> RoomEvent:
    """A join or leave, where it is known under which id the account is listed.

    An account of an organisation has the id that `users.info` gives it, which an event does not tell. A leave under
    another id would leave a reader in the room who is not there any more. While the agent's own account was not in a
    room nothing was told of it, and of its leaving Slack does not always tell.
    """
    if made.record == "MessageObserved":
        return _as_listed(made, home, directory)
    if made.record != "MembershipChanged":
        return made
    if made.fields["kind"] == MemberKind.SELF.value:
        return _void(made, f"the agent's account {made.fields['change']}")
    user = str(made.fields["reader"]).partition("/")[2]
    known = directory.account(home, user)
    if known is not None and known.reader == made.fields["reader"]:
        workspaces = list(known.workspaces) if made.fields["kind"] == MemberKind.MEMBER.value else []
        return RoomEvent(made.record, made.at, made.topic, {**made.fields, "workspaces": workspaces})
    if home.enterprise is None and known is None:
        return made
    return _void(made, f"somebody {made.fields['change']} whose id is not known yet")


def _as_listed(made: RoomEvent, home: Installation, directory: Directory) -> RoomEvent:
    """A message of an organisation's account has the id that listings give it: under another a guest would be none."""
    author = made.fields["author"]
    if author is None or home.enterprise is None:
        return made
    reader = directory.reader(home, author.partition("/")[2]) or author
    return RoomEvent(made.record, made.at, made.topic, made.fields | {"author": reader})


def _void(made: RoomEvent, what: str) -> RoomEvent:
    fields = {name: made.fields[name] for name in ("tenant", "at", "agent", "room")}
    return RoomEvent("RoomChanged", made.at, made.topic, {**fields, "what": what})


def _changed(scene: Scene, conversation: object, what: str, at: int) -> RoomEvent:
    if not is_id(conversation):
        raise EntryError("channel is no id of Slack's")
    return scene.event("RoomChanged", at, "membership-refreshes", room=scene.room(str(conversation)), what=what)


def account_now(event: Mapping[str, Any], home: Installation) -> Member | None:
    """What the account of a `user_change` is now; None where that is not said, or it is nobody's any more."""
    account, user = account_of(event), event.get("user")
    if account is None or not isinstance(user, dict) or user.get("deleted") is True:
        return None
    try:
        return member_of(user, account, home)
    except Odd:
        return None


def _rooms_of_changed(event: Mapping[str, Any], home: Installation, directory: Directory) -> list[str]:
    """The rooms that listed an account as something that it is no more; nobody's status or picture is that."""
    account, now = account_of(event), account_now(event, home)
    if account is None:
        return []
    listed = directory.account(home, account)
    same = now is not None and listed is not None and not contradicts(listed, now)
    return [] if same else directory.rooms_with(home, account)


def _conversation(event: Mapping[str, Any]) -> str | None:
    channel = event.get("channel")
    found = channel.get("id") if isinstance(channel, dict) else channel
    return str(found) if is_id(found) else None


def moment(event: Mapping[str, Any], now: int) -> int:
    """When it happened by Slack's clock, in milliseconds; `now` where that is not said."""
    try:
        return millis(event.get("event_ts"), "event_ts")
    except EntryError:
        return now
