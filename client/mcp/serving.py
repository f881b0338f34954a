"""Decides how a proxy speaks MCP, to the model's host on one side and to the server on the other.

Only tools pass. A server's prompts, resources, instructions, logs, and its questions to the model or the person are not
passed on: nothing would say what they are evidence of.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, Literal

import anyio
import uvicorn
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ConfigDict, ValidationError

from turngate.client.acting import Acting, acting_of
from turngate.client.mcp.proxy import NOT_ASKED, NOT_MADE, UNKNOWN, Proxy, refusal
from turngate.schemas.shapes import Id

log = logging.getLogger("turngate.mcp")

#: Seconds for which a server's answer is waited for.
PATIENCE = 120.0
#: Bytes of one message of a host.
LINE = 64 << 20
#: Pages of a server's list of tools.
_PAGES = 100
SHARING = "request_memory_sharing"


class Unreachable(Exception):
    """The server cannot be started, or does not answer. The message says what to do."""


class _Sharing(BaseModel):
    """Ask the person of this direct conversation whether one of their memories may be shared. They decide, not you."""

    model_config = ConfigDict(extra="forbid")

    revision: Id
    audience: Literal["workspace", "public"]


class Upstream:
    """The server, connected until the end of `connected`. `gone`: somebody has asked for it after it had ended."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.gone = asyncio.Event()
        self._lost = False

    async def tools(self) -> list[types.Tool]:
        """All its tools. Raises `MCPError` where it does not say."""
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def has(self, tool: str) -> bool:
        """Whether it is there now, and has this tool."""
        try:
            return any(one.name == tool for one in await self.tools())
        except Exception as error:
            log.warning("the server does not say what tools it has (%s)", type(error).__name__)
            self._notice(error)
            return False

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> types.CallToolResult | None:
        """What the server returns, or says is wrong; None where that is not known. It is asked once, whatever comes.

        A server that asks back is not answered.
        """
        try:
            result = await self._client.session.call_tool(
                tool, dict(arguments), read_timeout_seconds=PATIENCE, allow_input_required=True
            )
        except MCPError as error:
            self._notice(error)
            return types.CallToolResult(content=[types.TextContent(text=error.message)], is_error=True)
        except Exception as error:  # the result is no result, or not as the tool's schema has it; it may quote values
            log.warning("the server's answer to %s cannot be used (%s)", tool, type(error).__name__)
            return None
        return result if isinstance(result, types.CallToolResult) else None

    def _notice(self, error: Exception) -> None:
        if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
            self._lost = True  # what is under way is still recorded

    def there(self) -> None:
        """Raises `MCPError` where it is known to have ended."""
        if self._lost:
            self.gone.set()
            raise MCPError(types.CONNECTION_CLOSED, "the server has ended")


@contextlib.asynccontextmanager
async def connected(command: list[str], url: str | None) -> AsyncIterator[Upstream]:
    """The server behind a URL, or started by a command, which gets no setting of Turngate's own.

    Raises `Unreachable`.
    """
    if url is None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
        server: Any = StdioServerParameters(command=command[0], args=command[1:], env=env)
    else:
        server = streamable_http_client(url)
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(Client(server, cache=None, read_timeout_seconds=PATIENCE))
        except Exception:  # whatever it is; its message may hold what the server said
            what = (
                f"{command[0]}: cannot be started as an MCP server" if url is None else "--url: no MCP server answers"
            )
            raise Unreachable(f"{what}; try it alone first") from None
        yield Upstream(client)


def serving(proxy: Proxy, upstream: Upstream, name: str, fixed: Acting | None) -> Server[Any]:
    """The proxy as an MCP server. `fixed`: the turn that every call is of; None: each call's `_meta` says."""

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        upstream.there()
        try:
            tools = [_shown(tool) for tool in await upstream.tools() if tool.name != SHARING]
        except Exception as error:  # its message is the server's
            log.warning("the server does not say what tools it has (%s)", type(error).__name__)
            raise MCPError(types.INTERNAL_ERROR, "the server does not say what tools it has") from None
        sharing = types.Tool(name=SHARING, description=_Sharing.__doc__, input_schema=_Sharing.model_json_schema())
        return types.ListToolsResult(tools=[*tools, sharing])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        upstream.there()
        acting = acting_of(params.meta) if fixed is None else fixed
        if acting is None:
            log.warning("a call of %s names no turn in its `_meta`, and --room none for all: it is not made", name)
            return refusal(NOT_MADE)
        arguments = params.arguments or {}
        try:
            if params.name == SHARING:
                return await _shared(proxy, acting, arguments)
            return await proxy.called(acting, params.name, arguments)
        except Exception as error:  # a fault of ours; its message may quote what the server said
            log.error("a call of %s failed: %s", name, type(error).__name__)
            return refusal(UNKNOWN)

    return Server(f"turngate-{name}", on_list_tools=list_tools, on_call_tool=call_tool)


async def _shared(proxy: Proxy, acting: Acting, arguments: Mapping[str, Any]) -> types.CallToolResult:
    try:
        wanted = _Sharing.model_validate(arguments)
    except ValidationError:
        return refusal(NOT_ASKED)
    return await proxy.share(acting, wanted.revision, wanted.audience)


def _shown(tool: types.Tool) -> types.Tool:
    """A tool as it is passed on: results may be less than its output schema says, and hints are its own word."""
    return types.Tool(name=tool.name, title=tool.title, description=tool.description, input_schema=tool.input_schema)


async def while_there(upstream: Upstream, serve: Awaitable[None]) -> bool:
    """Serve for as long as the server is there, since whoever started the proxy can start both again; whether it is."""
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            await upstream.gone.wait()
            group.cancel_scope.cancel()

        group.start_soon(watch)
        await serve
        group.cancel_scope.cancel()
    return not upstream.gone.is_set()


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one host over standard input and output, until it hangs up."""
    lines: Any = await _standard_input()  # all that is asked of it is its lines
    async with stdio_server(stdin=lines) as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _standard_input() -> AsyncIterator[str]:
    """Its lines, without a thread that waits for one: nobody could stop that before the host says something."""
    reader = asyncio.StreamReader(limit=LINE)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return (line.decode("utf-8", "replace") async for line in reader)


class _Quiet(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """See `uvicorn.Server`."""
        yield


async def serve_http(server: Server[Any], listening: socket.socket) -> None:
    """Serve streamable HTTP at `/mcp` of a loopback address, until cancelled. Web pages are turned away."""
    with contextlib.closing(listening):
        host, port, *_ = listening.getsockname()
        app = server.streamable_http_app(stateless_http=True, json_response=True, host=host)
        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
        log.info("listening on http://%s:%s/mcp", f"[{host}]" if ":" in host else host, port)
        await _Quiet(config).serve(sockets=[listening])
