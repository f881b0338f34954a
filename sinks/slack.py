"""Decides how Slack is spoken in: exactly the authorized bytes, once, and how what may have been said is found again.

Nothing is tried again here (R-DLV-2), links and media are not unfurled, and a name in the text stays text (R-DLV-3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from html import escape
from typing import Any

from turngate.connectors.slack.api import CallFailed, SlackApi
from turngate.connectors.slack.doubts import Doubts
from turngate.connectors.slack.ids import TS
from turngate.connectors.slack.installations import Installation, Installations
from turngate.connectors.slack.listing import list_room, worth_it
from turngate.connectors.slack.members import next_cursor
from turngate.connectors.slack.resolving import People
from turngate.connectors.slack.rooms import Odd
from turngate.schemas.inputs import Record
from turngate.schemas.metadata import metadata, named_in
from turngate.schemas.shapes import Code, Reason
from turngate.sinks.claims import Key, Place
from turngate.sinks.ports import Direct, Listed, NotPosted, Posted, Said, Unsure

#: Where Slack cuts a text, in UTF-16 units, which are never fewer than characters, and with `&`, `<` and `>` as it may
#: write them. Nothing is ever sent in part.
LONGEST = 40_000
#: Messages of one page, and pages, that are looked through for one that may be there.
_PAGE, _MOST_PAGES = 200, 50

log = logging.getLogger(__name__)


class SlackConnector:
    """The rooms of Slack's workspaces. A call uses the token of the room's own workspace, or none."""

    def __init__(self, api: SlackApi, people: People, installations: Installations, clock: Callable[[], int]) -> None:
        self._api = api
        self._people = people
        self._installations = installations
        self._clock = clock
        self._doubts = Doubts(people)

    def serves(self, room: str) -> bool:
        """See `Connector`."""
        return room.startswith("slack:")

    def told(self, record: Record) -> None:
        """See `Connector`. What an account is counts no more when it became something else (R-ROOM-5)."""
        self._doubts.learn(record)

    async def listing(self, tenant: str, agent: str, room: str) -> Listed:
        """See `Connector`."""
        home = self._installations.of_room(tenant, agent, room)
        if home is None:
            return Listed()
        listing = await list_room(self._api, self._people, home, _conversation(room), self._clock())
        return Listed(tuple(listing.pages(self._clock())), listing.wait)

    async def post(self, tenant: str, place: Place, said: Said) -> Posted | NotPosted | Unsure:
        """See `Connector`."""
        home = self._installations.of_room(tenant, place.agent, place.room)
        if home is None:
            return NotPosted(Reason(code=Code.CONNECTOR_REFUSED, detail="not_installed"))
        if len(escape(said.text, quote=False).encode("utf-16-le")) // 2 > LONGEST:
            return NotPosted(Reason(code=Code.TEXT_TOO_LONG))
        try:
            answer = await self._api.call(home, "chat.postMessage", **arguments(place, said))
        except CallFailed as failed:
            return _failure(failed)
        ts, channel = answer.get("ts"), answer.get("channel")
        if not isinstance(ts, str) or TS.fullmatch(ts) is None:
            return Unsure()
        return Posted(f"{place.room}/{ts}" if channel == _conversation(place.room) else None)

    async def amend(self, tenant: str, place: Place, message: str, said: Said) -> float | None:
        """See `Connector`."""
        home = self._installations.of_room(tenant, place.agent, place.room)
        if home is None:
            return None
        where = {"channel": _conversation(place.room), "ts": message.rpartition("/")[2]}
        try:
            await self._api.call(home, "chat.update", text=said.text, blocks=list(said.blocks), **where)
        except CallFailed as failed:
            log.info("%s: cannot be changed: %s", said.name, failed)
            return worth_it(failed)
        return None

    async def find(self, key: Key, place: Place, mark: str, since: int) -> str | None:
        """See `Connector`."""
        home = self._installations.of_room(key.tenant, place.agent, place.room)
        if home is None:
            return None
        where: dict[str, Any] = {"channel": _conversation(place.room), "oldest": f"{since / 1000:.6f}"}
        methods = ["conversations.history"]
        if place.thread is not None:  # a thread that is not there is dropped, and the message is then in the room
            methods.insert(0, "conversations.replies")
        for method in methods:
            try:
                ts = await self._marked(home, method, where | _thread(method, place), mark, key.id)
            except (CallFailed, Odd) as failed:
                log.info("%s %s: cannot be looked for: %s", key.kind, key.id, failed)
                continue
            if ts is not None:
                return f"{place.room}/{ts}"
        return None

    async def direct_room(self, tenant: str, agent: str, reader: str) -> Direct:
        """See `Connector`."""
        home = self._installations.of_room(tenant, agent, reader)
        if home is None:
            return Direct()
        try:
            answer = await self._api.call(home, "conversations.open", users=_conversation(reader))
        except CallFailed as failed:
            log.warning("a direct room cannot be opened: %s", failed)
            return Direct(wait=worth_it(failed))
        channel = answer.get("channel")
        name = channel.get("id") if isinstance(channel, dict) else None
        return Direct(home.room(name) if isinstance(name, str) else None)

    async def _marked(self, home: Installation, method: str, where: dict[str, Any], mark: str, name: str) -> str | None:
        """The message of our own that is marked so; of others' messages the mark says nothing."""
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            answer = await self._api.call(home, method, limit=_PAGE, include_all_metadata=True, cursor=cursor, **where)
            messages = answer.get("messages")
            for message in messages if isinstance(messages, list) else ():
                own = isinstance(message, dict) and message.get("user") == home.bot_user
                if own and named_in(message.get("metadata"), mark) == name and TS.fullmatch(str(message.get("ts"))):
                    return str(message["ts"])
            cursor = next_cursor(answer)
            if cursor is None:
                return None
        raise Odd("pages_without_end")


def arguments(place: Place, said: Said) -> dict[str, Any]:
    """Everything that is asked of `chat.postMessage`; what is left out has a default that somebody else may change."""
    return {
        "channel": _conversation(place.room),
        "text": said.text,
        "blocks": list(said.blocks) or None,
        "thread_ts": place.thread,
        "reply_broadcast": said.broadcast and place.thread is not None,
        "unfurl_links": False,
        "unfurl_media": False,
        "link_names": False,
        "parse": "none",
        "metadata": metadata(said.mark, said.name),
    }


def _failure(failed: CallFailed) -> NotPosted | Unsure:
    if failed.done:
        return Unsure()
    if failed.code == "unreachable":
        return NotPosted(Reason(code=Code.CONNECTOR_UNREACHABLE), 1.0)
    if failed.wait is not None:
        return NotPosted(Reason(code=Code.RATE_LIMITED), failed.wait)
    return NotPosted(Reason(code=Code.CONNECTOR_REFUSED, detail=failed.code))


def _conversation(room: str) -> str:
    return room.partition("/")[2]


def _thread(method: str, place: Place) -> dict[str, Any]:
    return {"ts": place.thread} if method == "conversations.replies" else {}
