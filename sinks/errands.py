"""Decides what there is to send, and until when it is worth sending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turngate.schemas.outputs import TurnAuthorized
from turngate.schemas.shapes import Reason
from turngate.sinks.claims import Key, Place
from turngate.sinks.ports import Listed, Said

#: Milliseconds for which something without an end of its own may be said after it was authorized.
WORTH_MS = 60_000
#: Milliseconds after which nothing is sent any more, whatever it says, and for which claims are kept: longer than that,
#: and than two machines' clocks differ by.
SENT_WITHIN_MS, KEPT_MS = 604_800_000, 1_209_600_000


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. `looks`: after which what is uncertain is looked for again; `claims`: between tries of a database."""

    looks: Sequence[float] = (2, 10, 60, 600)
    claims: float = 0.5
    #: The least between two tries.
    retry: float = 0.2
    #: Between two looks whether an action was done.
    action: float = 1.0
    #: For which somebody else may be sending what is found under way: no call takes longer.
    sending: float = 12.0


@dataclass(frozen=True, slots=True)
class Errand:
    """Something to be sent once: what there is one claim of, where it goes, and what is said.

    `until` (ms): not worth trying again after that. `decision`: what names the policy. `against` says, from the room's
    listing (None: none is needed) and the time at which it had not begun, what stands against sending it now.
    `shared`: it may rest on a grant, which whoever gave it takes back by a message.
    """

    key: Key
    place: Place
    said: Said
    until: int
    decision: str | None
    lists: bool
    shared: bool
    against: Callable[[Listed | None, int], tuple[Reason, ...]]


def sendable_until(at: int, until: int) -> int:
    """When what was decided at `at` and says `until` is sent no more: it may not outlive its claim."""
    return min(until, at + SENT_WITHIN_MS)


def turn_until(turn: TurnAuthorized) -> int:
    """When a turn is said no more, in milliseconds."""
    return sendable_until(turn.at, turn.at + WORTH_MS if turn.valid_until is None else turn.valid_until)
