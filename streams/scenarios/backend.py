"""Decides what a scenario asks of whatever runs it, so that one runner serves the embedded log and a broker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from turngate.schemas.codec import Codec
from turngate.streams.log import Message
from turngate.streams.scenarios.expectations import Emitted


@dataclass(frozen=True, slots=True)
class Incoming:
    """Bytes for an input topic, with the broker's time in milliseconds since 1970."""

    topic: str
    key: bytes
    value: bytes
    timestamp: int


class Session(Protocol):
    """One partition that has seen nothing yet; a scenario has it to itself."""

    partition: int

    def send(self, records: Sequence[Incoming]) -> list[Message]:
        """Hand over records in this order, each applied before the next, and give every record that came of them.

        Times may go back; the runtime takes them as they are. Of one topic the records come in order.
        """


class Backend(Protocol):
    """A runtime that scenarios run on. `at_once`: how many sessions may be open at a time, each in a thread."""

    at_once: int

    def session(self) -> AbstractContextManager[Session]:
        """A session for one scenario. Raises `turngate.streams.log.LogError` where there is none to be had."""


def emitted(codec: Codec, messages: Sequence[Message]) -> list[Emitted]:
    """The records in what a runtime wrote."""
    out = []
    for message in messages:
        record = codec.decode(message.value)
        out.append(Emitted(type(record).__name__, record.model_dump(mode="json", by_alias=True)))
    return out
