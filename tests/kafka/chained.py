"""The engine of the live tests: it remembers all it was given, in order, so that any gap or repetition shows."""

from __future__ import annotations

from collections.abc import Iterable

from tests.streams.chain import Chain


class Chained(Chain):
    """A `Chain` with a hold, for the barrier's deadline."""

    hold = 5_000

    @classmethod
    def restore(cls, entries: Iterable[tuple[bytes, bytes]], version: str | None) -> Chained:
        made = super().restore(entries, version)
        assert isinstance(made, Chained)
        return made

    def hold_ms(self) -> int:
        return self.hold
