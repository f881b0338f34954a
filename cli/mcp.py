"""Decides how `turngate mcp` starts: between a model's host and one MCP server, for one agent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.errors import Impossible, extra
from turngate.cli.running import place_of, until_stopped

if TYPE_CHECKING:
    from turngate.client.acting import Acting

_TURN = "The turn of every call (else each call's `_meta` says it)"
#: What `--exposed` says of a model that sees nothing else; an empty variable is one that is not set.
NOTHING = "nothing"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _turn(variable: str, metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text, envvar=f"TURNGATE_{variable}", rich_help_panel=_TURN)


def mcp(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND…]", help="What starts the server, over stdio.")
    ] = None,
    *,
    server: Annotated[str, typer.Option(metavar="NAME", help="What the policy calls the server.")],
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the server is, instead of a command: streamable HTTP.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve streamable HTTP on a loopback address, instead of stdio."),
    ] = None,
    gateway: Annotated[
        str, typer.Option(metavar="URL", envvar="TURNGATE_URL", help="Where Turngate's gateway answers.")
    ] = "http://127.0.0.1:8080",
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long a verdict is waited for, approvals included.")
    ] = 30.0,
    call_unnamed: Annotated[
        bool,
        typer.Option("--call-unnamed", help="Call a server of which the policy says nothing, without asking."),
    ] = False,
    room: Annotated[str | None, _turn("ROOM", "ROOM", "Where the answer would be said.")] = None,
    turn: Annotated[str | None, _turn("TURN", "ID", "The turn's id; a name that no other turn has.")] = None,
    thread: Annotated[str | None, _turn("THREAD", "ID", "The thread, where it is in one.")] = None,
    trigger: Annotated[str | None, _turn("TRIGGER", "REF", "The message that it answers.")] = None,
    request: Annotated[str | None, _turn("REQUEST", "ID", "The context request that the inference had.")] = None,
    exposed: Annotated[
        str | None,
        _turn("EXPOSED", "REFS", "All else that the model sees, or `nothing`. Without it nothing is written."),
    ] = None,
) -> None:
    """Stand between a model and an MCP server: secrets are removed, results recorded, writes asked for first.

    The token of the gateway comes from TURNGATE_TOKEN and needs the scopes agent and executor. What needs a verdict is
    called after it, once, and never again. See docs/mcp.md.

    Example:  turngate mcp --server crm -- uvx crm-mcp-server

    Example:  turngate mcp --server wiki --url https://wiki.example.com/mcp --listen 127.0.0.1:8090
    """
    with extra("mcp"):
        import turngate.client.mcp.serving  # noqa: F401
    from turngate.client.http import transport
    from turngate.client.mcp.gateway import Asking
    from turngate.client.mcp.proxy import Proxy
    from turngate.client.mcp.serving import Unreachable, connected, serve_http, serve_stdio, serving, while_there
    from turngate.streams.stderr import log_to_stderr

    if bool(command) == (url is not None):
        raise Impossible("name one server: a command behind --, or --url")
    fixed = _acting(room=room, turn=turn, thread=thread, trigger=trigger, request=request, exposed=exposed)
    listening = None if listen is None else _listening(listen)
    log_to_stderr()

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            try:
                carrier = await stack.enter_async_context(transport(gateway))
                upstream = await stack.enter_async_context(connected(command or [], url))
            except (ValueError, Unreachable) as error:
                raise Impossible(str(error)) from None
            asking = Asking(carrier, server, patience)
            proxy = Proxy(server, asking, upstream, call_unnamed=call_unnamed)
            made = serving(proxy, upstream, server, fixed)
            there = await while_there(upstream, serve_stdio(made) if listening is None else serve_http(made, listening))
        if not there:
            raise Impossible("the MCP server has ended: start the proxy again")

    asyncio.run(until_stopped(run()))


def _listening(listen: str) -> socket.socket:
    """A socket on a loopback address. Raises `Impossible` for any other, and where it is not to be had."""
    host, port = place_of(listen)
    if host not in _LOOPBACK:
        raise Impossible(f"--listen {listen}: whoever connects acts for the agent, so it must be a loopback address")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise Impossible(f"--listen {listen}: {error.strerror}") from None


def _acting(*, exposed: str | None, **said: str | None) -> Acting | None:
    """The turn that the options name, None where they name none. Raises `Impossible` for half a turn."""
    from pydantic import ValidationError

    from turngate.client.acting import Acting

    if exposed is None and not any(said.values()):
        return None
    if not said["room"] or not said["turn"]:
        raise Impossible("--room and --turn belong together: give both, or neither, and let each call's `_meta` say it")
    refs = None if exposed is None else [] if exposed == NOTHING else exposed.split()
    try:
        return Acting.model_validate({**{name: value or None for name, value in said.items()}, "exposed": refs})
    except ValidationError as error:
        fields = ", ".join(sorted({f"--{problem['loc'][0]}" for problem in error.errors()}))
        raise Impossible(f"{fields}: see docs/contract.md, section 1, for what these look like") from None
