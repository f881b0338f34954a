"""Decides how an operator's command is given to a log, and what is said when it was carried out, refused or waits."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.errors import NO, Impossible, extra
from turngate.cli.files import embedded
from turngate.streams.clock import now_ms
from turngate.streams.stderr import one_line

if TYPE_CHECKING:
    from turngate.cli.options import Connection
    from turngate.schemas.inputs import Record
    from turngate.schemas.shapes import Position
    from turngate.streams.local_log import LocalLog

_COMMANDS = "operator-commands"

Tenant = Annotated[str, typer.Option(metavar="TENANT", help="Whose it is.")]
Operator = Annotated[
    str, typer.Option(metavar="NAME", envvar="TURNGATE_OPERATOR", help="Who gives the command, for the record.")
]
Wait = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="How long a worker may take.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for other programs.")]


#: What happens to an embedded log after a command.
Then = Callable[["LocalLog", "Given"], None]


@dataclass(frozen=True, slots=True)
class Given:
    """A command that was applied where it lies on a log; `records` is what may have come of it (others' too)."""

    command: str
    record: Record
    place: Position
    records: tuple[Record, ...]

    def refused(self) -> str | None:
        """Why it was not carried out: a status and codes, or None."""
        from turngate.schemas.outputs import CommandRefused, RecordRefused
        from turngate.schemas.shapes import Position

        for record in self.records:
            if isinstance(record, CommandRefused) and record.command == self.command:
                return f"{record.status} {', '.join(reason.code for reason in record.reasons)}"
            if isinstance(record, RecordRefused):
                place = Position(topic=record.topic, partition=record.partition, offset=record.offset)
                if place == self.place:
                    return record.code
        return None


def give(
    connection: Connection, kind: str, fields: dict[str, Any], wait: float, then: Then = lambda log, given: None
) -> Given:
    """Give a command of this kind, with an id of its own, which is printed before anything else.

    `then` is called with an embedded log, after the command was applied to it.

    Raises `Impossible` for fields that make no such record, or where an embedded log is not there, and
    `turngate.streams.log.LogError` where the log cannot be used or no worker applies it within `wait` seconds.
    """
    log = connection.log_file()
    if log is not None and not log.exists():
        raise Impossible(f"{log}: there is no log here; check the path")
    command = f"{kind.lower()}-{uuid.uuid4().hex}"
    record = _valid(kind, {"at": now_ms(), "command": command} | fields)
    typer.echo(f"command {command}", err=True)
    if log is None:
        return _sent(connection, command, record, wait)
    return _embedded(connection, log, command, record, then)


def _valid(kind: str, fields: dict[str, Any]) -> Record:
    from pydantic import ValidationError

    from turngate.schemas.catalog import RECORDS

    try:
        record = RECORDS[kind].model_validate(fields)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(str(p) for p in e['loc']) or 'command'}: {e['msg']}"
            for e in error.errors(include_url=False, include_input=False)
        ]
        raise Impossible("; ".join(wrong)) from None
    if record.tenant.isdecimal():
        raise Impossible("tenant: is a partition's, not a tenant's")
    return record


def _embedded(connection: Connection, path: Path, command: str, record: Record, then: Then) -> Given:
    from turngate.schemas.codec import Codec
    from turngate.schemas.shapes import Position
    from turngate.streams.local import LocalRuntime

    codec = Codec()
    with embedded(path) as log:
        runtime = LocalRuntime(log, codec, keys=connection.keys())
        place = Position(topic=_COMMANDS, partition=0, offset=log.end(_COMMANDS, 0))
        came = runtime.feed(_COMMANDS, record.tenant.encode(), codec.encode(record), now_ms()) + runtime.flush()
        given = Given(command, record, place, tuple(codec.decode(message.value) for message in came))
        then(log, given)
    return given


def _sent(connection: Connection, command: str, record: Record, wait: float) -> Given:
    with extra("kafka"):
        from turngate.streams.kafka.commanding import carry_out
    place, came = asyncio.run(carry_out(connection.kafka(), connection.codec(), _COMMANDS, record, wait))
    return Given(command, record, place, tuple(came))


def report(
    given: Given,
    as_json: bool,
    answer: dict[str, Any] | None,
    words: Callable[[], Iterable[str]],
    doubts: Sequence[str] = (),
) -> None:
    """Print what came of a command, as JSON or in words; exit code 1 where it was refused.

    `doubts` are said beside it. `answer` is None where the command should have been answered and was not, which raises
    `Impossible`.
    """
    refused = given.refused()
    if refused is None and answer is None:
        raise Impossible(f"command {given.command} was applied, and no answer to it was found")
    if as_json:
        told = {"command": given.command, "refused": refused, "doubts": list(doubts)}
        told |= (answer or {}) if refused is None else {}
        typer.echo(json.dumps(told, ensure_ascii=False))
    else:
        for line in words() if refused is None else (f"refused: {refused}",):
            typer.echo(line)
    for doubt in doubts:
        typer.echo(one_line(doubt), err=True)
    if refused is not None:
        raise typer.Exit(NO)
