"""What answers where a gateway should be is believed nothing, quoted nowhere, and not asked more than it can bear."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.client.places import GENERAL
from turngate.client import Gate, connect

Answer = Callable[[str, bytes], tuple[int, object]]


@asynccontextmanager
async def speaking(answer: Answer, patience: float) -> AsyncIterator[Gate]:
    """A gate to a server that answers a method and a body with a status and JSON."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        status, said = answer(head.decode().split(" ")[0], body)
        value = json.dumps(said).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(value)}\r\n\r\n".encode() + value
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with connect(url, token="t", patience=patience) as gate:
            yield gate


async def test_gateways_that_never_remember_are_told_again_in_measure() -> None:
    """As several are that do not read the same log."""
    asked: list[str] = []

    def answer(method: str, body: bytes) -> tuple[int, object]:
        asked.append(method)
        return (202, {"place": "/v1/answers/x/draft/t"}) if method == "POST" else (404, {})

    async with speaking(answer, 0.8) as gate, gate.turn(room=GENERAL) as turn:
        assert (await turn.say("hello")).text is None
    assert 2 <= asked.count("POST") <= 5


@pytest.mark.parametrize("status", [429, 503, 522, 599])
async def test_a_fault_of_a_server_or_a_proxy_is_asked_again(status: int) -> None:
    """Also one whose number is in no list of HTTP's; what else it says is final."""
    asked: list[str] = []

    def answer(method: str, body: bytes) -> tuple[int, object]:
        asked.append(method)
        return (status, {}) if len(asked) == 1 else (401, {})

    async with speaking(answer, 10) as gate, gate.turn(room=GENERAL) as turn:
        assert (await turn.say("hello")).text is None
    assert len(asked) == 2


@pytest.mark.parametrize("listed", [True, False])
async def test_what_quotes_the_request_is_not_in_the_log(listed: bool, caplog: pytest.LogCaptureFixture) -> None:
    """What an application that is no gateway says of a body that it did not expect has the body in it."""

    def answer(method: str, body: bytes) -> tuple[int, object]:
        return 422, {"detail": [{"loc": ["body"], "input": body.decode()}] if listed else body.decode()}

    with caplog.at_level(logging.DEBUG, "turngate"):
        async with speaking(answer, 10) as gate, gate.turn(room=GENERAL, name="two\nlines") as turn:
            assert (await turn.say("from the 14th on")).text is None
    assert "422" in caplog.text
    assert "14th" not in caplog.text
    assert all(record.getMessage().isprintable() for record in caplog.records)
