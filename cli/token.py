"""Decides how `turngate token` makes, lists and revokes the tokens that the gateway asks for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.errors import NO, Impossible
from turngate.cli.gateway import TokensFile, keeper_of
from turngate.cli.group import Commands
from turngate.cli.naming import check_names
from turngate.cli.options import Connection, connects
from turngate.streams.clock import now_ms

if TYPE_CHECKING:
    from turngate.gateway.tokens import Token

app = typer.Typer(no_args_is_help=True, cls=Commands)
_DAY_MS = 86_400_000


@app.callback()
def token() -> None:
    """Make, list and revoke the gateway's tokens."""


@app.command()
@connects(broker=False, postgres=True)
def create(
    connection: Connection,
    *,
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose it is.")],
    scope: Annotated[list[str], typer.Option(metavar="SCOPE", help="agent, connector, executor or operator.")],
    agent: Annotated[str | None, typer.Option(metavar="AGENT", help="As which agent; not for an operator.")] = None,
    namespace: Annotated[
        list[str] | None, typer.Option(metavar="NAMESPACE", help="Whose rooms a connector serves, like slack:T1.")
    ] = None,
    days: Annotated[int | None, typer.Option(metavar="N", min=1, help="When it ends; else never.")] = None,
    tokens_file: TokensFile = None,
) -> None:
    """Make a token and print it, once: only a digest of it is kept. The gateway knows it at once.

    It speaks for one tenant and one agent, and for nothing else, whatever a request says.

    Example:  turngate token create --tenant acme --agent mesh --scope agent --tokens-file tokens.json
    """
    keeper = keeper_of(connection, tokens_file)
    from turngate.gateway.tokens import Token, fresh

    token_id, shown, digest = fresh()
    scopes, namespaces = _checked(tenant, scope, agent, namespace or [])
    expires = None if days is None else now_ms() + days * _DAY_MS
    keeper.add(Token(token_id, tenant, agent, scopes, namespaces, digest, now_ms(), expires))
    typer.echo(f"token {token_id} is kept as a digest; this is shown once:", err=True)
    typer.echo(shown)


@app.command("list")
@connects(broker=False, postgres=True)
def listed(
    connection: Connection,
    *,
    tokens_file: TokensFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines, for other programs.")] = False,
) -> None:
    """List the tokens: whose they are and what they may do, never themselves."""
    for token in keeper_of(connection, tokens_file).all():
        row = _row(token)
        if as_json:
            typer.echo(json.dumps(row, ensure_ascii=False))
        else:
            named = " ".join(f"{name} {value}" for name, value in row.items() if value and name not in ("id", "state"))
            typer.echo(f"{row['id']}  {row['state']:8}  {named}")


@app.command()
@connects(broker=False, postgres=True)
def revoke(
    connection: Connection,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.", show_default=False)],
    *,
    tokens_file: TokensFile = None,
) -> None:
    """Revoke a token: nobody gets anything for it any more. Exit code 1: there is none of this id that was live.

    Example:  turngate token revoke 4f1c09aa32be --tokens-file tokens.json
    """
    if not keeper_of(connection, tokens_file).revoke(token_id, now_ms()):
        typer.echo(f"there is no live token {token_id}")
        raise typer.Exit(NO)
    typer.echo(f"revoked {token_id}")


def _checked(tenant: str, scope: list[str], agent: str | None, namespaces: list[str]) -> tuple[Any, frozenset[str]]:
    """Raises `Impossible` for a token that would be of no use, or of more than was meant."""
    from turngate.gateway.tokens import Scope
    from turngate.schemas.shapes import Id, Namespace, Tenant

    try:
        scopes = frozenset(Scope(one) for one in scope)
    except ValueError:
        raise Impossible(f"--scope: one of {', '.join(Scope)}") from None
    check_names("--tenant", Tenant, tenant)
    check_names("--agent", Id, *(() if agent is None else (agent,)))
    check_names("--namespace", Namespace, *namespaces)
    if (agent is None) is not (scopes == {Scope.OPERATOR}):
        raise Impossible("--agent: give it for an agent, a connector or an executor, and not for an operator alone")
    if bool(namespaces) is not (Scope.CONNECTOR in scopes):
        raise Impossible("--namespace: give it for a connector, and for nobody else")
    return scopes, frozenset(namespaces)


def _row(token: Token) -> dict[str, Any]:
    state = "live" if token.live(now_ms()) else "revoked" if token.revoked_at is not None else "expired"
    return {
        "id": token.id,
        "state": state,
        "tenant": token.tenant,
        "agent": token.agent,
        "scopes": ",".join(sorted(token.scopes)),
        "namespaces": ",".join(sorted(token.namespaces)),
        "created": _day(token.created_at),
        "expires": None if token.expires_at is None else _day(token.expires_at),
    }


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")
