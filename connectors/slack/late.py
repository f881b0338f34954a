"""Decides which messages are told again, since something that happened to their room before them is told only now.

Slack promises no order, and tries again for six minutes what it could not deliver. A message that came before the
change or the leave that it followed was taken to be said before that, to readers who were not there any more. Told
again as edited it gets a further leaf, of the room as it is after that (R-AUD-6); the first one stays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from turngate.connectors.slack.events import ACCOUNT_CHANGED
from turngate.connectors.slack.quotes import NOWHERE
from turngate.schemas.inputs import Change, MembershipChanged, MessageObserved, Record, RoomChanged

_Happened = MembershipChanged | RoomChanged
#: Milliseconds for which messages are remembered; Slack gives up after six minutes.
REMEMBERED = 900_000


@dataclass(slots=True)
class _Said:
    """A message as it would be told again, when it was heard of (ms), and whether it was told again."""

    again: MessageObserved
    heard: int
    told: bool = False


class Late:
    """The messages of the last quarter of an hour."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, str, str], _Said] = OrderedDict()

    def note(self, records: Sequence[Record], now: int) -> None:
        """These were told at `now` (ms)."""
        while self._said and next(iter(self._said.values())).heard <= now - REMEMBERED:
            self._said.popitem(last=False)
        for r in records:
            if isinstance(r, MessageObserved):
                key = (r.tenant, r.agent, r.message)
                before = self._said.pop(key, None)
                again = r.model_copy(update={"text": None, "edited": True})
                self._said[key] = _Said(again, now, before is not None and before.told)

    def again(self, records: Sequence[Record], happened: int, now: int) -> list[Record]:
        """What is told again after these, which happened at `happened` by Slack's clock; times in milliseconds."""
        after = {(r.tenant, r.agent, r.room): r.at for r in records if isinstance(r, _Happened) and _takes_readers(r)}
        told: list[Record] = []
        for said in self._said.values() if after else ():
            r = said.again
            changed = after.get((r.tenant, r.agent, r.room))
            if changed is None or r.at < happened:
                continue
            # A second time it would be nothing new, so it is unknown for good.
            more = (_nowhere(r),) if said.told else ()
            told.append(r.model_copy(update={"at": max(now, changed) + 1, "quotes": (*r.quotes, *more)}))
            said.told = True
        return told


def _takes_readers(record: _Happened) -> bool:
    """Whether somebody may read the room no more. An account that became something else is as much of it as before."""
    left = isinstance(record, MembershipChanged) and record.change is Change.LEFT
    return left or (isinstance(record, RoomChanged) and record.what != ACCOUNT_CHANGED)


def _nowhere(message: MessageObserved) -> str:
    namespace, ts = message.room.partition("/")[0], message.message.rpartition("/")[2]
    return f"message:{namespace}/{NOWHERE}/{ts}"
