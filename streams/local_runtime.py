"""Decides how the engine runs on an embedded log: which records make a stretch, and what is committed with it.

There is no broker and no waiting: whatever is on the log when a step begins has been acknowledged before it, so the
barrier of R-RUN-2 is reached at once. The same class carries out a replay of recorded stretches (R-RUN-3).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Generic, TypeVar

from turngate.schemas.catalog import DRAFTS, INPUT_TOPICS
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import StretchApplied
from turngate.streams.fold import Applies, Fold, pieces, place
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Headers, LogError, Message, Stretch
from turngate.streams.recorded import stretch_of

#: A stretch, and what is fed before it is written, is no larger than this: memory is bounded however much waits.
_RECORDS = 1_000
_BYTES = 8 << 20

E = TypeVar("E", bound=Applies)
#: Makes an engine of a checkpoint's entries and the version that wrote them.
Restore = Callable[[Iterable[tuple[bytes, bytes | None]], str | None], E]


class Runtime(Generic[E]):
    """One partition of an embedded log, and the engine that is folded over it.

    `restore` makes the engine. Each commit holds its outputs, state and positions in one transaction. After an
    exception, whatever it was, the engine is thrown away and restored from the log at the next call, so that a runtime
    is never farther, nor less far, than its log.
    """

    def __init__(self, log: LocalLog, restore: Restore[E], codec: Codec | None = None, partition: int = 0) -> None:
        self.partition = partition
        self._log = log
        self._restore = restore
        self._codec = Codec() if codec is None else codec
        self._loaded: tuple[E, Fold] | None = None
        self._fed: list[Append] = []
        self._fed_bytes = 0
        self._load()

    @property
    def engine(self) -> E:
        """The engine as it is after everything committed."""
        return self._load()[0]

    def step(self) -> list[Message]:
        """Apply everything that is on the input topics now; returns what came of it, in order.

        Raises `LogError` where the log cannot be written.
        """
        return list(chain.from_iterable(self.steps()))

    def steps(self, records: int = _RECORDS) -> Iterator[list[Message]]:
        """As `step`, in bounded memory however much waits: the outputs of one commit of `records` after the other.

        Nothing is applied but as this is iterated over. Drafts come after everything else that is on the log when it
        begins, so that none is decided on less than was acknowledged before it (R-RUN-2). Raises `LogError` where this
        partition is applied by other means before it has ended.
        """
        _, fold = self._load()
        ends = {topic: self._log.end(topic, self.partition) for topic in INPUT_TOPICS}
        scans = {t: self._log.scan(t, self.partition, fold.positions[t], ends[t]) for t in INPUT_TOPICS}
        drafts = scans.pop(DRAFTS)
        for messages in _pieces(chain(heapq.merge(*scans.values(), key=place), drafts), records):
            yield self._commit([_stretch(messages, fold.positions)], fold)

    def feed(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> list[Message]:
        """Append one input and apply it on its own, as if it had been waited for before the next.

        Inputs are written in batches: nothing is on the log, or applied, before this or `flush` returns something.
        Returns the outputs of what was written now, often none yet.
        """
        if topic not in INPUT_TOPICS:
            raise LogError(f"{topic}: this is no input topic of the contract, so nothing can be fed to it")
        self._fed.append(Append(topic, key, value, timestamp, self.partition, headers))
        self._fed_bytes += len(value or b"")
        return self.flush() if len(self._fed) >= _RECORDS or self._fed_bytes >= _BYTES else []

    def flush(self) -> list[Message]:
        """Write and apply what was fed, after anything that was on the log before; returns what came of it, in order.

        Where it raises, nothing of what was fed is on the log, and it is no longer waiting to be written either.
        """
        fed, self._fed, self._fed_bytes = self._fed, [], 0
        outputs = self.step()
        if fed:
            _, fold = self._load()
            with self._whole():
                messages = self._log.append_many(fed)
                outputs += self._commit(_as_they_came(messages, fold.positions), fold)
        return outputs

    def replay(self, stretches: Iterable[StretchApplied]) -> Iterator[Message]:
        """Apply recorded stretches to inputs that are on the log, in the recorded order; yields what comes of it.

        The values, keys and headers are those that were recorded (R-RUN-3). Nothing is applied but as this is iterated
        over. Raises `LogError` for a stretch of another partition, or one that does not start where this one stands.
        """
        for recorded in stretches:
            _, fold = self._load()
            yield from self._commit([stretch_of(recorded, self.partition, fold.positions, self._inputs)], fold)

    def _inputs(self, topic: str, start: int, end: int) -> Iterator[Message]:
        return self._log.scan(topic, self.partition, start, end)

    def _commit(self, stretches: Sequence[Stretch], fold: Fold) -> list[Message]:
        with self._whole():
            engine, loaded = self._load()
            if loaded is not fold:
                raise LogError(f"partition {self.partition}: its log was changed in the middle of this; do it again")
            commits = [fold.apply(stretch) for stretch in stretches]
            return self._log.commit(self.partition, commits, engine.now)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of the block is written, or the runtime goes back to what the log holds."""
        try:
            with self._log.transaction():
                yield
        except BaseException:
            self._loaded = None
            raise

    def _load(self) -> tuple[E, Fold]:
        """The engine and the fold where the log is; it may have gone on, or back, without this runtime."""
        if self._loaded is None or self._loaded[1].positions != self._log.positions(self.partition):
            checkpoint = self._log.checkpoint(self.partition)
            engine = self._restore(checkpoint.entries, checkpoint.engine)
            self._loaded = engine, Fold(self.partition, engine, self._codec, checkpoint.positions)
        return self._loaded


def _pieces(messages: Iterable[Message], records: int) -> Iterator[list[Message]]:
    """Cut so that no piece is larger than a stretch may be, but for a single record that is."""
    piece: list[Message] = []
    size = 0
    for message in messages:
        piece.append(message)
        size += len(message.value or b"")
        if len(piece) >= records or size >= _BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _as_they_came(messages: list[Message], positions: dict[str, int]) -> list[Stretch]:
    """As few stretches as give the order in which the records came (R-RUN-2)."""
    at = dict(positions)
    stretches = []
    for piece in pieces(messages):
        stretches.append(_stretch(piece, at))
        at |= stretches[-1].end
    return stretches


def _stretch(messages: list[Message], positions: dict[str, int]) -> Stretch:
    end = {m.topic: m.offset + 1 for m in messages}
    return Stretch({topic: positions[topic] for topic in end}, end, messages)
