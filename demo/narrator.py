"""Decides how the shipped stories are played: who says what, what the agent drafts on it, and what is printed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from turngate.connectors.slack_export import RoomEvent
from turngate.demo.agent import Agent, Taken, Turn
from turngate.demo.stories import NAMES, PAGES, PLACES, STORIES, Draft, Story
from turngate.demo.tally import COLOURS, MARKS, Tally
from turngate.demo.words import VERDICTS, first_of, words_of
from turngate.demo.world import World
from turngate.schemas.outputs import Verdict

NAMESPACE = "slack:T0HARBOR"


class Narrator:
    """Plays the stories in a world, and prints them as they happen."""

    def __init__(self, world: World, console: Console, tally: Tally) -> None:
        self._world = world
        self._console = console
        self._tally = tally
        self._agent = Agent(world, self._decided)
        self._drafts: dict[str, Draft] = {}
        self._told: set[str] = set()
        self._observed: dict[str, RoomEvent] = {}
        self._answered: set[str] = set()

    def play(self, events: list[RoomEvent]) -> None:
        """Schedule the export's events, and after the messages that they answer the agent's drafts."""
        for event in events:
            if event.record != "MembershipPage":
                self._world.at(event.at, lambda event=event: self._happens(event))  # type: ignore[misc]
        self._observed = {e.fields["message"]: e for e in events if e.record == "MessageObserved"}
        for story in STORIES:
            for number, draft in enumerate(story.drafts):
                self._schedule(story, number, draft)

    def _schedule(self, story: Story, number: int, draft: Draft) -> None:
        asked = self._observed[f"{NAMESPACE}/{draft.asked}"]
        name = f"{story.title} {number + 1}"
        self._drafts[name] = draft
        turn = Turn(
            name,
            f"{NAMESPACE}/{draft.room}",
            None if draft.unasked else f"message:{NAMESPACE}/{draft.asked}",
            tuple(ref if ref == PAGES else f"message:{NAMESPACE}/{ref}" for ref in draft.sees),
            draft.text,
        )
        for again in range(draft.again):
            when = asked.at + draft.after * 1000 + again * 30_000
            self._world.at(when, lambda: self._take(story, draft, turn, asked))

    def _take(self, story: Story, draft: Draft, turn: Turn, asked: RoomEvent) -> None:
        self._open(story)
        if draft.again > 1:
            self._line(f"[dim]the connector delivers the question of {_clock(asked.at)} once more[/]")
            self._world.feed(asked.record, asked.topic, asked.fields)
        if PAGES in turn.sees:
            self._tool_returns(turn)
        if turn.turn in self._answered:
            self._line("[dim]the agent drafts the same turn once more: nothing is decided twice[/]")
        self._agent.take(turn)

    def _tool_returns(self, turn: Turn) -> None:
        more: dict[str, Any] = dict.fromkeys(("thread", "turn", "request", "audience", "private", "untrusted", "error"))
        call = PAGES.removeprefix("tool:")
        self._world.tell(
            "ToolReturned",
            "tool-results",
            room=turn.room,
            call=call,
            server="pages",
            operation="read",
            fields=[],
            **more,
        )

    def _happens(self, event: RoomEvent) -> None:
        self._world.feed(event.record, event.topic, event.fields)
        if event.record == "MembershipChanged":
            return  # the message that says so follows
        fields = event.fields
        for story in STORIES:
            if any(fields["message"].endswith(draft.asked) for draft in story.drafts) or _is_source(story, fields):
                self._open(story)
                break
        else:
            return
        place = PLACES[fields["room"].rsplit("/", 1)[1]]
        who = NAMES.get((fields["author"] or "").rsplit("/", 1)[-1])
        text = escape(_readable(fields["text"]))
        self._line(f"[cyan]{place}[/]  [bold]{who}:[/] {text}" if who else f"[cyan]{place}[/]  [dim]{text}[/]")

    def _open(self, story: Story) -> None:
        if story.title not in self._told:
            self._told.add(story.title)
            self._console.print()
            self._console.rule(f"[bold]{story.title}[/]", align="left")
            self._console.print(f"[italic]{story.moral}[/]")

    def _decided(self, taken: Taken) -> None:
        self._tally.add(taken)
        self._answered.add(taken.turn.turn)
        draft, verdict = self._drafts[taken.turn.turn], taken.decided.verdict
        colour = COLOURS[verdict]
        below = [f"[dim]draft for {PLACES[draft.room]}:[/] “{escape(draft.text)}”"]
        reason = first_of(taken.decided.reasons)
        if reason is not None:
            below.append(f"[{colour}]because {words_of(reason.code)}[/] [dim]({_what(reason.ref)}; {reason.code})[/]")
        if taken.withheld and verdict is not Verdict.DELIVER:
            of = len(taken.turn.sees) + (taken.turn.trigger is not None)
            below.append(f"[dim]asked before, the agent was told not to use {taken.withheld} of its {of} sources[/]")
        if verdict is Verdict.DOWNGRADE:
            notice = taken.sent is not None and taken.sent != draft.text
            why = "instead, the room is told" if notice else "sent, since anybody may know it"
            below.append(f"[{colour}]{why}:[/] “{escape(taken.sent or '')}”")
        self._line(f"[bold {colour}]{MARKS[verdict]} {VERDICTS[verdict]}[/]  {draft.shows}", below)

    def _line(self, text: str, below: list[str] | None = None) -> None:
        """A line with its time, and further lines that belong to it."""
        grid = Table.grid(padding=(0, 2))
        grid.add_row(f"[dim]{_clock(self._world.now)}[/]", text)
        for more in below or []:
            grid.add_row("", f"  {more}")
        self._console.print(grid, highlight=False)


def _is_source(story: Story, fields: dict[str, Any]) -> bool:
    """Whether a message is one that a draft of the story draws on, or says who joined its room."""
    sees = {ref for draft in story.drafts for ref in draft.sees}
    grows = story.title == "The room that grew" and fields["author_kind"] == "system"
    return grows or any(fields["message"].endswith(ref) for ref in sees)


def _what(ref: str | None) -> str:
    """What a reason is about: the room where the source was said, for one."""
    if ref is None:
        return "the draft"
    if ref.startswith("tool:"):
        return "the tool's result"
    room = ref.removeprefix("message:").removeprefix(f"{NAMESPACE}/").split("/")[0]
    return PLACES.get(room, room)


def _readable(text: str | None) -> str:
    for account, name in NAMES.items():
        text = (text or "").replace(f"<@{account}>", name)
    return (text or "").replace("<@U0MESH>", "@Mesh")


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M")
