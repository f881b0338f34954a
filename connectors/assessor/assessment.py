"""Decides what an assessment of a memory write is, and which writes want one (R-SEN-1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from turngate.schemas.inputs import Label, MemoryWrite, PolicyPublished, Record, SensitivityAssessed, WriteOp
from turngate.schemas.policy import PolicyInvalid, parse_policy


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an assessor says of a text. `note` and `ask_author` are for the author's own eyes (R-SEN-3)."""

    label: Label
    note: str | None = None
    ask_author: bool | None = None

    def record(self, write: MemoryWrite, at: int) -> SensitivityAssessed:
        """As a record about this write; the first that arrives about one counts."""
        return SensitivityAssessed(
            tenant=write.tenant,
            at=at,
            write=write.write,
            label=self.label,
            note=self.note,
            ask_author=self.ask_author,
        )


#: Of whatever could not be assessed: the write is then restricted to its room (R-SEN-2).
UNCERTAIN = Assessment(Label.UNCERTAIN)

#: Assesses a write within so many seconds; never raises, whatever happens.
Assess = Callable[[MemoryWrite, float], Awaitable[Assessment]]


class Wanted:
    """Which writes the engine waits for, from the policies that were published.

    A tenant whose policy never enabled it is never assessed. One that has enabled it once is, also after it has
    disabled it: a disabling is a loosening, so it holds for rooms that start after it only (R-POL-1).
    """

    def __init__(self) -> None:
        self._deadlines: dict[str, int] = {}

    def learn(self, record: Record) -> None:
        """Take notice of a policy; of a document that does not validate there is nothing to learn (R-POL-3)."""
        if not isinstance(record, PolicyPublished):
            return
        try:
            sensitivity = parse_policy(record.document).sensitivity
        except PolicyInvalid:
            return
        known = self._deadlines.get(record.tenant)
        if known is not None or sensitivity.enabled:
            known = sensitivity.deadline if known is None else min(known, sensitivity.deadline)
            self._deadlines[record.tenant] = known

    def wants(self, record: Record) -> MemoryWrite | None:
        """The write that waits for an assessment, if this is one.

        Of what was told in confidence about somebody's health no text goes anywhere (R-MEM-6); it is refused unread.
        """
        if not isinstance(record, MemoryWrite) or record.op not in (WriteOp.CREATE, WriteOp.AMEND) or record.health:
            return None
        return record if record.tenant in self._deadlines else None

    def deadline(self, tenant: str) -> int:
        """Milliseconds for which the engine waits; the least that any of the tenant's policies says."""
        return self._deadlines[tenant]
