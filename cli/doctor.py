"""Decides what `turngate doctor` looks at, and in which words it says what it found."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import NO, Impossible, extra
from turngate.cli.options import Connection, connects, variables
from turngate.cli.slack_parts import SlackFile, SlackUrl, slack_api_at, slack_settings
from turngate.streams.clock import now_ms

if TYPE_CHECKING:
    from turngate.connectors.slack.installations import Installation
    from turngate.schemas.inputs import Record

#: Seconds in which a database must have answered.
_PATIENCE = 5
#: Milliseconds of the log that are read for what bots cost, and rooms that are named.
_DAY, _MOST = 86_400_000, 5
_NO_KEYS = "none, so nobody is offered to share; make some with `turngate keys new FILE`"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, whether it is as it should be (None: not in use), and in words what there is to say."""

    what: str
    fine: bool | None
    words: str


@connects(log=True, postgres=True, keys=True)
def doctor(
    connection: Connection,
    *,
    slack_file: SlackFile = None,
    slack_api: SlackUrl = None,
    bots: Annotated[
        bool, typer.Option("--bots", help="Also read the last day, for the bots that cost the most refusals.")
    ] = False,
    rooms: Annotated[
        bool, typer.Option("--rooms", help="Also read the last day, for rooms that take too long to list.")
    ] = False,
) -> None:
    """Say what can be reached, what is misconfigured, and what to do about it. Exit code 1: something is not right.

    It looks at the settings, the broker and its topics, the schema registry, Postgres, or at an embedded log, at the
    keys, and at each Slack workspace. It only reads, and never shows a password, a key or a token.

    Example:  turngate doctor --bootstrap-servers broker:9092 --registry-url https://registry:8081
    """
    findings = [*misspelled(os.environ), *_looked_at(connection), _found("keys", lambda: _keys(connection), _NO_KEYS)]
    findings += _slack(slack_file, slack_api)
    findings += _bots(connection) if bots else []
    findings += _slow(connection) if rooms else []
    for finding in findings:
        typer.echo(_line(finding))
    if any(finding.fine is False for finding in findings):
        raise typer.Exit(NO)


def _looked_at(connection: Connection) -> Iterator[Finding]:
    log = connection.log_file()
    if log is not None:
        yield _found("embedded log", lambda: _log(log))
        return
    broker = _found("broker", lambda: _broker(connection))
    yield broker
    if broker.fine:
        yield _found("topics", lambda: _topics(connection))
    yield _found("schema registry", lambda: _registry(connection))
    yield _found("Postgres", lambda: _postgres(connection))


def _found(what: str, look: Callable[[], str | None], otherwise: str = "not configured") -> Finding:
    from turngate.streams.log import LogError

    try:
        words = look()
    except (LogError, Impossible) as error:
        return Finding(what, False, str(error))
    return Finding(what, None, otherwise) if words is None else Finding(what, True, words)


def _log(path: Path) -> str:
    from turngate.schemas.catalog import INPUT_TOPICS
    from turngate.streams.local_log import LocalLog

    if not path.exists():
        raise Impossible(f"{path}: there is no such file; `turngate apply --log` and `turngate send --log` make one")
    with LocalLog(path, read_only=True) as log:
        waiting = sum(
            log.end(topic, p) - log.positions(p).get(topic, 0) for p in range(log.partitions) for topic in INPUT_TOPICS
        )
        return f"{path}: {log.partitions} partition(s), {waiting} record(s) not yet applied"


def _broker(connection: Connection) -> str:
    with extra("kafka"):
        from turngate.streams.kafka.reading import reach
    settings = connection.kafka()
    brokers = asyncio.run(reach(settings))
    return f"{settings.bootstrap_servers} answers by {settings.security} ({brokers} broker(s))"


def _topics(connection: Connection) -> str:
    with extra("kafka"):
        from turngate.streams.kafka.topics import check_topics
    found = asyncio.run(check_topics(connection.kafka()))
    partitions = next(iter(found.values())).partitions
    return f"all {len(found)} are there, with {partitions} partition(s) each, and the broker says the time"


def _registry(connection: Connection) -> str | None:
    settings = connection.registry()
    if settings is None:
        return None
    with extra("kafka"):
        from turngate.streams.kafka.registry import RegistryIds
    RegistryIds(settings)
    return f"{settings.url} answers and has the newest schema of every record"


def _postgres(connection: Connection) -> str | None:
    settings = connection.postgres()
    if settings is None:
        return None
    with extra("postgres"):
        import psycopg
    try:
        with psycopg.connect(settings.conninfo(), connect_timeout=_PATIENCE) as database:
            row = database.execute("SHOW server_version").fetchone()
            encrypted = database.info.pgconn.ssl_in_use
    except psycopg.OperationalError as error:
        # its first line names host and cause, and no password
        raise Impossible(f"does not let us in: {str(error).splitlines()[0]}") from None
    return f"answers, version {row[0] if row else 'unknown'}, {'by TLS' if encrypted else 'unencrypted'}"


def _keys(connection: Connection) -> str | None:
    keys = connection.keys()
    if not any(keys.secrets.values()):
        return None
    tenants = sorted(keys.secrets[keys.current])
    return f"key {keys.current} is current, for {'every tenant' if '*' in tenants else ', '.join(tenants)}"


def _slack(slack_file: Path | None, slack_api: str | None) -> Iterator[Finding]:
    """Each workspace of the Slack file, if there is one."""
    from turngate.connectors.slack.installations import installations_file
    from turngate.streams.log import LogError

    try:
        if installations_file(slack_file) is None and not os.environ.get("TURNGATE_SLACK"):
            return
        installations, _, url = slack_settings(slack_file, slack_api)
        found = asyncio.run(_workspaces(list(installations), url))
    except (LogError, Impossible) as error:
        yield Finding("Slack", False, str(error))
        return
    for home, wrong in found:
        fine = f"{home.account} speaks for agent {home.agent} of {home.tenant}"
        yield Finding(f"Slack {home.team}", wrong is None, fine if wrong is None else wrong)


async def _workspaces(homes: list[Installation], url: str) -> list[tuple[Installation, str | None]]:
    from turngate.connectors.slack.installing import wrong

    async with slack_api_at(url) as api:
        return [(home, await wrong(api, home)) for home in homes]


def _bots(connection: Connection) -> list[Finding]:
    """What `trusted_bots` would change in the rooms with the most refusals (R-ROOM-7)."""
    from turngate.streams.bots import TOPICS, BotCosts

    found = BotCosts()
    wrong = _learnt(connection, TOPICS, found.learn)
    if wrong is not None:
        return [Finding("bots", False, wrong)]
    said = [
        f"{cost.room}: {cost.refused} turns refused for who reads it; of these {cost.would_pass} pass for agent "
        f"{cost.agent} of {cost.tenant} if trusted_bots lists {', '.join(cost.bots)}"
        for cost in islice(found.costs(), _MOST)
    ]
    said = said or ["in no room with one was a turn refused for who reads it"]
    return [Finding("bots", None, words) for words in said]


def _slow(connection: Connection) -> list[Finding]:
    """Rooms in which everything is withheld, as no listing is new enough when it is complete (R-DLV-1)."""
    from turngate.streams.slow_rooms import TOPICS, SlowRooms

    found = SlowRooms()
    wrong = _learnt(connection, TOPICS, found.learn)
    if wrong is not None:
        return [Finding("rooms", False, wrong)]
    said = [
        f"{room.room} of {room.tenant} takes {room.took / 1000:.0f} s to list, and freshness.delivery is "
        f"{room.delivery / 1000:g} s: nothing is said there but what is public. Set it to more, which lets those read "
        "along who join meanwhile"
        for room in islice(found.slow(), _MOST)
    ]
    fine = Finding("rooms", True, "each that was listed was listed within freshness.delivery")
    return [Finding("rooms", False, words) for words in said] or [fine]


def _learnt(connection: Connection, topics: Sequence[str], learn: Callable[[Record], None]) -> str | None:
    """Learn from every policy and the last day of these topics; what stands against it."""
    from turngate.streams.log import LogError

    async def read() -> None:
        for topic in topics:
            async for record in _records(connection, topic, 0 if topic == "policies" else now_ms() - _DAY):
                learn(record)

    try:
        asyncio.run(read())
    except (LogError, Impossible) as error:
        return str(error)
    return None


async def _records(connection: Connection, topic: str, since: int) -> AsyncIterator[Record]:
    """What can be read of a topic from a time (ms) on, up to where it ends now."""
    from turngate.schemas.codec import Codec, Undecodable
    from turngate.streams.local_log import LocalLog

    path = connection.log_file()
    if path is None:
        with extra("kafka"):
            from turngate.streams.kafka.reading import Start, follow
        codec = await asyncio.to_thread(connection.codec)
        async for message in follow(connection.kafka(), topic, Start(time=since), forever=False):
            with suppress(Undecodable):
                yield codec.decode(message.value)
        return
    embedded = Codec()
    with LocalLog(path, read_only=True) as log:
        for message in chain.from_iterable(log.scan(topic, partition) for partition in range(log.partitions)):
            if message.timestamp >= since:
                with suppress(Undecodable):
                    yield embedded.decode(message.value)


def misspelled(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that look like settings and are none, so that whoever set them is told."""
    known = variables()
    for name in sorted(environment):
        if name.startswith("TURNGATE_") and not name.startswith("TURNGATE_TEST_") and name not in known:
            yield Finding("settings", False, f"{name} is no setting of Turngate's; it has no effect")


def _line(finding: Finding) -> str:
    mark, colour = {
        True: ("ok  ", typer.colors.GREEN),
        False: ("FAIL", typer.colors.RED),
        None: ("-   ", typer.colors.WHITE),
    }[finding.fine]
    shown = typer.style(mark, fg=colour) if sys.stdout.isatty() else mark
    return f"{shown} {finding.what}: {finding.words}"
