"""Decides how `turngate apply` folds a file of events, in this process or on a broker, and prints what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import embedded, reading
from turngate.cli.options import Assess, Connection, connects

if TYPE_CHECKING:
    from turngate.processors.keys import Keys
    from turngate.schemas.codec import Codec
    from turngate.streams.lines import Line
    from turngate.streams.log import Message

EVENTS = typer.Argument(metavar="EVENTS.jsonl", help="Lines of records, `-` for standard input.", show_default=False)


@connects(registry=False, keys=True)
def apply(
    connection: Connection,
    events: Annotated[Path, EVENTS],
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Keep the log here; an existing one goes on.")
    ] = None,
    assess: Assess = False,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="On a broker, through the worker, instead of the embedded log.")
    ] = False,
) -> None:
    """Fold a file of events on the embedded log and print every record that comes of them.

    A line is `{"record": NAME, "at": MS, "value": {…}}`, with `"topic"` where the record is not on its own; `at` is the
    broker's time. Each record is applied before the next one arrives. What comes out is `{"record", "value"}` a line.
    Where no log is kept and no keys are given, the published test key is used, so that the answers can be compared.
    `--kafka` needs a broker on this machine and TURNGATE_TEST_TIME=1, reads the whole file first, and uses topics of
    its own that go away at the end.

    Example:  turngate apply events.jsonl | grep TurnDecided
    """
    from turngate.processors.keys import NO_KEYS, TEST_KEYS
    from turngate.schemas.codec import Codec

    if kafka and (log is not None or assess):
        raise Impossible("--log and --assess are of the embedded log: leave --kafka out, or them")
    codec, keys = Codec(), connection.keys()
    if keys is NO_KEYS and log is None:
        keys = TEST_KEYS
    if kafka:
        _on_a_broker(connection, events, codec, keys)
    else:
        _embedded(events, log, codec, keys, assess=assess)


def _embedded(events: Path, log: Path | None, codec: Codec, keys: Keys, *, assess: bool) -> None:
    from turngate.connectors.assessor.embedded import WRITES, EmbeddedAssessor
    from turngate.schemas.catalog import APPLIED
    from turngate.streams.lines import read_lines
    from turngate.streams.local import LocalRuntime

    with reading(events) as lines, embedded(log) as kept:
        runtime = LocalRuntime(kept, codec, keys=keys)
        assessor = EmbeddedAssessor(kept, codec) if assess else None
        try:
            for line in read_lines(lines, str(events)):
                at, value = _at(line), line.encoded(codec)
                _show(codec, (m for m in runtime.feed(line.topic, line.key, value, at) if m.topic != APPLIED))
                answer = None if assessor is None else assessor.answer(value, at)
                if answer is not None:
                    _show(codec, (m for m in runtime.feed(WRITES, line.key, answer, at) if m.topic != APPLIED))
        finally:
            # What stands before a broken line has happened: it is applied and shown.
            _show(codec, (m for m in runtime.flush() if m.topic != APPLIED))
            sys.stdout.flush()


def _on_a_broker(connection: Connection, events: Path, codec: Codec, keys: Keys) -> None:
    from turngate.streams.lines import read_lines

    with extra("kafka"):
        from turngate.streams.kafka import applying
    with reading(events) as lines:
        whole = list(read_lines(lines, str(events)))
    for line in whole:
        _at(line)
    _show(codec, applying.apply(connection.kafka(), whole, codec, keys))


def _at(line: Line) -> int:
    from turngate.streams.lines import LineError

    if line.at is None:
        raise LineError(line.source, line.number, f"{line.record}: has no at, the broker's time in ms")
    return line.at


def _show(codec: Codec, messages: Iterable[Message]) -> None:
    from turngate.streams.lines import written

    for text in written(codec, messages):
        sys.stdout.write(text + "\n")
