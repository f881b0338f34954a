"""Decides in which order a stretch is applied, and what bytes come of it (R-RUN-2, R-RUN-3).

The same fold runs under every runtime: it takes bytes and gives bytes, and knows no log.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from turngate.schemas.catalog import APPLIED, DRAFTS, INPUT_TOPICS, OUTPUT_TOPIC
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record, Tick
from turngate.schemas.outputs import StretchApplied
from turngate.schemas.shapes import NAMESPACE, Position
from turngate.streams.log import Commit, Headers, Message, Outgoing, Stretch

_ORDER = {topic: i for i, topic in enumerate(INPUT_TOPICS)}
#: W3C Trace Context, `traceparent`: version, trace id, parent id, flags; later versions may add more.
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


#: Bytes of the largest record that may come of one. Topics are made to take it, with its key and headers.
RECORD_BYTES = 16_000_000
#: Bytes of records after which no more of them are decoded ahead.
AHEAD_BYTES = 64 * 1024


class Applies(Protocol):
    """What the fold asks of an engine.

    `fits`, which the fold sets, says whether a record can be written. A record of which a larger one would come has
    failed (R-RUN-6): it must stop neither its partition nor the tenants beside it.
    """

    fits: Callable[[Record], bool]

    @property
    def version(self) -> str:
        """The engine's, as stretches and checkpoints name it."""

    @property
    def now(self) -> int:
        """Stream time, in milliseconds since the epoch (R-TIME-1)."""

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """Apply one record; everything that comes of it, in order."""

    def late(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """Drop a draft whose barrier was not reached in time (R-RUN-2)."""

    def refuse(self, tenant: str, schema: str | None, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        """Note bytes that are no valid record; time moves on all the same (R-RUN-5)."""

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """State entries that changed since this was last asked."""


class Fold:
    """One partition: an engine, and the position after the last record applied of each input topic."""

    def __init__(
        self,
        partition: int,
        engine: Applies,
        codec: Codec,
        positions: dict[str, int] | None = None,
        record_bytes: int = RECORD_BYTES,
    ) -> None:
        self.partition = partition
        self.positions: dict[str, int] = dict.fromkeys(INPUT_TOPICS, 0) | (positions or {})
        self._engine = engine
        self._codec = codec
        self._record_bytes = record_bytes
        #: What was encoded to see whether it fits, by identity, which stays a record's own while that is held here.
        self._encoded: dict[int, tuple[Record, bytes]] = {}
        engine.fits = self._fits

    def apply(self, stretch: Stretch) -> Commit:
        """Apply a stretch and give everything that came of it.

        Raises `ValueError`, having applied nothing, where the stretch does not start where this partition stands or
        holds other records than it names: applying it would leave a gap or apply something twice. What the engine
        raises (it has run out of memory) goes through; the state is then that after the last whole record, and the
        partition must be loaded anew.
        """
        self._check(stretch)
        outputs: list[Outgoing] = []
        late: list[Position] = []
        drafts = 0
        for message, record in self._decoded(in_order(stretch.messages)):
            draft = message.topic == DRAFTS
            drafts += draft
            if draft and stretch.late:
                late.append(Position(topic=message.topic, partition=message.partition, offset=message.offset))
            outputs += self._one(message, record, late=draft and stretch.late)
        before = self._listed({t: p for t, p in stretch.start.items() if stretch.end[t] != p})
        after = self._listed({t: p for t, p in stretch.end.items() if stretch.start[t] != p})
        self.positions |= stretch.end
        outputs.append(self._stretch(before, after, late))
        return Commit(outputs, self._engine.take_changes(), dict(self.positions), self._engine.version, drafts)

    def _check(self, stretch: Stretch) -> None:
        if stretch.start.keys() != stretch.end.keys():
            raise ValueError(
                f"partition {self.partition}: a stretch must name the start and the end of the same topics"
            )
        for topic, start in stretch.start.items():
            at = self.positions.get(topic)
            if start != at or stretch.end[topic] < start:
                raise ValueError(f"{topic}[{self.partition}]: at {at}, not at {start} to {stretch.end[topic]}")
        places = {(m.topic, m.offset) for m in stretch.messages}
        if len(places) != len(stretch.messages):
            raise ValueError(f"partition {self.partition}: a stretch holds a record twice")
        for m in stretch.messages:
            start, end = stretch.start.get(m.topic, 0), stretch.end.get(m.topic, 0)
            if m.partition != self.partition or not start <= m.offset < end:
                raise ValueError(f"{m.topic}[{m.partition}]: the record at {m.offset} lies outside the stretch")

    def _decoded(self, messages: Iterable[Message]) -> Iterator[tuple[Message, Record | Undecodable]]:
        """Records, or why they are none, some decoded ahead of the first of them that is applied.

        Decoding and deciding use other code and memory each; where they take turns, each displaces the other's from the
        processor's caches.
        """
        for part in _parts(messages):
            yield from [(message, self._read(message)) for message in part]

    def _read(self, message: Message) -> Record | Undecodable:
        try:
            record = self._codec.decode(message.value)
        except Undecodable as error:
            return Undecodable(error.schema)  # without the traceback, which holds on to the bytes
        return record if _keyed(message, record) else Undecodable(type(record).__name__)

    def _one(self, message: Message, record: Record | Undecodable, late: bool) -> list[Outgoing]:
        position = Position(topic=message.topic, partition=message.partition, offset=message.offset)
        raw = message.value or b""
        if isinstance(record, Undecodable):
            emitted = self._engine.refuse(_tenant(message), record.schema, position, message.timestamp, raw)
        else:
            call = self._engine.late if late else self._engine.apply
            emitted = call(record, position, message.timestamp, raw)
        cause = f"{message.topic}/{message.partition}/{message.offset}"
        own, brought = _trace_id(cause), _brought_trace(message)
        outgoing = [
            # Time passes for every tenant of the partition, and a trace belongs to the one that brought it (R-ROOM-11).
            self._outgoing(r, f"{cause}/{n}", own if r.tenant.encode() != message.key else brought or own)
            for n, r in enumerate(emitted)
        ]
        self._encoded.clear()
        return outgoing

    def _fits(self, record: Record) -> bool:
        return len(self._bytes(record)) <= self._record_bytes

    def _bytes(self, record: Record) -> bytes:
        known = self._encoded.get(id(record))
        if known is None:
            known = self._encoded[id(record)] = record, self._codec.encode(record)
        return known[1]

    def _stretch(self, before: tuple[Position, ...], after: tuple[Position, ...], late: list[Position]) -> Outgoing:
        record = StretchApplied(
            tenant=str(self.partition),
            at=self._engine.now,
            partition=self.partition,
            from_=before,
            to=after,
            engine=self._engine.version,
            late=tuple(late),
        )
        cause = f"{APPLIED}/{self.partition}/" + ",".join(f"{p.topic}:{p.offset}" for p in after)
        return self._outgoing(record, cause, _trace_id(cause))

    def _listed(self, positions: dict[str, int]) -> tuple[Position, ...]:
        return tuple(
            Position(topic=t, partition=self.partition, offset=positions[t]) for t in INPUT_TOPICS if t in positions
        )

    def _outgoing(self, record: Record, event: str, trace: bytes) -> Outgoing:
        name = type(record).__name__
        headers = _headers(name, event, trace, record.at, self.partition)
        return Outgoing(OUTPUT_TOPIC[name], record.tenant.encode(), self._bytes(record), headers)


def in_order(messages: list[Message]) -> list[Message]:
    """A stretch's records in the order in which they are applied: the drafts last, in order of offset (R-RUN-2)."""
    return sorted(messages, key=place)


def place(message: Message) -> tuple[int, int, int, int]:
    """What a stretch is sorted by: less is applied earlier (R-RUN-2)."""
    if message.topic == DRAFTS:
        return 1, 0, 0, message.offset
    return 0, message.timestamp, _ORDER[message.topic], message.offset


def pieces(messages: Iterable[Message]) -> list[list[Message]]:
    """As few stretches as give the order in which the records came."""
    found: list[list[Message]] = []
    for message in messages:
        if found and place(found[-1][-1]) < place(message):
            found[-1].append(message)
        else:
            found.append([message])
    return found


def _parts(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Records in their order, so many together as are decoded ahead."""
    part: list[Message] = []
    size = 0
    for message in messages:
        part.append(message)
        size += len(message.value or b"")
        if size >= AHEAD_BYTES:
            yield part
            part, size = [], 0
    yield part


def _keyed(message: Message, record: Record) -> bool:
    """A record's key is its tenant (contract section 1); only a tick carries the number of its partition instead."""
    if type(record) is Tick:
        return record.tenant == str(message.partition)
    return message.key == record.tenant.encode() and not record.tenant.isdigit()


def _tenant(message: Message) -> str:
    """The tenant that a dead letter belongs to: the record's key, or the partition where that is no tenant's id."""
    key = (message.key or b"").decode("utf-8", "replace")
    return key if re.fullmatch(r"[a-z][a-z0-9-]{0,62}", key) else str(message.partition)


def _headers(name: str, event: str, trace: bytes, at: int, partition: int) -> Headers:
    """CloudEvents' Kafka binding, and the W3C trace context of the record that was the cause; all of it repeatable."""
    whole = event.encode()
    span = hashlib.sha256(whole).hexdigest()[:16].encode()
    traceparent = ("traceparent", b"00-" + trace + b"-" + span + b"-01")
    return ("ce_id", whole), *_alike(name, partition), ("ce_time", _moment(at)), traceparent


@lru_cache(maxsize=1_000)
def _alike(name: str, partition: int) -> Headers:
    """The headers that all records of a kind have in a partition."""
    return (
        ("ce_source", f"turngate/{partition}".encode()),
        ("ce_type", f"{NAMESPACE}.{name}".encode()),
        ("ce_specversion", b"1.0"),
    )


@lru_cache(maxsize=1_000)
def _moment(at: int) -> bytes:
    seconds, millis = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{millis:03d}Z".encode()


def _trace_id(cause: str) -> bytes:
    """The trace id of what brings none itself."""
    return hashlib.sha256(cause.encode()).hexdigest()[:32].encode()


def _brought_trace(message: Message) -> bytes | None:
    """The trace id in a record's own headers. Nothing else is taken over from them, nor anything that is no id."""
    headers: tuple[tuple[str, bytes | None], ...] = message.headers  # null on a broker, whatever their type says
    for name, value in headers:
        found = _TRACEPARENT.fullmatch(value or b"") if name == "traceparent" else None
        if found is not None and found[1] != b"0" * 32:
            return found[1]
    return None
