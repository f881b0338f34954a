"""Decides what a claim is: who may send something, once, and what became of it (R-DLV-2).

    claimed ──▶ sending ──▶ sent, failed or uncertain (which may still become sent)
       └──────────┴───────▶ withheld

Whoever finds something `claimed` may take it over, as nobody has begun to send it: the former owner then cannot begin.
Whoever finds it `sending` may only look whether it was sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from turngate.schemas.inputs import DeliveryStatus
from turngate.schemas.shapes import Reason


class State(StrEnum):
    """How far something is that is to be sent once."""

    CLAIMED = "claimed"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    WITHHELD = "withheld"

    @property
    def status(self) -> DeliveryStatus | None:
        """What is recorded of it; None while it is under way."""
        return None if self in (State.CLAIMED, State.SENDING) else DeliveryStatus(self)


class Kind(StrEnum):
    """What is sent: a turn, a question about one, an offer to share."""

    TURN = "turn"
    QUESTION = "question"
    OFFER = "offer"


@dataclass(frozen=True, slots=True)
class Key:
    """What there is one claim of. `id`: the turn's, or a name that the question or offer has for each place."""

    tenant: str
    kind: Kind
    id: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is sent, as whom: what is needed to look for it later."""

    agent: str
    room: str
    thread: str | None = None


def question_id(turn: str, fingerprint: str, room: str) -> str:
    """The `Key.id` of a question about a turn in a room."""
    return f"{turn} {fingerprint} {room}"


def turn_of(question: str) -> str:
    """The turn that a question is about; neither a fingerprint nor a room has a space in it."""
    return question.rsplit(" ", 2)[0]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as it stands. `owner` names one attempt; `at`, in milliseconds, is when it was claimed first."""

    key: Key
    place: Place
    state: State
    owner: str
    at: int
    message: str | None = None
    reasons: tuple[Reason, ...] = ()


class ClaimsUnavailable(Exception):
    """The claims cannot be read or written now. Nothing may be sent; the message says why and holds no password."""


class Claims(Protocol):
    """Where claims lie. Each method is one transaction, durable when it returns; any may raise `ClaimsUnavailable`."""

    async def take(self, key: Key, place: Place, owner: str, at: int) -> Claim:
        """Claim something, also where it is `claimed` by somebody else; the claim as it then stands.

        It is this owner's where its `owner` says so and its state is `claimed`.
        """

    async def begin(self, key: Key, owner: str) -> bool:
        """Go from `claimed` to `sending`, if it is still this owner's; asked again, it still is."""

    async def release(self, key: Key, owner: str) -> bool:
        """Go back to `claimed`: what this owner was sending has surely not been sent."""

    async def end(
        self, key: Key, owner: str, state: State, message: str | None = None, reasons: tuple[Reason, ...] = ()
    ) -> Claim:
        """Say what became of it; the claim as it then stands.

        `withheld` and `failed` count only from the owner, of what is under way; the others from anybody, of what is
        `sending` or `uncertain`. What has ended otherwise stays as it is.
        """

    async def read(self, key: Key) -> Claim:
        """The claim as it stands. Raises `LookupError` where there is none."""

    async def uncertain(self, since: int) -> list[Claim]:
        """What was claimed at or after this time and is uncertain."""

    async def questions(self, tenant: str, turn: str) -> list[Claim]:
        """The questions about a turn that were asked."""

    async def prune(self, before: int) -> int:
        """Forget what was claimed before this time; how many claims that were."""
