"""Decides whether what was recorded is what comes of the same inputs again, byte for byte, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from turngate.schemas.catalog import APPLIED, INPUT_TOPICS, OUTPUT_TOPIC, OUTPUT_TOPICS, SHADOW
from turngate.schemas.codec import Codec
from turngate.streams.chain import UNTRACED
from turngate.streams.log import Headers, Message, Outgoing
from turngate.streams.recorded import Cursor, Records
from turngate.streams.replay import Step
from turngate.streams.traced import TraceChains

#: A decision's `ce_id`: the place of the record that it came of, and its number among what came of it.
_CAUSE = re.compile(rb"([a-z-]{1,40})/(\d{1,9})/(\d{1,18})/\d{1,9}")
#: The topics whose records are decisions. A stretch is what is replayed, and compared on its own; what another policy
#: would have decided is no decision, and says itself what it was tried under.
COMPARED = tuple(topic for topic in OUTPUT_TOPICS if topic not in (APPLIED, SHADOW))
AUDIT = OUTPUT_TOPIC["DecisionTraced"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision that is not what was recorded: None where there is none on one of the two sides.

    `cause` is its `ce_id`, and `why` what differs, in a word or two. `traces`: those of the decision, as they were
    recorded and as they are made again.
    """

    topic: str
    cause: str
    recorded: Message | None
    again: Outgoing | None
    why: str
    traces: tuple[Message | None, Outgoing | None] | None = None


class Comparing:
    """The recorded decisions of a partition beside those that are made again, stretch by stretch.

    A recorded decision belongs to the stretch that holds its cause, so that one that is missing, or one too many, does
    not set the others apart. What retention has removed from the beginning of a topic is counted, and is no difference.
    A decision and its trace that differ are one difference, and the traces after it are none by that alone.
    """

    def __init__(
        self, records: Records, codec: Codec, partition: int, starts: Mapping[str, int], ends: Mapping[str, int]
    ) -> None:
        self._partition = partition
        self._ends = ends
        self.chains = TraceChains(codec)
        firsts = {t: records.first(t, partition) for t in COMPARED}
        self._cursors = {t: Cursor(records.scan(t, partition, max(starts[t], firsts[t]), ends[t])) for t in COMPARED}
        #: Topics of which no record is met yet, and that do not reach back to where this begins.
        self.cut = {t for t in COMPARED if firsts[t] > starts[t]}
        #: Decisions that were compared, those of them that differ, and those that are on their topics no more.
        self.decisions = self.differ = self.gone = 0

    @property
    def positions(self) -> dict[str, int]:
        """Of each topic compared, where the next recorded decision lies."""
        heads = {topic: cursor.head for topic, cursor in self._cursors.items()}
        return {topic: self._ends[topic] if head is None else head.offset for topic, head in heads.items()}

    def pass_by(self, positions: Mapping[str, int]) -> None:
        """Look at nothing that came of records before these positions."""
        for topic in COMPARED:
            for _ in self._came_of(topic, positions):
                self.cut.discard(topic)

    def compare(self, step: Step) -> list[Difference]:
        """What differs in what came of a stretch."""
        untraced = step.recorded.engine in UNTRACED
        return self._compare(step.after, step.outputs, step.held, untraced=untraced)

    def compare_stretch(self, step: Step) -> list[Difference]:
        """Whether the recorded stretch is what is recorded now; only one of the same engine can be."""
        if _bytes([step.message]) == _bytes([step.stretch]):
            return []
        self.decisions += 1
        self.differ += 1
        cause = _named(step.stretch.headers).decode()
        return [Difference(APPLIED, cause, step.message, step.stretch, _what_differs(step.message, step.stretch))]

    def rest(self, positions: Mapping[str, int]) -> list[Difference]:
        """What was recorded after the last stretch, and did not come of a later one: nothing is there rightly."""
        return self._compare(positions, [], frozenset())

    def _compare(
        self,
        positions: Mapping[str, int],
        outputs: list[Outgoing],
        held: frozenset[tuple[str, int]],
        *,
        untraced: bool = False,
    ) -> list[Difference]:
        found: list[Difference] = []
        again: dict[str, list[Outgoing]] = {topic: [] for topic in COMPARED}
        for made in outputs:
            again[made.topic].append(made)
        was: dict[str, list[Message]] = {}
        for topic, made_again in again.items():
            recorded = was[topic] = list(self._came_of(topic, positions))
            if topic == AUDIT and untraced and not recorded:
                self.chains.untraced(made_again)  # by an engine that had no traces to record
                made_again = []  # noqa: PLW2901
            there = again[topic] = self._there(topic, recorded, made_again) if topic in self.cut else made_again
            self.decisions += len(there)
            if _bytes(recorded) != _bytes(there) or (topic == AUDIT and self.chains.apart):
                found += _differences(topic, recorded, there, held, self.chains if topic == AUDIT else None)
        self.decisions += sum(d.again is None for d in found)
        found = self._with_traces(found, was[AUDIT], again[AUDIT]) if found else found
        self.differ += len(found)
        return found

    def _with_traces(self, found: list[Difference], was: list[Message], now: list[Outgoing]) -> list[Difference]:
        """Each decision that differs with its traces, which are then no difference of their own."""
        shown: set[int] = set()
        told: list[Difference] = []
        for one in (d for d in found if d.topic != AUDIT):
            decision = one.recorded if one.again is None else one.again
            old, new = self.chains.of(decision, was), self.chains.of(decision, now)
            traces = None if old is None else was[old], None if new is None else now[new]
            shown.update(id(trace) for trace in traces if trace is not None)
            told.append(replace(one, traces=traces) if traces != (None, None) else one)
        alone = [d for d in found if d.topic == AUDIT and not {id(d.recorded), id(d.again)} & shown]
        return told + alone

    def _there(self, topic: str, recorded: list[Message], again: list[Outgoing]) -> list[Outgoing]:
        """Of a topic whose beginning is gone, what can be on it: what comes from its first record on."""
        names = [_named(made.headers) for made in again]
        first = next((names.index(name) for m in recorded if (name := _named(m.headers)) in names), len(names))
        if first < len(names):
            self.cut.discard(topic)
        self.gone += first
        return again[first:]

    def _came_of(self, topic: str, positions: Mapping[str, int]) -> Iterator[Message]:
        """The next recorded decisions that came of records before these positions, or of none that can be."""

        def before(message: Message) -> bool:
            cause = _CAUSE.fullmatch(_named(message.headers))
            if cause is None or int(cause[2]) != self._partition:
                return True
            position = positions.get(cause[1].decode())
            return position is None or int(cause[3]) < position

        return self._cursors[topic].take(before)


def _differences(
    topic: str,
    recorded: list[Message],
    again: list[Outgoing],
    held: frozenset[tuple[str, int]],
    chains: TraceChains | None,
) -> Iterator[Difference]:
    """Each on its own, a decision being known again by its cause. `chains`: where these are traces."""
    wanted = [_named(made.headers) for made in again]
    left = dict(zip(wanted, again, strict=True))
    for message in recorded:
        name = _named(message.headers)
        made = left.pop(name, None)
        cause = name.decode("utf-8", "replace")
        if made is None:
            why = "is there twice" if name in wanted else _no_cause(name, held)
            if chains is not None:
                chains.differs(message, None)
            yield Difference(topic, cause, message, None, why)
        elif _bytes([message]) != _bytes([made]):
            if chains is None or chains.differs(message, made) or message.headers != made.headers:
                yield Difference(topic, cause, message, made, _what_differs(message, made))
        elif chains is not None:
            chains.same(message.key)
    for name, made in left.items():
        if chains is not None:
            chains.differs(None, made)
        yield Difference(topic, name.decode(), None, made, "is not on the topic")
    order = [_named(message.headers) for message in recorded]
    if order != wanted and sorted(order) == sorted(wanted):
        at = next(n for n, (one, other) in enumerate(zip(order, wanted, strict=True)) if one != other)
        yield Difference(topic, order[at].decode("utf-8", "replace"), recorded[at], again[at], "another order")


def _what_differs(recorded: Message, again: Outgoing) -> str:
    parts = [name for name in ("value", "key", "headers") if getattr(recorded, name) != getattr(again, name)]
    return "another " + ", ".join(parts)


def _no_cause(name: bytes, held: frozenset[tuple[str, int]]) -> str:
    """Why a recorded decision is not made again."""
    cause = _CAUSE.fullmatch(name)
    if cause is None or cause[1].decode() not in INPUT_TOPICS:
        return "names no record that it came of"
    topic, offset = cause[1].decode(), int(cause[3])
    if (topic, offset) not in held:
        return f"the record that it came of, {topic} at {offset}, is not there, or came earlier"
    return "nothing comes of that record here"


def _bytes(of: Sequence[Message | Outgoing]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    return [(one.key, one.value, one.headers) for one in of]


def _named(headers: Headers) -> bytes:
    """A decision's `ce_id`; empty where it has none."""
    # A header's value may be null on a broker, whatever its type says.
    return next((value or b"" for name, value in headers if name == "ce_id"), b"")
