"""Decides how `turngate import` brings what happened elsewhere onto a log."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import embedded
from turngate.cli.naming import check_names
from turngate.cli.options import Connection, connects
from turngate.cli.progress import progress
from turngate.cli.times import instant
from turngate.streams.stderr import one_line

if TYPE_CHECKING:
    from turngate.connectors.slack_export import Export, RoomEvent, Summary
    from turngate.processors.keys import Keys
    from turngate.schemas.codec import Codec

app = typer.Typer(no_args_is_help=True)


@app.callback()
def importing() -> None:
    """Bring what happened elsewhere onto a log."""


@app.command("slack-export")
@connects(log=True, keys=True)
def slack_export(
    connection: Connection,
    export: Annotated[Path, typer.Argument(metavar="DIR|ZIP", help="The folder, or the archive that Slack hands out.")],
    *,
    tenant: Annotated[str, typer.Option(help="Whose log it is.")] = "acme",
    agent: Annotated[str, typer.Option(help="The agent that knows these rooms.")] = "mesh",
    account: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Slack's id of an account of the agent's own; repeatable.")
    ] = None,
    team: Annotated[str | None, typer.Option(metavar="ID", help="The workspace, where it holds several.")] = None,
    exported_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it was exported, ISO; else the midnight after its end.")
    ] = None,
    not_shared: Annotated[
        bool, typer.Option("--not-shared", help="You know that no channel is shared with another organisation.")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out files that are broken, and name them.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Lines for `turngate apply` and `send`.", rich_help_panel="Log"),
    ] = None,
) -> None:
    """Turn a Slack export into records: listings, joins and leaves, messages, edits and deletions.

    What an export does not say stays unknown. A list of members is a listing of the day of the export. It goes to
    `--out FILE` ("-": standard output), which is made for its owner alone, an embedded log (`--log`, applied with the
    times of the export), or a broker.

    Example:  turngate import slack-export export.zip --tenant acme --account U0BOT --out events.jsonl
    """
    from turngate.connectors.slack_export import read_export
    from turngate.schemas.shapes import Id, Tenant

    check_names("--tenant", Tenant, tenant)
    check_names("--agent", Id, agent)
    log = connection.log_file()
    if out is not None and (log is not None or connection.values["bootstrap_servers"] is not None):
        raise Impossible("--out, --log and --bootstrap-servers are three places: give one of them")
    if out is not None and out.exists() and export.exists() and out.samefile(export):
        raise Impossible(f"--out {out}: is the export itself; name another file")
    with (
        progress(f"Reading {export.name}") as told,
        read_export(
            export,
            tenant=tenant,
            agent=agent,
            accounts=account or (),
            team=team,
            not_shared=not_shared,
            exported_at=None if exported_at is None else instant("--exported-at", exported_at),
            keep_going=keep_going,
            on_progress=told,
        ) as events,
    ):
        if out is not None:
            _to_file(out, events)
        elif log is not None:
            _to_log(log, events, connection.keys())
        else:
            _to_broker(connection, events)
        _say(events.summary)


def _to_file(path: Path, events: Export) -> None:
    lines = (
        json.dumps(
            {"record": e.record, "at": e.at, "topic": e.topic, "value": e.fields}, ensure_ascii=False, sort_keys=True
        )
        for e in events
    )
    if path == Path("-"):
        sys.stdout.writelines(line + "\n" for line in lines)
        return
    try:
        with _replacing(path) as file:
            file.writelines(line + "\n" for line in lines)
    except OSError as error:
        raise Impossible(f"{path}: {error.strerror}") from None


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    """A file for its owner alone that takes this place when it is whole; of a pipe or a device, that itself."""
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    place = path.resolve()
    part = NamedTemporaryFile(  # noqa: SIM115 - closed before it takes its place
        "w", encoding="utf-8", newline="\n", dir=place.parent, prefix=f"{place.name}.", suffix=".part", delete=False
    )
    try:
        with part:
            yield part
        Path(part.name).replace(place)
    except BaseException:
        Path(part.name).unlink(missing_ok=True)
        raise


def _to_log(path: Path, events: Export, keys: Keys) -> None:
    from turngate.schemas.codec import Codec
    from turngate.streams.local import LocalRuntime

    codec = Codec()
    with embedded(path) as log:
        runtime = LocalRuntime(log, codec, keys=keys)
        for event in events:
            runtime.feed(event.topic, _key(event), _bytes(codec, event), event.at)
        runtime.flush()


def _to_broker(connection: Connection, events: Export) -> None:
    with extra("kafka"):
        from turngate.streams.kafka.writing import ToSend, send
    settings, codec = connection.kafka(), connection.codec()
    asyncio.run(send(settings, (ToSend(e.topic, _key(e), _bytes(codec, e)) for e in events)))


def _key(event: RoomEvent) -> bytes:
    return str(event.fields["tenant"]).encode()


def _bytes(codec: Codec, event: RoomEvent) -> bytes:
    return codec.encode_fields(event.record, event.fields)


def _say(summary: Summary) -> None:
    """What the export came to, on standard error."""
    told = {
        "rooms": summary.rooms,
        "rooms whose readers are established": summary.established,
        "listings": summary.listings,
        "messages": summary.messages,
        "edits": summary.edits,
        "deletions": summary.deletions,
        "joins": summary.joins,
        "leaves": summary.leaves,
        "changes of rooms": summary.changes,
    }
    typer.echo(f"{summary.namespace}: " + ", ".join(f"{n} {what}" for what, n in told.items()), err=True)
    for what, n in sorted(summary.skipped.items()):
        typer.echo(f"left out: {n} × {what}", err=True)
    for problem in summary.problems:
        typer.echo(one_line(f"left out, broken: {problem}"), err=True)
