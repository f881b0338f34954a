"""Decides when a button that is pressed again says something new: the first yes may have come to nothing (R-TNT-6).

While nobody knows who reads a room, nobody's yes counts there, and the same approval told again is none. So pressed
again it is another approval, which counts at once or hardly: of one question no yes is to be left for another draft.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from turngate.connectors.slack.ids import EntryError, millis
from turngate.connectors.slack.installations import Installation
from turngate.schemas.inputs import ActionApproved, ApprovalWithdrawn, Record
from turngate.sinks.questions import pressed

#: Milliseconds within which a press is the one before it, by Slack's clock, and for which a further one counts.
SAME_MS, AGAIN_MS = 5_000, 15_000
#: Approvals that one person's presses on one message may be.
MOST = 5
#: Persons and messages that are remembered; a press on another is the first one.
_KNOWN = 10_000


class Presses:
    """What pressed buttons say (`turngate.connectors.slack.answers.Said`)."""

    def __init__(self) -> None:
        self._begun: OrderedDict[str, list[int]] = OrderedDict()

    def __call__(self, payload: Mapping[str, Any], home: Installation, at: int) -> Sequence[Record]:
        """An approval, or the withdrawal of all that a person's presses on a message are, may be or may yet be."""
        said = pressed(payload, home, at)
        if isinstance(said, ApprovalWithdrawn):
            return [said.model_copy(update={"approval": _name(said.approval, number)}) for number in range(MOST)]
        if not isinstance(said, ActionApproved):
            return ()
        number = self._number(said.approval, payload["actions"][0].get("action_ts"))
        if number == 0:
            return [said]
        until = at + AGAIN_MS if said.expires_at is None else min(at + AGAIN_MS, said.expires_at)
        return [said.model_copy(update={"approval": _name(said.approval, number), "expires_at": until})]

    def _number(self, approval: str, ts: object) -> int:
        """Which of its presses it is; one that Slack delivers again is the same, and one without a time the first."""
        try:
            when = millis(ts)
        except EntryError:
            return 0
        begun = self._begun.setdefault(approval, [when])
        if len(self._begun) > _KNOWN:
            self._begun.popitem(last=False)
        if len(begun) < MOST and when - begun[-1] >= SAME_MS:
            begun.append(when)
        return max(0, bisect_right(begun, when) - 1)


def _name(approval: str, number: int) -> str:
    return approval if number == 0 else f"{approval} {number}"
