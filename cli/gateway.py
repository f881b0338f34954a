"""Decides how `turngate gateway` starts, and what it has in common with `turngate up`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.files import reading
from turngate.cli.options import Connection, connects
from turngate.cli.running import Work, feed_of, log_lines, place_of, until_stopped

if TYPE_CHECKING:
    from turngate.gateway.guard import Limits
    from turngate.gateway.service import Gateway
    from turngate.gateway.tokens import TokenKeeper, Tokens
    from turngate.streams.feed import Feed

_PANEL = "Gateway"
TokensFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens-file",
        metavar="FILE",
        envvar="TURNGATE_TOKENS_FILE",
        help="Who may ask, of mode 600; `turngate token create` makes it.",
        rich_help_panel=_PANEL,
    ),
]
Tls = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--tls",
        metavar="CERT.pem KEY.pem",
        help="Speak HTTPS, with this certificate and its key.",
        rich_help_panel=_PANEL,
    ),
]
Rate = Annotated[
    int, typer.Option(metavar="N", min=1, help="Requests of one token in a second.", rich_help_panel=_PANEL)
]
MaxBody = Annotated[
    int, typer.Option(metavar="BYTES", min=1_000, help="Of one request's body.", rich_help_panel=_PANEL)
]


@connects(log=True, keys=True, postgres=True)
def gateway(
    connection: Connection,
    *,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where it answers.")] = "127.0.0.1:8080",
    tokens_file: TokensFile = None,
    tls: Tls = None,
    rate: Rate = 200,
    max_body: MaxBody = 1 << 20,
) -> None:
    """Answer agents, connectors and executors over HTTP, until SIGTERM or Ctrl-C.

    What it acknowledges is on the log, and a request that is sent again is answered as before. Any number of gateways
    may stand before one log. Without --tls it speaks plain HTTP: let a proxy bring TLS. See docs/gateway.md.

    Tokens lie in a file, or in Postgres where several gateways share them.

    Example:  turngate gateway --tokens-file tokens.json --bootstrap-servers broker:9092
    """
    tokens, looking = tokens_of(connection, tokens_file)
    place, limits = place_of(listen), limits_of(rate, max_body)
    log_lines(connection)

    async def run() -> None:
        async with feed_of(connection) as (feed, work):
            await until_stopped(*work, *looking, serving(feed, tokens, place, limits, tls, "--listen").run())

    asyncio.run(run())


def tokens_of(connection: Connection, file: Path | None) -> tuple[Tokens, list[Work]]:
    """Where tokens lie, and the work of following them. Raises `Impossible` or `LogError` where that is no use."""
    with extra("gateway"):
        import turngate.gateway.service  # noqa: F401
    keeper = keeper_of(connection, file)
    keeper.all()
    follow = getattr(keeper, "follow", None)
    return keeper, [] if follow is None else [follow()]


def keeper_of(connection: Connection, file: Path | None) -> TokenKeeper:
    """Where tokens are kept: in the file that is named, else in the database. Raises `Impossible` where none is."""
    with extra("gateway"):
        from turngate.gateway.token_file import TokenFile
    if file is not None:
        return TokenFile(file)
    settings = connection.postgres() if "postgres_dsn" in connection.values else None
    if settings is None:
        raise Impossible("nobody may ask: give --tokens-file or --postgres-dsn; `turngate token create` makes tokens")
    with extra("postgres"):
        from turngate.gateway.token_table import PostgresTokens
    return PostgresTokens(settings)


def limits_of(rate: int, max_body: int) -> Limits:
    """What a request may ask for."""
    from turngate.gateway.guard import Limits

    return Limits(rate=rate, body=max_body)


def serving(
    feed: Feed, tokens: Tokens, place: tuple[str, int], limits: Limits, tls: tuple[Path, Path] | None, flag: str
) -> Gateway:
    """A gateway that listens. Raises `Impossible` where the place is not to be had, or a file is no use."""
    import ssl

    from turngate.gateway.service import Gateway

    for file in tls or ():
        with reading(file):
            pass
    try:
        return Gateway(feed, tokens, place, limits, tls=tls)
    except ssl.SSLError:
        raise Impossible("--tls: not a PEM certificate and its private key, or the key has a password") from None
    except OSError as error:
        raise Impossible(f"{flag} {place[0]}:{place[1]}: {error.strerror}") from None
