"""Decides how `turngate apply` folds a file of events and prints what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.files import embedded, reading
from turngate.cli.options import Assess, KeysFile

if TYPE_CHECKING:
    from turngate.streams.log import Message

EVENTS = typer.Argument(metavar="EVENTS.jsonl", help="Lines of records, `-` for standard input.", show_default=False)


def apply(
    events: Annotated[Path, EVENTS],
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Keep the log here; an existing one goes on.")
    ] = None,
    keys_file: KeysFile = None,
    assess: Assess = False,
) -> None:
    """Fold a file of events on the embedded log and print every record that comes of them.

    A line is `{"record": NAME, "at": MS, "value": {…}}`, with `"topic"` where the record is not on its own; `at` is the
    broker's time. Each record is applied before the next one arrives. What comes out is `{"record", "value"}` a line.
    Where no log is kept and no keys are given, the published test key is used, so that the answers can be compared.

    Example:  turngate apply events.jsonl | grep TurnDecided
    """
    from turngate.connectors.assessor.embedded import WRITES, EmbeddedAssessor
    from turngate.processors.keys import NO_KEYS, TEST_KEYS
    from turngate.schemas.catalog import APPLIED
    from turngate.schemas.codec import Codec
    from turngate.streams.keys import read_keys
    from turngate.streams.lines import LineError, read_lines, written
    from turngate.streams.local import LocalRuntime

    codec, keys = Codec(), read_keys(keys_file)
    if keys is NO_KEYS and log is None:
        keys = TEST_KEYS

    def show(messages: Iterable[Message]) -> None:
        for text in written(codec, (m for m in messages if m.topic != APPLIED)):
            sys.stdout.write(text + "\n")

    with reading(events) as lines, embedded(log) as kept:
        runtime = LocalRuntime(kept, codec, keys=keys)
        assessor = EmbeddedAssessor(kept, codec) if assess else None
        try:
            for line in read_lines(lines, str(events)):
                if line.at is None:
                    raise LineError(line.source, line.number, f"{line.record}: has no at, the broker's time in ms")
                value = line.encoded(codec)
                show(runtime.feed(line.topic, line.key, value, line.at))
                answer = None if assessor is None else assessor.answer(value, line.at)
                if answer is not None:
                    show(runtime.feed(WRITES, line.key, answer, line.at))
        finally:
            # What stands before a broken line has happened: it is applied and shown.
            show(runtime.flush())
            sys.stdout.flush()
