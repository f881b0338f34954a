"""Decides what is said beside the answer of an operator's command that found nothing to act on: a name may be mistyped.

None of it is a refusal: what is stopped or erased beforehand, on purpose, is right (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from turngate.cli.recorded import recorded
from turngate.streams.log import LogError

if TYPE_CHECKING:
    from turngate.cli.commanding import Given
    from turngate.cli.options import Connection
    from turngate.schemas.inputs import AgentPaused
    from turngate.streams.stopped import Standing


def of_pause(connection: Connection, given: Given) -> list[str]:
    """What an operator may not have meant by stopping an agent, or by letting it go."""
    from turngate.schemas.inputs import AgentPaused
    from turngate.streams.stopped import standing

    command = given.record
    if not isinstance(command, AgentPaused) or given.refused() is not None:
        return []
    try:
        with recorded(connection) as (records, codec):
            before = standing(records, codec, command.tenant, command.agent, given.place)
    except LogError as error:  # the command holds all the same
        return [f"whether there is such an agent could not be looked up: {error}"]
    return [*_unnamed(before, command), *([] if command.paused else _not_let_go(before, command))]


def _unnamed(before: Standing, command: AgentPaused) -> Iterator[str]:
    done = "stopped" if command.paused else "let go"
    if before.published is False:
        yield f"no policy of a tenant {command.tenant} is here, so nobody was {done}: check --tenant"
    elif before.named is False:
        yield f"no policy of {command.tenant} names an agent {command.agent}, so nobody was {done}: check the name"


def _not_let_go(before: Standing, command: AgentPaused) -> Iterator[str]:
    agent, room = command.agent, command.room
    if not (before.everywhere if room is None else room in before.rooms):
        yield f"{agent} was not paused {'everywhere' if room is None else f'in {room}'}"
    if room is not None and before.everywhere:
        yield f"{agent} is still paused everywhere: `turngate resume {agent}` without --room lets it go"
    if room is None and before.rooms:
        yield f"{agent} is still paused in {', '.join(sorted(before.rooms))}: name it with --room"


def of_erasure(given: Given) -> list[str]:
    """What is said where an erasure reached nothing."""
    from turngate.schemas.inputs import ErasureCommanded

    command = given.record
    if not isinstance(command, ErasureCommanded):
        return []
    what = f"no source and no revision of {command.tenant} is of {command.room or command.reader or command.memory}"
    return [f"{what}: check both names; what comes later is not erased by this"]


def of_grant(given: Given) -> list[str]:
    """What is said where there is no such grant to revoke, or no such revision to share (R-GRT-6)."""
    from turngate.schemas.inputs import GrantCommanded, GrantOp

    match given.record, given.refused():
        case GrantCommanded(op=GrantOp.REVOKE) as command, "404 source_missing":
            return [f"no grant {command.grant} of {command.tenant} is in force: check both names"]
        case GrantCommanded() as command, "409 base_not_current":
            what = f"{command.revision} is not the current revision of a memory {command.memory} of {command.agent}"
            return [f"{what} in {command.tenant}, or it was erased: check the names"]
    return []
