"""Decides how `turngate send` brings records onto a log, all of them valid or none of them sent."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import STDIN, embedded, reading
from turngate.cli.options import Assess, Connection, connects
from turngate.streams.clock import now_ms

if TYPE_CHECKING:
    from turngate.processors.keys import Keys
    from turngate.schemas.codec import Codec
    from turngate.streams.lines import Line


@connects(log=True, keys=True)
def send(
    connection: Connection,
    records: Annotated[Path, typer.Argument(metavar="RECORDS.jsonl", help="Lines of records, `-` for standard input.")],
    *,
    assess: Assess = False,
) -> None:
    """Send records to their input topics. An invalid one is named by its line, and then nothing is sent.

    A line is `{"record": NAME, "value": {…}}`, with `"topic"` where the record has several. The log's own clock says
    when they came. On an embedded log they are applied at once; `turngate tail --log` shows what came of them.

    Example:  turngate send policy.jsonl --bootstrap-servers broker:9092
    """
    from turngate.schemas.codec import Codec

    log = connection.log_file()
    if assess and log is None:
        raise Impossible("--assess is for an embedded log; on a broker run `turngate assess`")
    with _readable_twice(records) as path:
        codec = Codec() if log is not None else connection.codec()
        for line in _lines(path, records):
            line.valid(codec)
        if log is not None:
            count = _to_log(log, _lines(path, records), codec, connection.keys(), assess)
        else:
            count = _to_broker(connection, _lines(path, records), codec)
    typer.echo(f"{count} records sent", err=True)


def _lines(path: Path, source: Path) -> Iterator[Line]:
    from turngate.streams.lines import read_lines

    with reading(path) as file:
        yield from read_lines(file, str(source))


@contextmanager
def _readable_twice(path: Path) -> Iterator[Path]:
    """The file itself; of what can be read only once, a copy."""
    if path != STDIN and path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        copy = Path(folder) / "records.jsonl"
        with copy.open("wb") as out, reading(path) as file:
            shutil.copyfileobj(file, out)
        yield copy


def _to_log(path: Path, lines: Iterator[Line], codec: Codec, keys: Keys, assess: bool) -> int:
    from turngate.connectors.assessor.embedded import WRITES, EmbeddedAssessor
    from turngate.streams.local import LocalRuntime

    count = 0
    with embedded(path) as log:
        runtime = LocalRuntime(log, codec, keys=keys)
        assessor = EmbeddedAssessor(log, codec) if assess else None
        for count, line in enumerate(lines, 1):  # noqa: B007 - the number of all of them
            value = line.valid(codec)
            runtime.feed(line.topic, line.key, value, now_ms())
            answer = None if assessor is None else assessor.answer(value, now_ms())
            if answer is not None:
                runtime.feed(WRITES, line.key, answer, now_ms())
        runtime.flush()
    return count


def _to_broker(connection: Connection, lines: Iterator[Line], codec: Codec) -> int:
    with extra("kafka"):
        from turngate.streams.kafka.writing import ToSend
        from turngate.streams.kafka.writing import send as send_records
    settings = connection.kafka()
    records = (ToSend(line.topic, line.key, line.valid(codec), line.partition) for line in lines)
    return asyncio.run(send_records(settings, records))
