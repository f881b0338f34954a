"""Decides how `turngate audit` checks the chains of decisions, and signs where they stand."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import NO, Impossible, extra
from turngate.cli.group import Commands
from turngate.cli.options import Connection, connects
from turngate.cli.progress import progress
from turngate.cli.recorded import recorded

if TYPE_CHECKING:
    from turngate.streams.auditing import Audited
    from turngate.streams.chain import Break, Chains, Link
    from turngate.streams.checkpoints import Checkpoint

app = typer.Typer(no_args_is_help=True, cls=Commands)

EXPORTED = typer.Option("--exported", metavar="DIR", help="What `turngate export` wrote.", rich_help_panel="Log")
SIGNED = typer.Option("--checkpoint", metavar="FILE", help="What was signed earlier; repeatable. Needs --public-key.")
PUBLIC = typer.Option("--public-key", metavar="FILE", help="Of the key that it was signed with.")
STORE = typer.Option("--store", help="Check what the audit store has: in Postgres, or beside --log.")
OUTBOUND = typer.Option(help="Also check what was let out; that topic holds texts, which not every auditor may read.")
EVERY = typer.Option("--every", metavar="TIME", help="Go on, and make one each time that so much has passed: 1h.")


@app.callback()
def audit() -> None:
    """Check the audit trail: one chain of decisions for each tenant, and every decision that it names."""


@app.command()
@connects(log=True, postgres=True)
def verify(
    connection: Connection,
    *,
    exported: Annotated[Path | None, EXPORTED] = None,
    store: Annotated[bool, STORE] = False,
    checkpoint: Annotated[list[Path] | None, SIGNED] = None,
    public_key: Annotated[Path | None, PUBLIC] = None,
    outbound: Annotated[bool, OUTBOUND] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for other programs.")] = False,
) -> None:
    """Check that no decision was altered, dropped, added or moved since it was written.

    Of each tenant the first break is named: where it lies, and what is wrong; exit code 1. Where retention has removed
    the oldest records a chain begins later, which is said. That its end was not cut off, and that it was not written
    anew as a whole, only a checkpoint shows (see docs/audit.md).

    Examples:  turngate audit verify --log turngate.db

    turngate audit verify --store --postgres-dsn postgresql://db/turngate

    turngate audit verify --checkpoint 2026-12-01T080000.000Z.json --public-key audit.key.pub
    """
    from turngate.streams.auditing import audit as audited
    from turngate.streams.chain import BOUND as bound

    signed = _signed(checkpoint or [], public_key)
    if store:
        _verify_store(connection, exported, signed, bound if outbound else bound[:1], as_json)
        return
    total = _Total(as_json)
    with recorded(connection, exported) as (records, codec):
        for at in signed:
            if at >= records.partitions:
                raise Impossible(f"the checkpoint is of a partition {at}: there are 0 to {records.partitions - 1} here")
        for partition in range(records.partitions):
            with progress(f"Checking partition {partition}") as told:
                found = audited(
                    records, codec, partition, signed.get(partition), bound if outbound else bound[:1], told
                )
            total.add(found.chains, len(found.chains.heads), found.breaks)
            _tell(found)
    total.say()


def _verify_store(
    connection: Connection,
    exported: Path | None,
    signed: dict[int, dict[str, list[Link]]],
    bound: tuple[str, ...],
    as_json: bool,
) -> None:
    """The same of the rows that the audit store has."""
    from turngate.cli.explain import the_store

    if exported is not None:
        raise Impossible("--store and --exported are two places: give one of them")
    total = _Total(as_json)
    with the_store(connection) as asking:
        from turngate.sinks.store.verifying import SETTLE_MS, verify

        # A log's store has just been filled to its end: nothing lags behind.
        for found in verify(asking, signed, bound, SETTLE_MS if connection.log_file() is None else None):
            total.add(found.chains, 1, found.breaks)
            _tell_chains(found.chains, f"audit[{found.partition}]")
            if found.waiting:
                typer.echo(f"{found.tenant}: what its end lacks may not be in the store yet: ask again", err=True)
    total.say()


class _Total:
    """What was checked in all, and each break as it is found."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._traces = self._named = self._tenants = self._broken = 0

    def add(self, chains: Chains, tenants: int, breaks: Sequence[Break]) -> None:
        """The chains of so many more tenants."""
        for one in breaks:
            typer.echo(json.dumps(asdict(one), ensure_ascii=False) if self._as_json else _text(one))
        self._traces += chains.traces
        self._named += chains.decisions
        self._tenants += tenants
        self._broken += len(breaks)

    def say(self) -> None:
        """Exit code 1 where a chain is broken."""
        if self._as_json:
            told = {"traces": self._traces, "named": self._named, "tenants": self._tenants, "broken": self._broken}
            typer.echo(json.dumps(told))
        else:
            typer.echo(
                f"{self._traces} traces of {self._tenants} tenants, which name {self._named} records; "
                f"{self._broken} chains broken"
            )
        if self._broken:
            raise typer.Exit(NO)


@app.command()
@connects(log=True)
def checkpoint(
    connection: Connection,
    *,
    key: Annotated[Path, typer.Option("--key", metavar="FILE", help="The key to sign with (`turngate audit key`).")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where checkpoints are kept: not beside the log.")],
    every: Annotated[str | None, EVERY] = None,
) -> None:
    """Sign where every tenant's chain stands, so that it can be shown later that nothing before that was changed.

    The chains are checked from the newest checkpoint in the directory on; exit code 1, and nothing is signed, where one
    is broken. Made every hour, at most an hour's decisions can be cut off or written anew without being found.

    Example:  turngate audit checkpoint --key audit.key --out /elsewhere/checkpoints --every 1h
    """
    from turngate.schemas.policy import duration_ms

    try:
        pause = None if every is None else duration_ms(every) / 1000
    except ValueError as error:
        raise Impossible(f"--every {every}: {error}") from None
    while True:
        began = time.monotonic()
        typer.echo(str(_checkpoint(connection, key, out)))
        if pause is None:
            return
        time.sleep(max(0.0, began + pause - time.monotonic()))


@app.command()
def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the key shall lie.", show_default=False)],
) -> None:
    """Make the key that checkpoints are signed with, and FILE.pub, with which anybody can check them.

    Keep FILE where only the one who makes checkpoints can read it: whoever has it can sign another history. It is never
    printed. A key in PEM that `openssl genpkey -algorithm ed25519` made works as well.

    Example:  turngate audit key /etc/turngate/audit.key
    """
    with extra("audit"):
        from turngate.streams.checkpoints import make_key

    typer.echo(f"{file}: signs; {make_key(file)}: for whoever checks")


def _signed(files: list[Path], public: Path | None) -> dict[int, dict[str, list[Link]]]:
    """What checkpoints have of each tenant, by partition."""
    if not files:
        if public is not None:
            raise Impossible("--public-key is of a checkpoint: give --checkpoint too")
        return {}
    if public is None:
        raise Impossible("--checkpoint needs --public-key: one that nobody signed shows nothing")
    with extra("audit"):
        from turngate.streams.checkpoints import public_key, read_checkpoint
    of = public_key(public)
    found: dict[int, dict[str, list[Link]]] = {}
    for file in files:
        for partition, stand in read_checkpoint(file, of).partitions.items():
            for tenant, link in stand.heads.items():
                found.setdefault(partition, {}).setdefault(tenant, []).append(link)
    return found


def _text(one: Break) -> str:
    place = "" if one.offset is None else f"@{one.offset}"
    # A key that somebody else wrote may be anything, and is not to move a terminal's cursor.
    tenant = one.tenant if one.tenant.isprintable() else ascii(one.tenant)
    return f"{tenant}: {one.topic}[{one.partition}]{place} {one.why}"


def _tell(found: Audited) -> None:
    """What is no break, and has to be known."""
    at = f"audit[{found.partition}]"
    if found.first > 0:
        typer.echo(f"{at} begins at {found.first}: what was before is gone", err=True)
    _tell_chains(found.chains, at)


def _tell_chains(chains: Chains, at: str) -> None:
    for tenant, number in chains.begun.items():
        typer.echo(f"{tenant}: {at}: the chain begins at number {number}", err=True)
    for tenant in chains.unlinked:
        typer.echo(
            f"{tenant}: {at}: what the checkpoint signed is gone, so it shows nothing of what is there", err=True
        )
    if chains.apart:
        typer.echo(
            f"{at}: of {chains.apart} more decisions or their traces one is gone, so they were not checked", err=True
        )


def _checkpoint(connection: Connection, key: Path, out: Path) -> Path:
    """Check what has come since the last one, and sign."""
    with extra("audit"):
        from turngate.streams.checkpoints import Checkpoint, Stand, signing_key
    from turngate.streams.auditing import links
    from turngate.streams.private import write_private

    secret = signing_key(key)
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = _newest(out, key)
    stands: dict[int, Stand] = {}
    broken: list[Break] = []
    with recorded(connection) as (records, codec):
        for partition in range(records.partitions):
            known = None if before is None else before.partitions.get(partition)
            start, after = (None, None) if known is None else (known.end, known.heads)
            found = links(records, codec, partition, start, after)
            stands[partition] = Stand(found.end, found.chains.heads)
            broken += found.breaks
    for one in broken:
        typer.echo(_text(one))
    if broken:
        raise typer.Exit(NO)
    path = out / f"{at.replace(':', '')}.json"
    write_private("checkpoint", path, Checkpoint(at, stands).signed(secret))
    return path


def _newest(out: Path, key: Path) -> Checkpoint | None:
    """The last checkpoint that was made here, with this key. Raises `LogError` for one that was not."""
    from turngate.streams.checkpoints import read_checkpoint, signing_key

    made = sorted(out.glob("*.json"))
    return read_checkpoint(made[-1], signing_key(key).public_key()) if made else None
