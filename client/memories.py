"""Decides how a turn writes what it remembers, and which writes its answer may tell of (R-TURN-5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turngate.client.asking import Asking
from turngate.schemas.inputs import MemoryKind, MemoryWrite, WriteBy, WriteOp
from turngate.schemas.outputs import RevisionRecorded, RevisionState, WriteRefused
from turngate.schemas.shapes import Reason


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a memory write. `revision` None: it is not known to be recorded. `staged`: an operator decides."""

    memory: str
    revision: str | None = None
    staged: bool = False
    reasons: tuple[Reason, ...] = ()


class Memories:
    """The memory writes of one turn. `wrote` and `retired`: revisions, of all of them that were not surely refused."""

    def __init__(self, asking: Asking, turn: str, room: str) -> None:
        self.wrote: list[str] = []
        self.retired: list[str] = []
        self._asking = asking
        self._named = {"by": WriteBy.TURN, "turn": turn, "room": room}

    async def write(
        self,
        write: str,
        memory: str,
        revision: str,
        op: WriteOp,
        kind: MemoryKind | str,
        *,
        base: str | None,
        **more: Any,
    ) -> Remembered:
        """Hand in one. From then on it may be recorded, whatever becomes of its answer."""
        more |= {"write": write, "memory": memory, "revision": revision, "op": op, "kind": kind, "base": base}
        record = self._asking.usable(MemoryWrite, **self._named, **more)
        if record is None:
            return Remembered(memory)
        wrote, retired = [] if op is WriteOp.FORGET else [revision], [] if base is None else [base]
        self.wrote += wrote
        self.retired += retired
        answer = await self._asking.answer(record)
        if isinstance(answer, RevisionRecorded):
            return Remembered(memory, revision, staged=answer.state is RevisionState.STAGED)
        if not isinstance(answer, WriteRefused):
            return Remembered(memory)
        for named, of in ((self.wrote, wrote), (self.retired, retired)):
            for one in of:
                named.remove(one)
        return Remembered(memory, reasons=answer.reasons)
