"""Decides what is written to the store at once: the rows of records that follow each other, and from where to where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from turngate.schemas.canonical import digest
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.digests import audience_digest
from turngate.schemas.inputs import Record
from turngate.schemas.shapes import Audience
from turngate.sinks.store.months import month_after
from turngate.sinks.store.rows import rows_of
from turngate.sinks.store.tables import TABLES
from turngate.sinks.store.texts import Ends
from turngate.streams.log import LogError, Message

_RECORDS: MappingProxyType[str, tuple[type[Record], ...]] = MappingProxyType({**INPUT_TOPICS, **OUTPUT_TOPICS})
_NUMBERED = frozenset(name for name, table in TABLES.tables.items() if "number" in table.c)
#: Readers of audiences whose digests are remembered, by the objects themselves: a codec gives out one again and again.
_READERS = 500_000
#: Rows, and readers of audiences, that are written at once, but for those of one record.
_MOST = 100_000
#: Audiences that are known to lie in the store.
_KNOWN = 100_000

Place = tuple[str, int]


class Moved(Exception):
    """The store is not where a batch begins: somebody else has written. `at` is where it is, by place."""

    def __init__(self, at: dict[Place, int]) -> None:
        super().__init__("the store is elsewhere")
        self.at = at


@dataclass(slots=True)
class Span:
    """The offsets of one topic's partition that a batch takes in, up to, not including, `end`.

    `time`: the greatest of a record; `last`: the last record, None where there is none.
    """

    start: int
    end: int
    time: int = 0
    last: Message | None = None

    def row(self, place: Place) -> dict[str, Any]:
        """What the store notes of how far it is."""
        topic, partition = place
        made = None if self.last is None else mark(self.last)
        return {"topic": topic, "partition": partition, "next": self.end, "time": self.time, "mark": made}


def mark(message: Message) -> str:
    """What a record is like, but for its value, which an erasure may empty: its place, time, key and headers."""
    headers = [[name, value.hex()] for name, value in message.headers]
    return digest([message.topic, message.offset, message.timestamp, (message.key or b"").hex(), headers])


@dataclass(slots=True)
class Audiences:
    """What this process knows to be in the store already: nothing is written twice for it."""

    _until: dict[tuple[str, str], int] = field(default_factory=dict)
    _digests: dict[int, tuple[Audience, str]] = field(default_factory=dict)
    _readers: int = 0

    def digest(self, audience: Audience, own: tuple[str, ...]) -> str:
        """The name of an audience: its digest, where it has no agent's own accounts beside it."""
        if own:
            return digest([audience_digest(audience), own])
        known = self._digests.get(id(audience))  # which stays its own, since the audience is held here too
        if known is None:
            self._readers += 1 + len(audience.readers)
            if self._readers > _READERS:
                self._digests.clear()
                self._readers = 1 + len(audience.readers)
            known = self._digests[id(audience)] = (audience, audience_digest(audience))
        return known[1]

    def lacks(self, tenant: str, name: str, until: int) -> bool:
        """Whether it may not be there, or not for so long."""
        return self._until.get((tenant, name), -1) < until

    def clear(self) -> None:
        """Nothing is known to be there any more."""
        self._until.clear()

    def are_there(self, rows: dict[tuple[str, str], tuple[Any, ...]]) -> None:
        """These were written, and that was committed."""
        if len(self._until) + len(rows) > _KNOWN:
            self._until.clear()
        self._until.update((key, row[-1]) for key, row in rows.items())


class Batch:
    """Rows by table, in the order of its columns, and the span of each place that they are of."""

    def __init__(self, codec: Codec, audiences: Audiences) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.audiences: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.spans: dict[Place, Span] = {}
        self.ends = Ends()
        self.records = 0
        self._size = 0
        self._codec = codec
        self._known = audiences

    @property
    def tables(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Every table's rows, the audiences' too."""
        yield from self.rows.items()
        if self.audiences:
            yield "audiences", list(self.audiences.values())

    @property
    def full(self) -> bool:
        """Whether it is large enough to be written."""
        return self._size >= _MOST

    @property
    def times(self) -> set[int]:
        """The ends of the months that there are rows of."""
        return {month_after(row[4]) for name, rows in self.rows.items() if name != "policies" for row in rows}

    def begin(self, place: Place, start: int) -> None:
        """What follows of this place begins here; it may have no records."""
        self.spans.setdefault(place, Span(start, start))

    def reach(self, place: Place, end: int) -> None:
        """Everything before `end` has been added."""
        span = self.spans[place]
        span.end = max(span.end, end)

    def add(self, message: Message) -> None:
        """Take a record in, which comes after all of its place so far.

        What cannot be read on an input topic is nobody's record. Raises `LogError` where a worker's cannot be read:
        this process is older than the worker, and would lose it.
        """
        span = self.spans[(message.topic, message.partition)]
        span.end, span.time, span.last = message.offset + 1, max(span.time, message.timestamp), message
        self.records += 1
        try:
            record = self._codec.decode(message.value)
        except Undecodable as error:
            if message.topic in OUTPUT_TOPICS:
                raise Unreadable(message, error.schema) from None
            return
        if not isinstance(record, _RECORDS[message.topic]):
            return
        self.ends.note(record)
        self._add(message, record)

    def _add(self, message: Message, record: Record) -> None:
        place = (record.tenant, message.topic, message.partition, message.offset, message.timestamp)
        until = month_after(message.timestamp)
        counts: dict[str, int] = {}

        def keep(audience: Audience, own: tuple[str, ...]) -> str:
            name = self._known.digest(audience, own)
            key = (record.tenant, name)
            if self._known.lacks(*key, until) and (key not in self.audiences or self.audiences[key][-1] < until):
                further = [[reader, *more] for reader, more in audience.memberships.items()]
                lists = (audience.workspaces, audience.readers, audience.guests, further, own)
                self.audiences[key] = (*key, audience.scope, *lists, until)
                self._size += len(audience.readers)
            return name

        for table, row in rows_of(record, keep):
            number: tuple[int, ...] = ()
            if table in _NUMBERED:
                number = (counts.get(table, 0),)
                counts[table] = number[0] + 1
            self.rows.setdefault(table, []).append((*place, *number, *row))
            self._size += 1


class Unreadable(LogError):
    """A record on a topic that workers write, which this version cannot read."""

    def __init__(self, message: Message, schema: str | None) -> None:
        what = "a record" if schema is None else f"a {schema}"
        super().__init__(
            f"{message.topic}[{message.partition}]: {what} at {message.offset} cannot be read: is a schema registry in "
            "use that is not named here, or was it written by a newer Turngate? Nothing after it is stored until then"
        )
