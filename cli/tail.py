"""Decides how `turngate tail` shows the records of a topic."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.options import Connection, connects
from turngate.cli.times import instant

if TYPE_CHECKING:
    from turngate.schemas.codec import Codec
    from turngate.streams.log import Message

#: Seconds between two looks at an embedded log that somebody else may be writing.
_PAUSE = 0.2


@connects(log=True)
def tail(
    connection: Connection,
    topic: Annotated[str, typer.Argument(help="A topic of the contract, such as turn-verdicts or dead-letters.")],
    *,
    start: Annotated[
        str, typer.Option("--from", metavar="WHERE", help="beginning, end, an offset, or an ISO time.")
    ] = "end",
    tenant: Annotated[str | None, typer.Option(metavar="TENANT", help="Only this tenant's records.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for other programs.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for what comes, or stop at the end.")
    ] = True,
) -> None:
    """Show the records of a topic, decoded, as they come.

    Examples:  turngate tail turn-verdicts --from beginning --tenant acme

    turngate tail dead-letters --log turngate.db --from 2026-01-01T00:00:00Z --no-follow --json
    """
    from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
    from turngate.schemas.codec import Codec

    names = (*INPUT_TOPICS, *OUTPUT_TOPICS)
    if topic not in names:
        raise Impossible(f"{topic} is no topic of the contract; there are {', '.join(names)}")
    log = connection.log_file()
    shown = _Shown(tenant, as_json)
    if log is not None:
        for message in _embedded(log, topic, start, follow):
            shown.say(message, Codec())
    else:
        asyncio.run(_from_broker(connection, topic, start, follow, shown))


async def _from_broker(connection: Connection, topic: str, start: str, follow: bool, shown: _Shown) -> None:
    with extra("kafka"):
        from turngate.streams.kafka.reading import Start
        from turngate.streams.kafka.reading import follow as records_of
    settings, codec = connection.kafka(), await asyncio.to_thread(connection.codec)
    offset, moment = _place(start)
    at = Start(offset=offset, time=moment, end=start == "end")
    messages: AsyncIterator[Message] = records_of(settings, topic, at, forever=follow)
    async for message in messages:
        shown.say(message, codec)


def _embedded(path: Path, topic: str, start: str, follow: bool) -> Iterator[Message]:
    from turngate.streams.local_log import LocalLog

    offset, moment = _place(start)
    with LocalLog(path, read_only=True) as log:
        end_at_first = start == "end"
        at = {p: log.end(topic, p) if end_at_first else offset or 0 for p in range(log.partitions)}
        while True:
            for partition, first in list(at.items()):
                for message in log.scan(topic, partition, first):
                    at[partition] = message.offset + 1
                    if moment is None or message.timestamp >= moment:
                        yield message
            if not follow:
                return
            time.sleep(_PAUSE)


def _place(start: str) -> tuple[int | None, int | None]:
    """The offset or the time (ms) that `--from` names; neither for `beginning` and `end`."""
    if start in ("beginning", "end"):
        return None, None
    if start.isdecimal():
        return int(start), None
    what = "write beginning, end, an offset, or a time like 2026-01-01T00:00:00Z"
    return None, instant("--from", start, what)


class _Shown:
    """What of each record is printed, and how."""

    def __init__(self, tenant: str | None, as_json: bool) -> None:
        self._key = None if tenant is None else tenant.encode("utf-8", "surrogateescape")
        self._as_json = as_json

    def say(self, message: Message, codec: Codec) -> None:
        """Print a record, if it is one of the tenant's that was asked for."""
        from turngate.schemas.codec import Undecodable
        from turngate.streams.stderr import one_line

        if self._key is not None and message.key != self._key:
            return
        place = {k: getattr(message, k) for k in ("topic", "partition", "offset", "timestamp")}
        try:
            record = codec.decode(message.value)
        except Undecodable as error:
            size = len(message.value or b"")
            line = place | {"record": None, "schema": error.schema, "size": size}
            text = f"no record ({error}), {size} bytes"
        else:
            name, value = type(record).__name__, record.model_dump(mode="json", by_alias=True)
            line = place | {"record": name, "value": value}
            text = f"{record.tenant} {name} {_fields(value)}"
        if self._as_json:
            typer.echo(json.dumps(line, sort_keys=True, ensure_ascii=False))
        else:
            when = datetime.fromtimestamp(message.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
            typer.echo(one_line(f"{when[:23]}Z {message.topic}[{message.partition}]@{message.offset} {text}"))
        sys.stdout.flush()


def _fields(value: dict[str, Any]) -> str:
    """The fields that say something, on one line."""
    told = {k: v for k, v in value.items() if k not in ("tenant", "at") and v not in (None, [], {})}
    return " ".join(f"{k}={v if isinstance(v, str) and ' ' not in v else _compact(v)}" for k, v in told.items())


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
