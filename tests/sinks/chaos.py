"""Decides what the long test under faults is made of: its rooms, what goes wrong there, and what is read of the log."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from tests.sinks.engine import button
from tests.sinks.stage import CODEC
from tests.slack import Call, Conversation, Fault, Slack
from turngate.schemas import inputs, outputs
from turngate.schemas.inputs import Record
from turngate.schemas.metadata import TURN
from turngate.streams.local_log import LocalLog

#: Rooms, persons with whom the agent speaks alone, and drafts that need a yes.
ROOMS, AUTHORS, ASKED = 200, 5, 20
#: Of what Slack is asked, this share goes wrong in one way or another; and of listings, in this share somebody joins.
SHARE, JOINS = 0.03, 0.01
FINAL = ("deliver", "downgrade", "drop")


class Chaos:
    """A Slack with its rooms, what goes wrong there, and what was heard by whom."""

    def __init__(self, slack: Slack) -> None:
        self.slack = slack
        self.chance = random.Random(6)
        self.home = slack.workspace("T1", bot="UBOT")
        for user in ("UALEX", "UKIM", "UEVE", *(f"UD{n}" for n in range(AUTHORS))):
            self.home.user(user)
        members = ["UBOT", "UALEX", "UKIM"]
        self.rooms = [slack.channel(f"R{n}", self.home, members, private=True) for n in range(ROOMS)]
        self.directs = [slack.direct(f"D{n}", self.home, f"UD{n}") for n in range(AUTHORS)]
        #: Rooms that Eve joins, and when; and whoever was spoken to while she was there.
        self.joined: dict[str, float] = {}
        self.heard: list[tuple[str, float]] = []
        self.open_to_eve = False
        self._pressed: set[str] = set()
        self._told: dict[str, dict[str, Any]] = {}
        slack.retry_after = 0.01
        slack.before["chat.postMessage"] = self._post

    def fault(self, call: Call) -> Fault | None:
        """What becomes of a call; now and then Eve joins just before a room is listed, and Slack may not tell."""
        if self.open_to_eve and call.method == "conversations.info" and self.chance.random() < JOINS:
            self.join(self.slack.rooms[call.args["channel"]], told=self.chance.random() < 0.5)
        return self.chance.choice(list(Fault)) if self.chance.random() < SHARE else None

    def join(self, room: Conversation, *, told: bool) -> None:
        if room.kind == "channel" and int(room.id[1:]) >= ASKED // 2 and room.id not in self.joined:
            self.joined[room.id] = time.monotonic()
            self.slack.join(room, "UEVE", told=told)

    def _post(self, call: Call) -> None:
        if call.args["channel"] in self.joined:
            self.heard.append((call.args["channel"], time.monotonic()))

    def acknowledged(self) -> set[str]:
        """The messages that were said to be on the log."""
        events = [self._told[frame] for frame in self.slack.acknowledged if frame in self._told]
        return {f"{event['channel']}/{event['ts']}" for event in events if says(event)}

    async def tell(self) -> None:
        """Tell of what has happened, in any order and some of it twice, and press what can be pressed."""
        await asyncio.to_thread(self.slack.push_again)
        while True:
            with self.slack.lock:
                queue, self.slack.queue = self.slack.queue, []
            told = [envelope for envelope in queue for _ in range(self.chance.choice((1, 1, 2)))]
            self.chance.shuffle(told)
            for envelope in told:
                self._told[await asyncio.to_thread(self.slack.push, envelope)] = envelope["event"]
            for post in list(self.slack.posts):
                if asks(post) and post.ts not in self._pressed:
                    self._pressed.add(post.ts)
                    await asyncio.to_thread(self.slack.push, button(post), "interactive")
            await asyncio.sleep(0.02)


def says(event: dict[str, Any]) -> bool:
    """Whether an event tells of a message, and not of a change to one."""
    return event["type"] == "message" and event.get("hidden") is not True


def asks(post: Any) -> bool:
    return any(block["type"] == "actions" for block in post.args.get("blocks") or ())


class Seen:
    """What lies on the log, as far as it was looked at; nothing is read twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = dict.fromkeys(
            ("turn-verdicts", "outbound", "deliveries", "source-evidence", "grants", "observed-messages"), 0
        )
        self.offers: list[outputs.SharingOffered] = []
        self.known: set[str] = set()
        self.shared: set[str] = set()
        self.authorized: dict[str, outputs.TurnAuthorized] = {}
        self.dropped: dict[str, tuple[str, ...]] = {}
        self.decided: Counter[str] = Counter()
        self.delivered: dict[str, inputs.TurnDelivered] = {}
        self.observed: set[str] = set()

    def look(self) -> Self:
        """Read on."""
        with LocalLog(self._path, read_only=True) as log:
            for topic, start in self._at.items():
                for message in log.scan(topic, 0, start):
                    self._at[topic] = message.offset + 1
                    self._take(CODEC.decode(message.value))
        return self

    def _take(self, record: Record) -> None:
        match record:
            case outputs.EvidenceRecorded(status="known"):
                self.known.add(record.ref)
            case outputs.SharingOffered():
                self.offers.append(record)
            case outputs.GrantChanged():
                self.shared.add(record.grant)
            case outputs.TurnAuthorized():
                self.authorized[record.turn] = record
            case outputs.TurnDecided() if record.verdict in FINAL:
                self.decided[record.turn] += 1
                if record.verdict == "drop":
                    self.dropped[record.turn] = tuple(str(reason.code) for reason in record.reasons)
            case inputs.TurnDelivered():
                self.delivered[record.turn] = record
            case inputs.MessageObserved():
                self.observed.add(record.message.partition("/")[2])

    def ended(self) -> dict[str, str]:
        """How each draft has ended: dropped, or as its last record says."""
        return dict.fromkeys(self.dropped, "dropped") | {turn: r.status.value for turn, r in self.delivered.items()}


def marked(slack: Slack, mark: str) -> list[str]:
    """What was said with this mark, by name."""
    found = [post.args["metadata"] for post in slack.posts]
    return [metadata["event_payload"]["id"] for metadata in found if metadata["event_type"] == mark]


def split(drafts: int) -> tuple[set[str], set[str]]:
    """The turns that need a yes, and all others."""
    turns = [f"t{n}" for n in range(drafts)]
    return set(turns[:ASKED]), set(turns[ASKED:])


def unfound(seen: Seen, slack: Slack) -> set[str]:
    """Turns that are in a room and not recorded so."""
    ended = seen.ended()
    return {turn for turn in marked(slack, TURN) if ended.get(turn) != "sent"}
