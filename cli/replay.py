"""Decides how `turngate replay` shows which past decisions are not what is decided again."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.errors import NO, Impossible
from turngate.cli.options import Connection, connects
from turngate.cli.progress import progress
from turngate.cli.recorded import of_tenant, recorded

if TYPE_CHECKING:
    from turngate.schemas.codec import Codec
    from turngate.streams.comparing import Difference
    from turngate.streams.log import Headers, Message, Outgoing
    from turngate.streams.verifying import Checked, Verifying

#: Seconds after which it is written down how far a replay is.
_SAVE_EVERY = 60.0

FROM = typer.Option("--from", metavar="OFFSET", min=0, help="The first draft to decide again.")
TO = typer.Option("--to", metavar="OFFSET", min=0, help="The first one not to; else all that were decided.")
EXPORTED = typer.Option("--exported", metavar="DIR", help="What `turngate export` wrote.", rich_help_panel="Log")
SNAPSHOTS = typer.Option("--snapshots", metavar="DIR", help="Begin at the newest one there at or before --from.")
RESUME = typer.Option("--resume", metavar="DIR", help="Keep here how far it is, and go on from there.")
POLICY = typer.Option("--policy", metavar="NEW.yaml", help="Say what would be decided otherwise under this policy.")


@connects(log=True, keys=True)
def replay(
    connection: Connection,
    *,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="The topic that OFFSET is of.")] = "turn-drafts",
    partition: Annotated[int, typer.Option(metavar="P", min=0, help="The partition.")] = 0,
    start: Annotated[int, FROM] = 0,
    to: Annotated[int | None, TO] = None,
    exported: Annotated[Path | None, EXPORTED] = None,
    snapshots: Annotated[Path | None, SNAPSHOTS] = None,
    resume: Annotated[Path | None, RESUME] = None,
    policy: Annotated[Path | None, POLICY] = None,
    tenant: Annotated[str | None, typer.Option(metavar="TENANT", help="With --policy: whose it is; else all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for other programs.")] = False,
) -> None:
    """Decide again what was decided, from the same records in the same order, and say what is not the same.

    The state is rebuilt from the beginning, or from a snapshot. Every record that comes of a stretch is compared with
    the recorded one, byte for byte; a difference is shown with both. Needs the keys that the worker had. Exit code 1
    where anything differs.

    With --policy it says which decisions would be others, by room and reason, one step each: all else stays as it was.

    Examples:  turngate replay --log turngate.db --keys-file keys.json

    turngate replay --partition 3 --from 120000 --to 121000 --snapshots /backup/snapshots

    turngate replay --log turngate.db --policy acme-8.yaml --tenant acme
    """
    from turngate.cli.what_if import Tally, proposed, what_if
    from turngate.processors.engine import Engine
    from turngate.processors.trying import Trying
    from turngate.schemas.canonical import digest
    from turngate.streams.snapshots import read_snapshot
    from turngate.streams.verifying import Verifying

    if topic != "turn-drafts":
        raise Impossible(f"--topic {topic}: offsets are of turn-drafts, whose records are what is decided")
    if policy is None and tenant is not None:
        raise Impossible("--tenant says whose the policy is: give --policy too")
    keys = connection.keys()
    restore = partial(Engine.restore, keys=keys)
    with recorded(connection, exported) as (records, codec):
        at = _begin(snapshots, resume, partition, start)
        begin = None if at is None else read_snapshot(at)
        if policy is not None:
            if tenant is not None:
                of_tenant(records, tenant)
            document = proposed(policy)
            trying = partial(Trying.under, document, tenant, keys=keys)
            named = digest([document, tenant])
            tried = Verifying(records, trying, codec, partition, start=start, to=to, begin=begin, under=named)
            tally = Tally.of(tried.tally)
            saves = None if resume is None else _Saves(tried, resume, at, tally.kept)
            what_if(tried, _through(tried, saves), tally, as_json=as_json)
            return
        verifying = Verifying(records, restore, codec, partition, start=start, to=to, begin=begin)
        saves = None if resume is None else _Saves(verifying, resume, at)
        show = _as_json if as_json else _as_text
        for checked in _through(verifying, saves):
            for difference in checked.differences:
                typer.echo(show(difference, codec))
    summary = {"decisions": verifying.decisions, "differ": verifying.differ, "gone": verifying.gone}
    if as_json:
        typer.echo(json.dumps(summary | {"engine": Engine.version, "other_engines": verifying.engines}))
    else:
        if verifying.gone:
            typer.echo(f"{verifying.gone} more are no longer on their topics, and were not compared", err=True)
        typer.echo(f"{verifying.decisions} decisions, {verifying.differ} differ")
    if verifying.differ:
        raise typer.Exit(NO)


def _begin(snapshots: Path | None, resume: Path | None, partition: int, start: int) -> Path | None:
    """Where to begin: where the same replay was, else at a snapshot, else (None) at the beginning."""
    from turngate.streams.snapshots import newest

    found = newest(resume, partition) if resume is not None and resume.is_dir() else None
    if found is None and snapshots is not None:
        found = newest(snapshots, partition, start)
        if found is None:
            typer.echo(
                f"{snapshots}: none of partition {partition} at or before {start}, so from the beginning", err=True
            )
    return found


class _Saves:
    """How far a replay is, written down now and then; `before` is where that was done last."""

    def __init__(
        self,
        verifying: Verifying[Any],
        folder: Path,
        before: Path | None,
        tally: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> None:
        self._verifying = verifying
        self._tally = tally
        self._folder = folder
        self._before = before if before is not None and before.parent == folder else None
        self._at = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to."""
        return time.monotonic() - self._at >= _SAVE_EVERY

    def save(self) -> None:
        """Write it down, in the place of the last time."""
        made = self._verifying.save(self._folder, self._tally())
        if self._before is not None and self._before != made:
            self._before.unlink()
            self._before.with_suffix(".avro").unlink()
        self._before, self._at = made, time.monotonic()


def _through(verifying: Verifying[Any], saves: _Saves | None) -> Iterator[Checked]:
    """Its steps, as it goes through them."""
    with progress("Replaying") as told, _stoppable(saves is not None) as stopped:
        for checked in verifying.steps():
            told(checked.at + 1, verifying.end)
            _tell_engine(checked)
            yield checked
            if saves is not None and (stopped() or saves.due):
                saves.save()
            if stopped():
                raise Impossible("stopped; the same command goes on from here")
    if saves is not None:
        saves.save()


def _tell_engine(checked: Checked) -> None:
    """Say that another version of the engine decided from here on."""
    from turngate.processors.engine import Engine

    if checked.engine is not None:
        typer.echo(
            f"from {checked.at} of applied on, engine {checked.engine} decided, and this is engine {Engine.version}:"
            " differences may come of that",
            err=True,
        )


@contextmanager
def _stoppable(can_go_on: bool) -> Iterator[Callable[[], bool]]:
    """Whether somebody wants it to end, where it can be gone on with; else a signal does what it always does."""
    if not can_go_on:
        yield lambda: False
        return
    wanted: list[int] = []
    before = {s: signal.signal(s, lambda number, _: wanted.append(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(wanted)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_text(difference: Difference, codec: Codec) -> str:
    from turngate.streams.stderr import one_line

    told = _told(difference, codec)
    place = "" if difference.recorded is None else f"@{difference.recorded.offset}"
    lines = [f"{difference.topic}{place}, of {difference.cause or 'no record'}: {difference.why}"]
    for side in ("recorded", "again"):
        lines.append(f"  {side}: {json.dumps(told[side], ensure_ascii=False, sort_keys=True)}")
    for side, trace in (told["traces"] or {}).items():
        lines.append(f"  {side}, its trace: {json.dumps(trace, ensure_ascii=False, sort_keys=True)}")
    return "\n".join(map(one_line, lines))


def _as_json(difference: Difference, codec: Codec) -> str:
    return json.dumps(_told(difference, codec), ensure_ascii=False, sort_keys=True)


def _told(difference: Difference, codec: Codec) -> dict[str, Any]:
    was, now = difference.recorded, difference.again
    return {
        "topic": difference.topic,
        "offset": None if was is None else was.offset,
        "cause": difference.cause,
        "why": difference.why,
        "recorded": None if was is None else _plain(codec, was.key, was.value, was.headers),
        "again": None if now is None else _plain(codec, now.key, now.value, now.headers),
        "traces": None if difference.traces is None else _traces(*difference.traces, codec),
    }


def _traces(was: Message | None, now: Outgoing | None, codec: Codec) -> dict[str, Any]:
    return {
        "recorded": None if was is None else _plain(codec, was.key, was.value, was.headers),
        "again": None if now is None else _plain(codec, now.key, now.value, now.headers),
    }


def _plain(codec: Codec, key: bytes | None, value: bytes | None, headers: Headers) -> dict[str, Any]:
    """A record as other programs read it; of bytes that are none, what they are like."""
    from turngate.schemas.codec import Undecodable

    told: dict[str, Any] = {"key": _text(key), "headers": {name: _text(held) for name, held in headers}}
    try:
        record = codec.decode(value)
    except Undecodable:
        return told | {"record": None, "bytes": None if value is None else value.hex()}
    return told | {"record": type(record).__name__, "value": record.model_dump(mode="json", by_alias=True)}


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", "replace")
