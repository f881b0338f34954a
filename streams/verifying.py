"""Decides which of a partition's decisions are made again and held against what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from turngate.processors.state import State
from turngate.schemas.canonical import digest
from turngate.schemas.catalog import APPLIED, DRAFTS
from turngate.schemas.codec import Codec
from turngate.streams.chain import Link
from turngate.streams.comparing import Comparing, Difference
from turngate.streams.fold import Applies
from turngate.streams.local_runtime import Restore
from turngate.streams.log import LogError
from turngate.streams.recorded import Records
from turngate.streams.replay import Replay
from turngate.streams.snapshots import Snapshot, write_snapshot


class Held(Applies, Protocol):
    """An engine whose state can be written down."""

    @property
    def state(self) -> State:
        """The partition's state."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A stretch that was applied again. `at`: how far on `applied`. `engine`: the version that recorded it, where that
    is another than this one's and is met for the first time; it is to be told before the differences. `compared`:
    whether it is one of those that were asked for.
    """

    at: int
    engine: str | None
    compared: bool
    differences: list[Difference]


H = TypeVar("H", bound=Held)


class Verifying(Generic[H]):
    """The stretches that decided the drafts from `start` up to, not including, `to` (None: all there are).

    Whole stretches are compared, with everything that came of them, from what was applied after the draft before
    `start` on. What comes before them is applied and not looked at. `begin` must not lie behind `start`. `under` names
    what the engine decides otherwise, so that one replay does not go on as another.
    """

    def __init__(
        self,
        records: Records,
        restore: Restore[H],
        codec: Codec,
        partition: int = 0,
        *,
        start: int = 0,
        to: int | None = None,
        begin: Snapshot | None = None,
        under: str | None = None,
    ) -> None:
        self.replay = Replay(records, restore, codec, partition, begin)
        self._range = {"start": start, "to": to}
        self._comparing = Comparing(records, codec, partition, self.replay.starts, self.replay.ends)
        notes = {} if begin is None else begin.notes
        if notes and notes["range"] != self._range:
            raise LogError(f"that replay is of the drafts {_words(notes['range'])}, not {_words(self._range)}")
        if notes and notes.get("under") != under:
            raise LogError("that replay is not under the same policy, of the same tenant; use a new directory")
        if self.replay.positions[DRAFTS] > start and not notes:
            raise LogError(f"the snapshot is of {DRAFTS} at {self.replay.positions[DRAFTS]}, which is after {start}")
        self._comparing.decisions, self._comparing.differ = notes.get("decisions", 0), notes.get("differ", 0)
        self._comparing.gone = notes.get("gone", 0)
        self._comparing.cut.update(notes.get("cut", []))
        apart = {tenant: (Link(*was), Link(*now)) for tenant, (was, now) in notes.get("apart", {}).items()}
        self._comparing.chains.apart.update(apart)
        #: Versions other than this one's that recorded something.
        self.engines: list[str] = notes.get("engines", [])
        #: What was handed to `save` with the replay that this one goes on with.
        self.tally: Any = notes.get("tally")
        self._under = under
        self._applied: int = self.replay.starts[APPLIED]
        self._records = records
        there = records.first(APPLIED, partition) < self._applied  # else retention may have removed it
        if there and notes.get("last") is not None and notes["last"] != self._last():
            raise LogError(
                f"{APPLIED}[{partition}]: at {self._applied - 1} is not the stretch that was replayed last: that "
                "replay is of another log; use a new directory"
            )

    @property
    def decisions(self) -> int:
        """How many were compared."""
        return self._comparing.decisions

    @property
    def differ(self) -> int:
        """How many of them differ."""
        return self._comparing.differ

    @property
    def gone(self) -> int:
        """How many more were made again that are no longer on their topics."""
        return self._comparing.gone

    @property
    def end(self) -> int:
        """Where `applied` ends."""
        return self.replay.ends[APPLIED]

    def steps(self) -> Iterator[Checked]:
        """Stretch by stretch. Raises `LogError` as `Replay` does, and where `start` is none that was decided."""
        start, to = self._range["start"], self._range["to"]
        assert start is not None
        for step in self.replay.steps():
            if to is not None and step.before[DRAFTS] >= to:
                return
            engine = self._met(step.recorded.engine)
            wanted = step.before[DRAFTS] >= start or step.after[DRAFTS] > start
            if wanted:
                self._comparing.pass_by(step.before)
            differences = self._comparing.compare(step) if wanted else []
            if wanted and step.recorded.engine == self.replay.engine.version:
                differences += self._comparing.compare_stretch(step)
            self._applied = step.message.offset + 1
            yield Checked(step.message.offset, engine, wanted, differences)
        if self.replay.positions[DRAFTS] <= start > 0:
            at = f"{DRAFTS}[{self.replay.partition}]"
            raise LogError(f"{at}: nothing from {start} on was decided; it stands at {self.replay.positions[DRAFTS]}")
        yield Checked(self.end - 1, None, True, self._comparing.rest(self.replay.positions))

    def save(self, folder: Path, tally: Any = None) -> Path:
        """Write down how far this is, between two steps, so that another goes on from there; `tally`, as JSON, too."""
        engine, positions = self.replay.engine, dict(self.replay.positions)
        notes: dict[str, Any] = {"range": self._range, "engines": self.engines, "under": self._under, "tally": tally}
        notes |= {"decisions": self.decisions, "differ": self.differ, "gone": self.gone}
        notes["cut"] = sorted(self._comparing.cut)
        notes["apart"] = self._comparing.chains.apart
        notes["last"] = self._last()
        outputs = self._comparing.positions | {APPLIED: self._applied}
        entries, about = engine.state.entries(), (positions, engine.version)
        return write_snapshot(folder, self.replay.partition, outputs, entries, lambda: about, notes)

    def _last(self) -> str | None:
        """What the last stretch is like that was replayed; None where there is none."""
        if not 0 < self._applied <= self.end:
            return None
        last = next(self._records.scan(APPLIED, self.replay.partition, self._applied - 1, self._applied), None)
        return None if last is None else digest([last.timestamp, (last.value or b"").hex()])

    def _met(self, engine: str) -> str | None:
        if engine == self.replay.engine.version or engine in self.engines:
            return None
        self.engines.append(engine)
        return engine


def _words(of: dict[str, int | None]) -> str:
    return f"from {of['start']} " + ("on" if of["to"] is None else f"to {of['to']}")
