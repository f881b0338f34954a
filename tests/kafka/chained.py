"""The engine of the live tests: it remembers all it was given, in order, so that any gap or repetition shows."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.streams.chain import Chain
from turngate.schemas.inputs import Record
from turngate.schemas.shapes import Position


class Chained(Chain):
    """A `Chain` with a hold, for the barrier's deadline."""

    hold = 5_000
    #: Seconds that each record takes.
    pause = 0.0

    @classmethod
    def restore(cls, entries: Iterable[tuple[bytes, bytes | None]], version: str | None) -> Chained:
        made = super().restore(entries, version)
        assert isinstance(made, Chained)
        return made

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        if self.pause > 0:
            time.sleep(self.pause)
        return super().apply(record, position, timestamp, raw)

    def hold_ms(self) -> int:
        return self.hold
