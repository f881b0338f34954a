"""Decides what is said, live, of decisions that another policy would have made otherwise: ids and codes, no text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from turngate.processors.trying import Outcome, Tried, Trying
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ShadowDecided, ShadowOutcome, ShadowVerdict
from turngate.schemas.shapes import Position, Reason


class Shadowing(Trying):
    """The engine, which says of each decision what it would be under another policy, where that is another.

    That is said after everything else that comes of a record, so whatever the engine decides, its state and its traces
    are the same, byte for byte, as without the other policy.
    """

    def _whole(self, position: Position, timestamp: int, handle: Callable[[], list[Record]]) -> list[Record]:
        self.take_tried()  # of a record that failed as a whole, nothing is said

        def both() -> list[Record]:
            out = handle()
            return out + [self._said(tried) for tried in self.take_tried() if tried.was != tried.now]

        return super()._whole(position, timestamp, both)

    def _said(self, tried: Tried) -> ShadowDecided:
        assert self._document is not None
        version, document = self._document
        said = ShadowDecided(
            tenant=tried.tenant,
            at=self.now,
            room=tried.room,
            turn=tried.name if tried.kind == "turn" else None,
            request=tried.name if tried.kind == "context" else None,
            policy=str(version),
            document=hashlib.sha256(document.encode()).hexdigest(),
            was=_outcome(tried.was),
            now=_outcome(tried.now),
        )
        if self.fits(said):
            return said
        was, now = ShadowOutcome(verdict=said.was.verdict), ShadowOutcome(verdict=said.now.verdict)
        return said.model_copy(update={"was": was, "now": now, "abridged": True})


def _outcome(outcome: Outcome) -> ShadowOutcome:
    reasons = tuple(Reason(code=code, ref=ref) for code, ref in outcome.listed)
    return ShadowOutcome(verdict=ShadowVerdict(outcome.verdict), reasons=reasons, passes=outcome.passes)
