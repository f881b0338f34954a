"""Decides what a log says of an agent that an operator stops or lets go: who names it, and where it is stopped."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from turngate.schemas.codec import Codec
from turngate.schemas.inputs import AgentPaused, PolicyPublished
from turngate.schemas.policy import PolicyInvalid, parse_policy
from turngate.schemas.shapes import Position
from turngate.streams.recorded import Records, of_tenant


@dataclass(frozen=True, slots=True)
class Standing:
    """How an agent stood before a command.

    `published`: whether its tenant ever had a policy; `named`: whether any version of it names the agent. None where
    retention has ended policies, so that nobody can tell. `rooms`: those in which it was stopped by their names.
    """

    published: bool | None
    named: bool | None
    everywhere: bool
    rooms: frozenset[str]


def standing(records: Records, codec: Codec, tenant: str, agent: str, command: Position) -> Standing:
    """How an agent stood before the command that lies at this place. Raises `LogError` where the log cannot be read."""
    names: list[bool] = []
    for record in of_tenant(records, codec, tenant, "policies", command.partition):
        with suppress(PolicyInvalid):
            if isinstance(record, PolicyPublished):
                names.append(agent in parse_policy(record.document).agents)
    stopped: set[str | None] = set()
    told: set[str] = set()
    for record in of_tenant(records, codec, tenant, command.topic, command.partition, command.offset):
        if isinstance(record, AgentPaused) and record.agent == agent and record.command not in told:
            told.add(record.command)  # told again, it undoes nothing (R-RUN-4)
            (stopped.add if record.paused else stopped.discard)(record.room)
    whole = records.first("policies", command.partition) == 0
    return Standing(
        bool(names) or (False if whole else None),
        any(names) or (False if whole else None),
        None in stopped,
        frozenset(room for room in stopped if room is not None),
    )
