"""Who there is: workspaces, the app that is installed in them, and users as another workspace's token sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class User:
    """An account of a workspace; on Enterprise Grid also of the organisation's further `teams`."""

    id: str
    team: str
    enterprise: str | None = None
    teams: tuple[str, ...] = ()
    guest: bool = False
    #: Of these workspaces it is a guest, whatever it is elsewhere.
    guest_in: tuple[str, ...] = ()
    single_channel: bool = False
    bot: bool = False
    workflow: bool = False
    deleted: bool = False
    #: Fields of the JSON that are given other values, or left out where the value is None.
    odd: dict[str, Any] = field(default_factory=dict)

    def json(self, seen_from: str, enterprise: str | None, *, org_wide: bool = False) -> dict[str, Any]:
        """What `users.info` says to a token of that workspace; `org_wide`: to the organisation's, of whichever one."""
        at_home = self.team == seen_from or seen_from in self.teams
        name = self.id.lower()
        user: dict[str, Any] = {
            "id": self.id,
            "team_id": seen_from if at_home and self.team != seen_from else self.team,
            "name": name,
            "deleted": self.deleted,
            "profile": {"real_name": name, "display_name": name, "team": self.team},
            "is_bot": self.bot,
            "is_app_user": False,
            "updated": 1_700_000_000,
        }
        if self.workflow:
            user["is_workflow_bot"] = True
        if not self.deleted:  # Slack leaves these out of deleted accounts
            everywhere = {self.team, *self.teams} <= set(self.guest_in)
            guest = self.guest or (everywhere if org_wide else seen_from in self.guest_in)
            user |= {"is_restricted": guest or self.single_channel, "is_ultra_restricted": self.single_channel}
            user |= {"is_admin": False, "is_owner": False, "is_primary_owner": False, "is_email_confirmed": True}
        if not at_home and (enterprise is None or self.enterprise != enterprise):
            user["is_stranger"] = True
        if self.enterprise is not None:
            user["enterprise_user"] = {
                "id": self.id,
                "enterprise_id": self.enterprise,
                "enterprise_name": self.enterprise.lower(),
                "is_admin": False,
                "is_owner": False,
                "teams": [self.team, *self.teams],
            }
        user |= self.odd
        return {key: value for key, value in user.items() if value is not None}


@dataclass
class Workspace:
    """A workspace with one app installed: its bot's user and bot ids, and the token that its calls carry."""

    id: str
    enterprise: str | None
    bot: str
    app: str = "A1"
    #: The app is installed once, for the whole organisation.
    org_wide: bool = False
    users: dict[str, User] = field(default_factory=dict)
    installed: bool = True
    #: The bot token of the installation, and what it may do, in the header of every answer.
    token: str = ""
    scopes: str = ""

    def __post_init__(self) -> None:
        self.token = self.token or f"xoxb-{self.enterprise if self.org_wide else self.id}-{self.app}"
        self.user(self.bot, bot=True)

    @property
    def bot_id(self) -> str:
        """The bot's id, which is not that of its user."""
        return "B" + self.bot[1:]

    def user(self, user: str, **more: Any) -> User:
        """A new account: `guest`, `single_channel`, `bot`, `workflow`, `deleted`, `teams`, `odd`."""
        self.users[user] = User(user, self.id, self.enterprise, **more)
        return self.users[user]
