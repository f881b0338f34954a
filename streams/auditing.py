"""Decides how recorded topics are checked against the chains of their traces: a broker's, a log's, an export's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge

from turngate.schemas.catalog import APPLIED
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record
from turngate.streams.chain import AUDIT, BOUND, UNTRACED, Break, Chains, Link, Row
from turngate.streams.log import LogError, Message
from turngate.streams.recorded import Records, the_stretch

#: Later than any record: of a topic that has none left, nothing can be found.
_NEVER = 1 << 62
#: How often more traces are asked for while decisions wait for theirs: a broker's topics end one after the other.
_TIMES = 20

#: Told how many records of how many there are by now.
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Audited:
    """What a partition came to. `first`: the offset of its oldest trace; the rest as in `Chains`."""

    partition: int
    first: int
    end: int
    chains: Chains
    breaks: list[Break]


def audit(
    records: Records,
    codec: Codec,
    partition: int,
    signed: Mapping[str, Collection[Link]] | None = None,
    bound: Collection[str] = BOUND,
    told: Told = lambda _, __: None,
) -> Audited:
    """Check every trace of a partition, and the records that they name on the topics of `bound`.

    Raises `LogError` where they cannot be read.
    """
    tail = records.end(AUDIT, partition)
    ends = {topic: records.end(topic, partition) for topic in bound} | {AUDIT: records.end(AUDIT, partition)}
    firsts = {topic: records.first(topic, partition) for topic in ends}
    reading = _Reading(records, codec, partition)
    chains = Chains(partition, since=reading.since(firsts, ends), signed=signed, bound=bound)
    total = sum(ends[topic] - firsts[topic] for topic in ends)
    breaks: list[Break] = []
    # Of records of one time the decisions come first, so that they wait for their traces.
    rows = merge(*(reading.rows(t, firsts[t], ends[t]) for t in (*bound, AUDIT)), key=lambda row: row[0])
    for done, (_, row) in enumerate(rows, 1):
        told(done, total)
        found = chains.take(row)
        if found is not None:
            breaks.append(found)
    for _ in range(_TIMES):
        if not chains.waiting():
            break
        at, ends[AUDIT] = ends[AUDIT], records.end(AUDIT, partition)
        breaks += [b for _, row in reading.rows(AUDIT, at, ends[AUDIT]) if (b := chains.take(row)) is not None]
    # A trace that was written since may name a decision that was written after the decisions' end.
    breaks += chains.finish(lambda one: one.topic == AUDIT and one.offset is not None and one.offset >= tail)
    return Audited(partition, firsts[AUDIT], ends[AUDIT], chains, breaks)


def links(
    records: Records, codec: Codec, partition: int, start: int | None = None, after: Mapping[str, Link] | None = None
) -> Audited:
    """Check the traces alone, from an offset at which the chains stood as in `after`; else all that there are.

    Raises `LogError` where they cannot be read, or where retention has passed that offset.
    """
    end = records.end(AUDIT, partition)
    first = records.first(AUDIT, partition)
    if start is not None and first > start:
        raise LogError(
            f"{AUDIT}[{partition}]: the records from {start}, where the last checkpoint stands, to {first} are gone; "
            "begin in a new directory"
        )
    if start is not None and end < start:
        why = f"was signed up to {start} and ends at {end}: its end is missing"
        gone = [Break(tenant, AUDIT, partition, None, why) for tenant in after or {}]
        return Audited(partition, first, end, Chains(partition, after=after), gone)
    reading = _Reading(records, codec, partition)
    since = reading.since({AUDIT: first}, {AUDIT: end}) if start is None else {}
    chains = Chains(partition, since=since, after=after, bound=())
    rows = reading.rows(AUDIT, first if start is None else start, end)
    breaks = [found for _, row in rows if (found := chains.take(row)) is not None]
    return Audited(partition, first, end, chains, breaks + list(chains.finish()))


class _Reading:
    """Rows of one partition."""

    def __init__(self, records: Records, codec: Codec, partition: int) -> None:
        self._records = records
        self._codec = codec
        self._partition = partition

    def since(self, firsts: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, int]:
        """When the topics begin whose oldest records are gone, or that were not written yet by an older engine."""
        cut = [topic for topic, first in firsts.items() if first > 0]
        if AUDIT not in cut and self._untraced():
            cut.append(AUDIT)
        return {topic: next(self.rows(topic, firsts[topic], ends[topic]), (_NEVER, None))[0] for topic in cut}

    def _untraced(self) -> bool:
        """Whether an engine that traced nothing decided first."""
        if self._records.first(APPLIED, self._partition) > 0:
            return False
        first = next(self._records.scan(APPLIED, self._partition), None)
        return first is not None and the_stretch(first, self._codec).engine in UNTRACED

    def rows(self, topic: str, start: int, end: int) -> Iterator[tuple[int, Row]]:
        """The records in order, each with its stream time."""
        at = 0
        for message in self._records.scan(topic, self._partition, start, end):
            record = self._record(message)
            at = at if record is None else max(at, record.at)
            key = (message.key or b"").decode("utf-8", "replace")
            yield at, Row(topic, self._partition, message.offset, key, record)

    def _record(self, message: Message) -> Record | None:
        try:
            record = self._codec.decode(message.value)
        except Undecodable:
            return None
        return record if message.key == record.tenant.encode() else None
