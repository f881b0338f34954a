"""Decides what a simulated agent does in any export: it answers every message, and now and then carries words along."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console

from turngate.connectors.slack_export import RoomEvent, Summary
from turngate.connectors.slack_export.rooms import Room
from turngate.demo.agent import Agent, Taken, Turn
from turngate.demo.tally import COLOURS, MARKS, Tally
from turngate.demo.words import VERDICTS, first_of, words_of
from turngate.demo.world import World
from turngate.schemas.shapes import RoomKind

#: Each message is answered in its room. Every so many messages the agent also carries the newest words of another room
#: along, and every so many it answers once more only when the next person has joined.
CARRIES, DAWDLES = 7, 11
#: The agent answers this long (ms) after a message, and after the join that it waited for.
AFTER_MS = 2_000


class Everyday:
    """Plays an export in a world, and prints a line for every decision."""

    def __init__(
        self, world: World, console: Console, tally: Tally, rooms: tuple[Room, ...], name: Callable[[str], str]
    ) -> None:
        self._world = world
        self._console = console
        self._tally = tally
        self._agent = Agent(world, self._decided)
        self._places = {name(room.id): _place(room) for room in rooms}
        self._what: dict[str, str] = {}
        self._newest: dict[str, RoomEvent] = {}
        self._number = 0

    def introduce(self, summary: Summary, as_private: bool) -> None:
        """Say what was imported, and what of the following is simulated."""
        self._console.print(
            f"[bold]{summary.messages:,} messages[/] of {summary.accounts:,} accounts in {summary.rooms:,} rooms, "
            f"{summary.joins:,} joins, {summary.leaves:,} leaves. An export does not say who could read a room at the "
            "time, so a simulated connector lists the rooms as joins and leaves suggest, and takes nothing to be "
            "shared with other companies unless the export says so."
            + (" All its channels are public; it lists them as private ones." if as_private else "")
            + f" A simulated agent answers every message; at every {CARRIES}th it also carries the newest words of "
            f"another room along, and every {DAWDLES}th it answers once more when somebody has joined. "
            "The decisions are real.\n",
            highlight=False,
        )

    def play(self, events: list[RoomEvent]) -> None:
        """Schedule the export's events, and the agent's turns on its messages."""
        joins: dict[str, list[int]] = {}
        for event in events:
            if event.record == "MembershipChanged" and event.fields["change"] == "joined":
                joins.setdefault(event.fields["room"], []).append(event.at)
        for event in events:
            if event.record == "MembershipPage":
                continue
            self._world.at(event.at, lambda event=event: self._world.feed(event.record, event.topic, event.fields))  # type: ignore[misc]
            if event.record == "MessageObserved" and not event.fields["edited"]:
                self._answer(event, joins.get(event.fields["room"], []))

    def _answer(self, event: RoomEvent, joins: list[int]) -> None:
        self._number += 1
        number, fields = self._number, event.fields
        room, message = fields["room"], f"message:{fields['message']}"
        what = "answers a notice of Slack's" if fields["author_kind"] == "system" else "answers"
        self._later(event.at, Turn(f"{number}", room, message, (), "Noted."), what)
        other = max((e for r, e in self._newest.items() if r != room), key=lambda e: e.at, default=None)
        if number % CARRIES == 0 and other is not None:
            sees = (f"message:{other.fields['message']}",)
            what = f"carries words of {self._places[other.fields['room']]}"
            self._later(event.at, Turn(f"{number} carrying", room, message, sees, "This may help."), what)
        joined = next((at for at in joins if at > event.at), None)
        if number % DAWDLES == 0 and joined is not None:
            self._later(joined, Turn(f"{number} late", room, message, (), "Sorry for the delay."), "answers late")
        self._newest[room] = event

    def _later(self, at: int, turn: Turn, what: str) -> None:
        self._what[turn.turn] = what
        self._world.at(at + AFTER_MS, lambda: self._agent.take(turn))

    def _decided(self, taken: Taken) -> None:
        self._tally.add(taken)
        verdict = taken.decided.verdict
        reason = first_of(taken.decided.reasons)
        because = "" if reason is None else f": {words_of(reason.code)}"
        place = self._places.get(taken.turn.room, "?")
        fate = f"{_date(taken.at)} {MARKS[verdict]} {VERDICTS[verdict]}"
        line = f"{fate} in {place}, {self._what[taken.turn.turn]}{because}"
        self._console.print(line, style=COLOURS[verdict], markup=False, highlight=False, soft_wrap=True)


def _place(room: Room) -> str:
    """A channel by its name; a direct message by its id, as its name may be made of people's names."""
    return f"#{room.folders[0]}" if room.kind is RoomKind.CHANNEL else f"{room.kind.value} message {room.id}"


def _date(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
