"""Decides how operators' commands are given: `pause`, `resume`, `forget`, `grant`, `revoke`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli import doubts
from turngate.cli.commanding import AsJson, Given, Operator, Tenant, Wait, give, report
from turngate.cli.errors import Impossible
from turngate.cli.options import Connection, connects
from turngate.cli.times import instant

if TYPE_CHECKING:
    from turngate.streams.local_log import LocalLog

_Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent, as the policy names it.", show_default=False)]
_Room = Annotated[str | None, typer.Option(metavar="ROOM", help="Only in this room, such as slack:T1/C1.")]


@connects(log=True, keys=True)
def pause(
    connection: Connection,
    agent: _Agent,
    *,
    tenant: Tenant,
    operator: Operator,
    room: _Room = None,
    wait: Wait = 30,
    as_json: AsJson = False,
) -> None:
    """Stop an agent, everywhere or in one room: its drafts are dropped, and what was authorized is withheld.

    It holds when this returns, for every draft that is decided from then on. Exit code 2 where no worker applied the
    command in time: it then holds as soon as one does.

    Example:  turngate pause mesh --tenant acme --operator alex --bootstrap-servers broker:9092
    """
    _pause(connection, agent, tenant, operator, room, wait, as_json, paused=True)


@connects(log=True, keys=True)
def resume(
    connection: Connection,
    agent: _Agent,
    *,
    tenant: Tenant,
    operator: Operator,
    room: _Room = None,
    wait: Wait = 30,
    as_json: AsJson = False,
) -> None:
    """Let an agent go on that was stopped. What was stopped everywhere is let go everywhere, a room by its name.

    Example:  turngate resume mesh --tenant acme --operator alex --bootstrap-servers broker:9092
    """
    _pause(connection, agent, tenant, operator, room, wait, as_json, paused=False)


def _pause(
    connection: Connection,
    agent: str,
    tenant: str,
    operator: str,
    room: str | None,
    wait: float,
    as_json: bool,
    *,
    paused: bool,
) -> None:
    fields = {"tenant": tenant, "operator": operator, "agent": agent, "room": room, "paused": paused}
    given = give(connection, "AgentPaused", fields, wait)
    where = "everywhere" if room is None else f"in {room}"
    said = f"{agent} is paused {where}" if paused else f"{agent} may go on {where}"
    answer = {"agent": agent, "room": room, "paused": paused}
    report(given, as_json, answer, lambda: [said], doubts.of_pause(connection, given))


@connects(log=True, keys=True)
def forget(
    connection: Connection,
    *,
    tenant: Tenant,
    operator: Operator,
    room: Annotated[str | None, typer.Option(metavar="ROOM", help="All that was said or read in this room.")] = None,
    reader: Annotated[str | None, typer.Option(metavar="READER", help="All that this account wrote.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="MEMORY", help="This memory, in all its revisions.")] = None,
    wait: Wait = 30,
    as_json: AsJson = False,
) -> None:
    """Erase the texts of a room, an author or a memory, and of everything that was made of them.

    It says what it reached: refs, which nobody can be told of any more; their ids and digests stay. On an embedded log
    the texts are removed from the file too, and from its store. On a broker they stay in the input topics and in
    `outbound` until these topics' retention ends them (see docs/retention.md).

    Example:  turngate forget --reader slack:T1/UALEX --tenant acme --operator alex --log turngate.db
    """
    if sum(x is not None for x in (room, reader, memory)) != 1:
        raise Impossible("name exactly one of --room, --reader and --memory")
    fields = {"tenant": tenant, "operator": operator, "room": room, "reader": reader, "memory": memory}
    purged: list[int] = []
    given = give(connection, "ErasureCommanded", fields, wait, lambda log, given: purged.append(_purge(log, given)))
    if purged:
        _purge_store(connection)
    refs = _erased(given)
    answer: dict[str, Any] = {"refs": refs} | ({"purged_records": purged[0]} if purged else {})
    nothing = doubts.of_erasure(given) if refs == [] and not any(purged) else []
    report(given, as_json, None if refs is None else answer, lambda: _told(refs or [], purged), nothing)


def _told(refs: list[str], purged: list[int]) -> Iterator[str]:
    kinds = Counter(ref.partition(":")[0] for ref in refs)
    counted = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in sorted(kinds.items()))
    yield f"erased {len(refs)} refs" + (f": {counted}" if counted else "")
    yield from refs
    if purged:
        yield f"the texts of {purged[0]} records were removed from the log's file"


def _erased(given: Given) -> list[str] | None:
    from turngate.schemas.outputs import ErasureApplied

    applied = [r for r in given.records if isinstance(r, ErasureApplied) and r.command == given.command]
    return [ref for record in applied for ref in record.refs] if applied else None


def _purge(log: LocalLog, given: Given) -> int:
    from turngate.schemas.inputs import ErasureCommanded
    from turngate.streams.purging import purge

    refs, command = _erased(given), given.record
    if refs is None or not isinstance(command, ErasureCommanded):
        return 0
    return purge(log, command, frozenset(refs))


def _purge_store(connection: Connection) -> None:
    """Empty the texts in the store beside an embedded log too, where there is one."""
    log = connection.log_file()
    if log is None or not log.with_name(f"{log.name}.store").exists():
        return
    from turngate.cli.store import filled

    filled(log, scrub=True)


@connects(log=True, keys=True)
def grant(
    connection: Connection,
    revision: Annotated[str, typer.Argument(metavar="REVISION", help="The exact revision.", show_default=False)],
    *,
    tenant: Tenant,
    operator: Operator,
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Whose memory it is.")],
    memory: Annotated[str, typer.Option(metavar="MEMORY", help="The memory it is a revision of.")],
    reader: Annotated[list[str] | None, typer.Option(metavar="READER", help="May hear it; repeatable.")] = None,
    workspace: Annotated[
        list[str] | None, typer.Option(metavar="WORKSPACE", help="Whose full members may hear it; repeatable.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Anyone may hear it.")] = False,
    expires: Annotated[str | None, typer.Option(metavar="TIME", help="When the grant ends, ISO.")] = None,
    wait: Wait = 30,
    as_json: AsJson = False,
) -> None:
    """Let more people hear a memory's exact revision. The grant's id is the command's; exit code 1: it was refused.

    Example:  turngate grant plan@1 --memory plan --agent mesh --workspace slack:T1 --tenant acme --operator alex
    """
    if public == bool(reader or workspace):
        raise Impossible("say who may hear it: --reader and --workspace, or --public alone")
    audience: Any = "public" if public else {"readers": reader or [], "workspaces": workspace or []}
    fields: dict[str, Any] = {"tenant": tenant, "operator": operator, "op": "grant", "agent": agent, "memory": memory}
    fields |= {
        "revision": revision,
        "audience": audience,
        "expires_at": None if expires is None else instant("--expires", expires),
    }
    given = give(connection, "GrantCommanded", fields, wait)
    answer = {"grant": given.command} if _changed(given, given.command, "active") else None
    report(given, as_json, answer, lambda: [f"granted; the grant is {given.command}"], doubts.of_grant(given))


@connects(log=True, keys=True)
def revoke(
    connection: Connection,
    grant_id: Annotated[str, typer.Argument(metavar="GRANT", help="The grant's id.", show_default=False)],
    *,
    tenant: Tenant,
    operator: Operator,
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Whose memory it shares.")],
    wait: Wait = 30,
    as_json: AsJson = False,
) -> None:
    """Take a grant back. It holds for every draft that is decided from then on; exit code 1: there is none in force.

    Example:  turngate revoke grantcommanded-4f1c --agent mesh --tenant acme --operator alex
    """
    fields = {"tenant": tenant, "operator": operator, "op": "revoke", "agent": agent, "grant": grant_id}
    given = give(connection, "GrantCommanded", fields, wait)
    answer = {"grant": grant_id} if _changed(given, grant_id, "revoked") else None
    report(given, as_json, answer, lambda: [f"revoked {grant_id}"], doubts.of_grant(given))


def _changed(given: Given, grant_id: str, state: str) -> bool:
    from turngate.schemas.outputs import GrantChanged

    changes = (record for record in given.records if isinstance(record, GrantChanged))
    return any(c.grant == grant_id and c.state == state and c.tenant == given.record.tenant for c in changes)
