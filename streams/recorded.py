"""Decides how what was recorded is read again, wherever it lies: the topics' records, and the stretches among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from turngate.schemas.catalog import APPLIED, DRAFTS, INPUT_TOPICS, TICKS
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import StretchApplied
from turngate.schemas.shapes import Position
from turngate.streams.log import LogError, Message, Stretch


class Records(Protocol):
    """The contract's topics as they were recorded: an embedded log, a broker, or a directory exported from one.

    Every method raises `LogError` where they cannot be read.
    """

    @property
    def partitions(self) -> int:
        """How many partitions each topic has."""

    def first(self, topic: str, partition: int) -> int:
        """The offset before which nothing is there any more."""

    def end(self, topic: str, partition: int) -> int:
        """The offset after the last record that is there now."""

    def scan(self, topic: str, partition: int = 0, start: int = 0, end: int | None = None) -> Iterator[Message]:
        """The records from `start` up to, not including, `end` (None: where they end now), in bounded memory."""


class Cursor:
    """The records of one topic from some offset on, taken one after the other."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self._messages = messages
        self._head = next(messages, None)

    @property
    def head(self) -> Message | None:
        """The next record, None where there is no more."""
        return self._head

    def take(self, wanted: Callable[[Message], bool]) -> Iterator[Message]:
        """Records up to the first that is not wanted, which is the next one then."""
        while self._head is not None and wanted(self._head):
            taken, self._head = self._head, next(self._messages, None)
            yield taken


def has_tenant(records: Records, tenant: str) -> bool:
    """Whether any input is of this tenant. Raises `LogError` where they cannot be read."""
    # A tenant that speaks has a policy, and there are few of these.
    topics = sorted(INPUT_TOPICS.keys() - {TICKS}, key=lambda topic: topic != "policies")
    places = [(topic, partition) for topic in topics for partition in range(records.partitions)]
    key = tenant.encode()
    return any(message.key == key for place in places for message in records.scan(*place, records.first(*place)))


def of_tenant(
    records: Records, codec: Codec, tenant: str, topic: str, partition: int, end: int | None = None
) -> Iterator[Record]:
    """The tenant's records in a partition of a topic, up to `end`; what cannot be decoded is nobody's."""
    for message in records.scan(topic, partition, records.first(topic, partition), end):
        if message.key == tenant.encode():
            with suppress(Undecodable):
                yield codec.decode(message.value)


def recorded_stretches(
    records: Records, codec: Codec | None = None, partition: int = 0, start: int = 0
) -> Iterator[StretchApplied]:
    """What `applied` holds from `start` on, in order: how to replay the inputs (R-RUN-3)."""
    codec = Codec() if codec is None else codec
    for message in records.scan(APPLIED, partition, start):
        yield the_stretch(message, codec)


def the_stretch(message: Message, codec: Codec) -> StretchApplied:
    """The stretch that a record of `applied` is. Raises `LogError` where it is none."""
    try:
        record = codec.decode(message.value)
    except Undecodable:
        record = None
    if not isinstance(record, StretchApplied):
        raise LogError(f"{APPLIED}[{message.partition}]: the record at {message.offset} is no stretch")
    return record


def stretch_of(
    recorded: StretchApplied,
    partition: int,
    positions: Mapping[str, int],
    read: Callable[[str, int, int], Iterable[Message]],
) -> Stretch:
    """A recorded stretch with the records that it held, which `read` gives by topic, start and end (R-RUN-3).

    Raises `LogError` for a stretch of another partition, one that does not start at these positions, and one that
    dropped other drafts than there are.
    """
    if recorded.partition != partition:
        raise LogError(f"a stretch of partition {recorded.partition} cannot be replayed in {partition}")
    start = {p.topic: p.offset for p in recorded.from_}
    end = {p.topic: p.offset for p in recorded.to}
    for topic, offset in start.items():
        if positions.get(topic) != offset:
            raise LogError(
                f"{topic}[{partition}]: the recorded stretch starts at {offset}, this log stands at "
                f"{positions.get(topic)}: a stretch is missing before it, or it was applied already"
            )
    messages = [m for t in start for m in read(t, start[t], end[t])]
    drafts = {Position(topic=m.topic, partition=m.partition, offset=m.offset) for m in messages if m.topic == DRAFTS}
    if recorded.late and set(recorded.late) != drafts:
        raise LogError(f"partition {partition}: a recorded stretch drops other drafts than this log holds")
    return Stretch(start, end, messages, late=bool(recorded.late))
