"""Decides which tool calls are reported since nobody had authorized them (R-TNT-7, R-EVI-2)."""

from __future__ import annotations

from collections.abc import Iterable

from turngate.processors.actions import internal
from turngate.processors.ledger import Ledger
from turngate.processors.tracing import report_call
from turngate.processors.turns import but, put_turn, turn_of
from turngate.schemas.inputs import ToolReturned
from turngate.schemas.shapes import Code


def undrafted(ledger: Ledger, record: ToolReturned, turns: Iterable[str]) -> None:
    """Report a call of an operation that is not internal, unless an authorized action named it.

    It may be of one of the call's turns, or have had a turn to itself, whose id is then the call's: so a turn may act
    and go on. One action is one call: a second one that names the same turn is reported.
    """
    operation = f"{record.server}.{record.operation}"
    if internal(ledger, record.room, operation):
        return
    for turn in (*turns, record.call):
        row = turn_of(ledger, turn)
        if row.agent == record.agent and row.operation == operation and row.called in (None, record.call):
            if row.called is None:
                put_turn(ledger, turn, but(row, called=record.call))
            return
    report_call(ledger, record, Code.UNDRAFTED_CALL)
