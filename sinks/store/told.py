"""Decides what the story of a turn is made of: its decisions, who could hear it, its sources, and what became of it.

Times are milliseconds since 1970, by the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from turngate.schemas.shapes import Audience, Reason
from turngate.sinks.store.asking import Piece


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of a draft: `hold` and `ask` come before the last one."""

    at: int
    verdict: str
    policy: str
    rendering: int | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Destination:
    """Who could read the room, by the last decision. `listed_at`: when the listing began by which that is known.

    `audience` None: not known, to the engine or to the store (`Told.unknown` says which).
    """

    room: str
    listed_at: int | None
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class Heard:
    """A leaf of a source, and what the destination had to do with it.

    `permitted` None: it was not traced. `by`: what permitted it beside its own audience. `missing`: readers of the
    destination who could not read it, as far as both are known.
    """

    leaf: Piece
    permitted: bool | None
    by: tuple[str, ...]
    codes: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fed:
    """A source of the turn. `how` it got there; `made_of`: of a memory, what it was written from, as it was declared.

    `permitted` None: it was not traced. `ended`: erased or deleted, by now.
    """

    ref: str
    how: str
    permitted: bool | None
    reasons: tuple[Reason, ...]
    leaves: tuple[Heard, ...]
    restrictions: tuple[str, ...]
    memory: str | None
    state: str | None
    made_of: tuple[str, ...]
    ended: str | None


@dataclass(frozen=True, slots=True)
class Shared:
    """A grant that let the turn out, as it was then: whom it lets hear which revision, and who gave it."""

    grant: str
    revision: str | None
    audience: Audience | None
    by: str | None
    since: int | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was recorded of the sending."""

    at: int
    status: str
    message: str | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """The story of a turn. `valid_until` is of what was let out."""

    tenant: str
    turn: str
    agent: str
    decisions: tuple[Decided, ...]
    destination: Destination
    evidence: tuple[Fed, ...]
    grants: tuple[Shared, ...]
    proofs: tuple[str, ...]
    authorized: bool
    valid_until: int | None
    deliveries: tuple[Delivered, ...]
    unknown: tuple[str, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """Everything that spoke against it in the end, each once: the last decision's, then the deliveries'."""
        last = self.decisions[-1].reasons
        said = (r.code for r in (*last, *(r for one in self.deliveries for r in one.reasons)))
        return tuple(dict.fromkeys(said))
