"""Decides how `explain`, `who-can-see` and `blast-radius` ask the audit store, and what they print as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from turngate.cli.commanding import AsJson, Tenant
from turngate.cli.errors import NO, Impossible, extra
from turngate.cli.options import Connection, connects
from turngate.cli.store import filled, needed

if TYPE_CHECKING:
    from sqlalchemy import Connection as Database


@connects(broker=False, log=True, postgres=True)
def explain(
    connection: Connection,
    turn: Annotated[str, typer.Argument(metavar="TURN", help="The turn's id.", show_default=False)],
    *,
    tenant: Tenant,
    as_json: AsJson = False,
) -> None:
    """Tell why a turn was or was not said: who could read the room, what fed it, what failed, what would let it pass.

    It is told from what was recorded, in the audit store of a broker or of an embedded log; what no record says is said
    to be unknown. It names readers, rooms and authors: it is for operators. Exit code 1 where no decision is known.

    Examples:  turngate explain t1 --tenant acme --log turngate.db

    turngate explain t1 --tenant acme --postgres-dsn postgresql://db/turngate --json
    """
    from turngate.cli.telling import story

    with the_store(connection, tenant) as asking:
        from turngate.schemas.ways_on import way_on
        from turngate.sinks.store.explaining import explain as tell

        told = tell(asking, tenant, turn)
    if told is None:
        _nothing(f"no decision of the turn {turn} of {tenant} is in the store")
    if as_json:
        _print(_plain(told) | {"ways_on": {code: way_on(code) for code in told.codes}})
        return
    _say(story(told))


@connects(broker=False, log=True, postgres=True)
def who_can_see(
    connection: Connection,
    ref: Annotated[str, typer.Argument(metavar="REF", help="message:…, revision:… or tool:…", show_default=False)],
    *,
    tenant: Tenant,
    as_json: AsJson = False,
) -> None:
    """Say who may hear a source, for each agent that has it, and by what.

    Exit code 1 where nothing was recorded of it.

    Example:  turngate who-can-see revision:plan@1 --tenant acme --log turngate.db
    """
    from turngate.cli.telling import audible

    with the_store(connection, tenant) as asking:
        from turngate.sinks.store.audible import who_can_see as tell

        found, ended = tell(asking, tenant, ref)
    if not found and ended is None:
        _nothing(f"nothing of {ref} of {tenant} is in the store: nobody may hear it")
    if as_json:
        _print({"ref": ref, "ended": ended, "agents": _plain(found)})
        return
    _say(audible(ref, found, ended))


@connects(broker=False, log=True, postgres=True)
def blast_radius(
    connection: Connection,
    *,
    reader: Annotated[str, typer.Option(metavar="READER", help="Such as slack:T1/UALEX.")],
    source: Annotated[str | None, typer.Option(metavar="REF", help="Only what derives from this.")] = None,
    tenant: Tenant,
    as_json: AsJson = False,
) -> None:
    """List the turns that a reader was ever sent, or those that derive from a source, and through what.

    Derivation is followed as far as it was declared, rather too far than too short. A turn of which no record says what
    became of it counts. Whoever joined a room later and read back in it is not known here.

    Example:  turngate blast-radius --reader slack:T1/UEVE --source revision:plan@1 --tenant acme --log turngate.db
    """
    from turngate.cli.telling import reached

    with the_store(connection, tenant) as asking:
        from turngate.sinks.store.reaching import blast_radius as tell

        found = tell(asking, tenant, reader, source)
    if as_json:
        _print({"reader": reader, "source": source, "turns": _plain(found)})
        return
    _say(reached(reader, source, found))


@contextmanager
def the_store(connection: Connection, tenant: str | None = None) -> Iterator[Database]:
    """The store that was named: that of an embedded log is filled first.

    Raises `Impossible` where it has nothing of `tenant`: that is mistyped, or the store is another's.
    """
    log = connection.log_file()
    if log is not None:
        filled(log)
        from turngate.sinks.store.sqlite import beside, sqlite_engine

        engine = sqlite_engine(beside(log))
    else:
        settings = needed(connection)
        with extra("store"), extra("postgres"):
            from turngate.sinks.store.connecting import postgres_engine
        engine = postgres_engine(settings)
    from turngate.sinks.store.asking import has_tenant
    from turngate.sinks.store.migrating import opened

    with opened(engine) as asking:
        if tenant is not None and not has_tenant(asking, tenant):
            raise Impossible(f"nothing of a tenant {tenant} is in the store; check --tenant")
        yield asking


def _say(lines: Iterable[str]) -> None:
    from turngate.streams.stderr import one_line

    for line in lines:
        typer.echo(one_line(line))


def _nothing(what: str) -> NoReturn:
    from turngate.streams.stderr import one_line

    typer.echo(one_line(what), err=True)
    raise typer.Exit(NO)


def _plain(told: Any) -> Any:
    """A dataclass, or a list of them, as JSON has it."""
    from pydantic import TypeAdapter

    return TypeAdapter(Any).dump_python(told, mode="json")


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, sort_keys=True))
