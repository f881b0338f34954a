"""`turngate mcp` as a process: over stdio and over HTTP, and killed between its claim and its record."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
import yaml
from mcp import Client, MCPError, StdioServerParameters

from tests.cli.conftest import INSTALLED, Turngate, installed
from tests.cli.processes import Running as Process
from tests.client.mcp import shop as shop_module
from tests.client.mcp.conftest import META, TURN, shop_gateway, shown, text_of, token
from tests.client.mcp.shop import calls, shop
from tests.gateway.conftest import ROOM, TRIGGER, Running, on_log
from turngate.client.mcp.proxy import BEGUN, NOT_MADE, REF
from turngate.schemas.inputs import ToolReturned, TurnDelivered

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "mcp"
#: The environment of a host is not passed on by itself.
PATHS = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
ORDER = {"invoice": "INV-7", "amount": "120.00"}


@asynccontextmanager
async def shop_over_http() -> AsyncIterator[str]:
    """The shop's URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = shop.streamable_http_app(stateless_http=True, json_response=True)
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def proxy(folder: Path, running: Running, url: str, shown_token: str) -> AsyncIterator[tuple[Process, str]]:
    """A proxy over HTTP on both sides, until the end of the block, and where it answers."""
    said = folder / "mcp.said"
    env = {**os.environ, "TURNGATE_URL": running.url, "TURNGATE_TOKEN": shown_token}
    command = [str(INSTALLED), "mcp", "--server", "shop", "--url", url, "--listen", "127.0.0.1:0"]
    with said.open("wb") as out, subprocess.Popen(command, stderr=out, env=env) as process:  # noqa: ASYNC220
        made = Process(process, said)
        try:
            yield made, (await asyncio.to_thread(made.until, r"listening on (\S+)"))[1]
        finally:
            process.kill()


async def call(url: str, tool: str, arguments: dict[str, Any], **more: Any) -> Any:
    async with Client(url, cache=None, mode="2026-07-28") as host:
        meta: Any = {META: TURN | more}
        return await host.call_tool(tool, arguments, meta=meta)


async def deliveries(running: Running) -> list[str]:
    return [r.status.value for r in await on_log(running.feed, "deliveries") if isinstance(r, TurnDelivered)]


async def test_killed_between_its_claim_and_its_record_it_never_calls_twice(
    shopped: Running, counted: Path, tmp_path: Path
) -> None:
    """R-DLV-2: once while the call is under way, once as soon as the claim is on the log, wherever it is then."""
    own = token(shopped)
    async with shop_over_http() as url:
        async with proxy(tmp_path, shopped, url, own) as (_, place):
            read = await call(place, "read", {"invoice": "INV-7"})
        known = {"exposed": [read.meta[REF]], "evidence": dict.fromkeys(ORDER, read.meta[REF])}
        for number, (tool, arguments) in enumerate((("hang", {"invoice": "INV-7"}), ("refund", ORDER)), start=1):
            async with proxy(tmp_path, shopped, url, own) as (process, place):
                calling = asyncio.create_task(call(place, tool, arguments, **known))
                while (await deliveries(shopped)).count("uncertain") < number or (
                    tool == "hang" and "hang" not in calls(counted)
                ):
                    assert not calling.done(), calling
                    await asyncio.sleep(0)
                process.process.kill()
                with pytest.raises((MCPError, httpx2.HTTPError, ExceptionGroup)):
                    await calling
            async with proxy(tmp_path, shopped, url, own) as (_, place):
                assert text_of(await call(place, tool, arguments, **known)) == BEGUN
        assert calls(counted).count("hang") == 1
        assert calls(counted).count("refund") <= 1
        assert "sent" not in (await deliveries(shopped))[:1]
        async with proxy(tmp_path, shopped, url, own) as (_, place):  # the twin: nobody is killed
            assert not (await call(place, "refund", ORDER, call="again", **known)).is_error
        assert (await deliveries(shopped))[-1] == "sent"


async def test_over_stdio_the_server_gets_none_of_its_settings_and_the_host_none_of_the_secrets(
    shopped: Running, counted: Path, tmp_path: Path
) -> None:
    env = {
        "TURNGATE_URL": shopped.url,
        "TURNGATE_TOKEN": token(shopped),
        "TURNGATE_ROOM": ROOM,
        "TURNGATE_TURN": "desk",
        "TURNGATE_TRIGGER": TRIGGER,
        "TURNGATE_EXPOSED": "nothing",
        "SHOP_CALLS": str(counted),
        **PATHS,
    }
    note = f"import os, runpy; open({str(tmp_path / 'env')!r}, 'w').write(str(sorted(os.environ)));"
    server = [sys.executable, "-c", f"{note} runpy.run_path({shop_module.__file__!r}, run_name='__main__')"]
    host = StdioServerParameters(command=str(INSTALLED), args=["mcp", "--server", "shop", "--", *server], env=env)
    async with Client(host, cache=None) as client:
        read = await client.call_tool("read", {"invoice": "INV-7"})
        assert "key" not in shown(read)
        assert not (await client.call_tool("refund", ORDER)).is_error
        ended = await client.call_tool("die", {})  # the proxy ends too, and its host can start both again
        assert ended.is_error
        with pytest.raises(MCPError):
            await client.list_tools()
    results = [r for r in await on_log(shopped.feed, "tool-results") if isinstance(r, ToolReturned)]
    assert [(r.room, r.turn, r.operation) for r in results] == [
        (ROOM, "desk", "read"),
        (ROOM, "desk", "refund"),
        (ROOM, "desk", "die"),
    ]
    assert await deliveries(shopped) == ["uncertain", "sent"]
    assert "TURNGATE" not in (tmp_path / "env").read_text("utf-8")


async def test_the_example_of_the_documentation_does_what_it_says(tmp_path: Path) -> None:
    """Its configuration, its policy and its server, with a gateway's address and token, and somebody's message."""
    policy = yaml.safe_load((EXAMPLE / "policy.yaml").read_text("utf-8"))
    (host,) = json.loads((EXAMPLE / "claude_desktop_config.json").read_text("utf-8"))["mcpServers"].values()
    async with shop_gateway(tmp_path, **{name: policy[name] for name in ("tools", "operations", "skills")}) as running:
        at = {"TURNGATE_URL": running.url, "TURNGATE_TOKEN": token(running), "TURNGATE_TRIGGER": TRIGGER}
        command, *python = [str(INSTALLED), *host["args"]]
        arguments = [sys.executable if one == "python" else one for one in python]
        started = StdioServerParameters(
            command=command, args=arguments, env={**host["env"], **PATHS, **at}, cwd=EXAMPLE
        )
        async with Client(started, cache=None) as client:
            order = shown(await client.call_tool("read_order", {"order": "A-1001"}))
            assert order == {"order": "A-1001", "amount": "120.00", "customer": {"name": "Robin Doe"}}
            made_up = await client.call_tool("refund", {"order": "A-1001", "amount": "450.00"})
            assert text_of(made_up) == NOT_MADE
            assert (
                text_of(await client.call_tool("refund", {"order": "A-1001", "amount": "120.00"})) == "120.00 paid back"
            )
        assert await deliveries(running) == ["uncertain", "sent"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name one server: a command behind --, or --url"),
        (["--url", "http://127.0.0.1:1/mcp", "--", "x"], "name one server"),
        (["--listen", "0.0.0.0:0", "--", "x"], "it must be a loopback address"),
        (["--room", ROOM, "--", "x"], "--room and --turn belong together"),
        (["--room", "C1", "--turn", "t", "--", "x"], "--room: see docs/contract.md"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(turngate: Turngate, arguments: list[str], said: str) -> None:
    done = turngate("mcp", "--server", "shop", *arguments)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "/no/such/server"], "/no/such/server: cannot be started as an MCP server"),
        (["--gateway", "http://example.com", "--", "x"], "the token would be sent unencrypted"),
    ],
)
def test_what_is_not_to_be_had_is_said_as_the_last_line(arguments: list[str], said: str) -> None:
    done = installed("mcp", "--server", "shop", *arguments, env={"TURNGATE_TOKEN": "tg_x"})
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
