"""Decides how a partition is decided again from what was recorded: the same stretches, from the start or a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from turngate.schemas.catalog import APPLIED, INPUT_TOPICS, OUTPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import StretchApplied
from turngate.streams.fold import Applies, Fold
from turngate.streams.local_runtime import Restore
from turngate.streams.log import LogError, Message, Outgoing
from turngate.streams.recorded import Cursor, Records, stretch_of, the_stretch
from turngate.streams.snapshots import Snapshot

E = TypeVar("E", bound=Applies)


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch that was applied again. `before` and `after` are the positions of all inputs, `held` the places of the
    records in it, `outputs` what came of them; `message` is the recorded stretch, and `stretch` what it is now.
    """

    message: Message
    recorded: StretchApplied
    before: Mapping[str, int]
    after: Mapping[str, int]
    held: frozenset[tuple[str, int]]
    outputs: list[Outgoing]
    stretch: Outgoing


class Replay(Generic[E]):
    """One partition of recorded topics, and an engine that is folded over it once more (R-RUN-3).

    `restore` makes the engine, `begin` is where it starts (None: at the beginning). Memory is that of the state, one
    stretch, and a page of each topic. Raises `LogError` where what is needed is not there (any more).
    """

    def __init__(
        self, records: Records, restore: Restore[E], codec: Codec, partition: int = 0, begin: Snapshot | None = None
    ) -> None:
        if not 0 <= partition < records.partitions:
            raise LogError(f"there is no partition {partition}: there are 0 to {records.partitions - 1}")
        self.partition = partition
        self._records = records
        self._codec = codec
        #: Up to where each topic is read. The stretches' end is asked first, so that everything that these applied and
        #: wrote lies before the others' ends.
        self.ends = {APPLIED: records.end(APPLIED, partition)}
        self.ends = {t: records.end(t, partition) for t in (*INPUT_TOPICS, *OUTPUT_TOPICS)} | self.ends
        #: From where `applied` and the outputs are read: what lies before came of what lies before.
        self.starts = dict.fromkeys(OUTPUT_TOPICS, 0) if begin is None else dict(begin.outputs)
        self.engine = restore((), None) if begin is None else restore(begin.entries, begin.engine)
        self._fold = Fold(partition, self.engine, codec, None if begin is None else begin.positions)
        self._inputs: dict[str, Cursor] = {}

    @property
    def positions(self) -> Mapping[str, int]:
        """The position after the last record applied of each input topic."""
        return self._fold.positions

    def steps(self) -> Iterator[Step]:
        """Apply every recorded stretch there is, in order; nothing is applied but as this is iterated over."""
        self._there(APPLIED, self.starts[APPLIED])
        for message in self._records.scan(APPLIED, self.partition, self.starts[APPLIED], self.ends[APPLIED]):
            recorded = the_stretch(message, self._codec)
            before = dict(self._fold.positions)
            if all(p.offset <= before[p.topic] for p in recorded.to):
                continue  # the snapshot holds it
            stretch = stretch_of(recorded, self.partition, before, self._read)
            held = frozenset((m.topic, m.offset) for m in stretch.messages)
            *outputs, own = self._fold.apply(stretch).outputs
            yield Step(message, recorded, before, dict(self._fold.positions), held, outputs, own)

    def _read(self, topic: str, start: int, end: int) -> Iterable[Message]:
        if end > self.ends[topic]:
            at = f"{topic}[{self.partition}]"
            raise LogError(f"{at}: records up to {end} were applied, and there are none after {self.ends[topic]}")
        cursor = self._inputs.get(topic)
        if cursor is None:
            self._there(topic, start)
            scan = self._records.scan(topic, self.partition, start, self.ends[topic])
            cursor = self._inputs[topic] = Cursor(scan)
        return cursor.take(lambda message: message.offset < end)

    def _there(self, topic: str, start: int) -> None:
        first = self._records.first(topic, self.partition)
        if first > start:
            raise LogError(
                f"{topic}[{self.partition}]: the records from {start} to {first} are gone, and are needed: begin at a "
                "snapshot, or use an export that has them"
            )
