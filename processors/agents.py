"""Decides whether an agent may act at all: the policy names it, and no operator has stopped it."""

from __future__ import annotations

from turngate.processors.ledger import Ledger
from turngate.processors.rows import OPERATORS, Flag
from turngate.schemas.inputs import AgentPaused


def named(ledger: Ledger, agent: str, room: str | None) -> bool:
    """Whether the policy names the agent (R-ROOM-7)."""
    return agent in ledger.policy(room).settings.agents


def paused(ledger: Ledger, agent: str, room: str) -> bool:
    """Whether an operator has stopped the agent, everywhere or in this room (R-POL-4)."""
    held = ledger.tables.paused
    return (ledger.tenant, agent, "") in held or (ledger.tenant, agent, room) in held


def already(ledger: Ledger, command: str) -> bool:
    """Whether this command of an operator was carried out or refused before; if not, it is noted now (R-RUN-4).

    Operators' ids are kept apart from those that agents choose, so that no request stands in a command's way.
    """
    key = (ledger.tenant, OPERATORS, command)
    if key in ledger.tables.commands:
        return True
    ledger.tables.commands.put(key, Flag(ledger.now))
    return False


def pause(ledger: Ledger, record: AgentPaused) -> bool:
    """Stop an agent, or let it go on; whether it is stopped by this.

    A command that is told again does nothing: it must not undo what was commanded since (R-RUN-4).
    """
    if already(ledger, record.command):
        return False
    key = (ledger.tenant, record.agent, record.room or "")
    if not record.paused:
        ledger.tables.paused.drop(key)
    elif key not in ledger.tables.paused:
        ledger.tables.paused.put(key, Flag(ledger.now))
    return record.paused
