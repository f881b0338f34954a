"""Decides how a simulated agent takes a turn: it asks what it may see, and then drafts, whatever the answer was.

It is a careless agent on purpose. What it may not see it uses all the same, so that the gate, and not the agent's good
manners, keeps it in. It is deterministic, and no model is behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from turngate.demo.world import World
from turngate.schemas.outputs import ContextDecided, TurnDecided

#: The agent thinks for this long (ms) between the answer to its context request and its draft.
THINKING_MS = 1_000


@dataclass(frozen=True, slots=True)
class Turn:
    """What the agent wants to say, where, on what trigger, from which refs."""

    turn: str
    room: str
    trigger: str | None
    sees: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A turn, how many of its refs the agent was told not to see, what was decided when, and what was let out."""

    turn: Turn
    withheld: int
    decided: TurnDecided
    sent: str | None
    at: int


class Agent:
    """Takes turns in a world, and tells `done` of each when it has been decided."""

    def __init__(self, world: World, done: Callable[[Taken], None]) -> None:
        self._world = world
        self._done = done
        self._asked: dict[str, Turn] = {}
        self._withheld: dict[str, int] = {}
        world.on_context = self._answered
        world.on_turn = self._decided

    def take(self, turn: Turn) -> None:
        """Ask for context; the draft follows on the answer. A turn that was taken before is drafted again as it was."""
        if turn.turn in self._asked:
            self._draft(turn)
            return
        self._asked[turn.turn] = turn
        self._world.tell(
            "ContextRequested",
            "turn-drafts",
            request=f"context of {turn.turn}",
            turn=turn.turn,
            room=turn.room,
            thread=None,
            trigger=turn.trigger,
            candidates=[*([] if turn.trigger is None else [turn.trigger]), *turn.sees],
        )

    def _answered(self, answer: ContextDecided) -> None:
        turn = self._asked[answer.turn]
        self._withheld[answer.turn] = len(answer.withheld)
        self._world.at(self._world.now + THINKING_MS, lambda: self._draft(turn))

    def _draft(self, turn: Turn) -> None:
        self._world.tell(
            "TurnDrafted",
            "turn-drafts",
            turn=turn.turn,
            room=turn.room,
            thread=None,
            broadcast=False,
            trigger=turn.trigger,
            exposed=list(turn.sees),
            wrote=[],
            retired=[],
            renderings=[{"text": turn.text, "request": None, "exposed": None}],
            action=None,
            deadline=None,
        )

    def _decided(self, decided: TurnDecided, sent: str | None) -> None:
        turn = self._asked[decided.turn]
        self._done(Taken(turn, self._withheld.get(decided.turn, 0), decided, sent, self._world.now))
