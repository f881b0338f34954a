"""Decides what an agent asks first: a turn in a room."""

from __future__ import annotations

from enum import StrEnum

from turngate.client.transport import Transport
from turngate.client.turn import Turn

#: Seconds for which an agent waits for one answer. A turn that holds is decided within `stale.hold`, 5 s by default.
PATIENCE = 30.0
#: Of an agent that speaks regardless: it must not become slow by being watched.
OBSERVERS_PATIENCE = 2.0


class Mode(StrEnum):
    """What a verdict is to the agent."""

    #: Only what passed is said.
    ENFORCE = "enforce"
    #: Everything is decided and traced, and the agent is handed everything and speaks regardless: to see, before the
    #: gate is switched on, what it would refuse (`turngate report`).
    OBSERVE = "observe"


class Gate:
    """The gate as one agent sees it. It holds nothing of its own, and any number of turns may go through it at once.

    `patience`: seconds to wait for one answer, None: `PATIENCE`, or `OBSERVERS_PATIENCE`.
    """

    def __init__(self, transport: Transport, *, mode: Mode | str = Mode.ENFORCE, patience: float | None = None) -> None:
        self._transport = transport
        self._observed = Mode(mode) is Mode.OBSERVE
        self._patience = (OBSERVERS_PATIENCE if self._observed else PATIENCE) if patience is None else patience

    def turn(
        self,
        *,
        room: str,
        trigger: str | None = None,
        thread: str | None = None,
        broadcast: bool = False,
        name: str | None = None,
    ) -> Turn:
        """One turn, for `async with`; its id is made here, once.

        `room` is where it would be said, `trigger` the ref of the message that it answers, `thread` and `broadcast` as
        the room's connector has them. `name`: an id of your own, so that a turn begun again after a restart is the same
        turn. Raises `ValueError` for what is no room, ref or id.
        """
        return Turn(
            self._transport,
            room=room,
            trigger=trigger,
            thread=thread,
            broadcast=broadcast,
            name=name,
            patience=self._patience,
            observed=self._observed,
        )
