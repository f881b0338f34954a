"""Whatever fails, a turn that was not decided raises nothing and says nothing, and no failure makes a second turn."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Self

import pytest
from anyio.from_thread import start_blocking_portal

from tests.client.conftest import HttpPlace, KafkaPlace, Worker, gateway_place
from tests.client.places import ALEX, DIRECT, GENERAL, NOWHERE, InProcessPlace, Office
from tests.gateway.conftest import Keyring, embedded, gateway_on
from tests.kafka.cluster import CODEC
from turngate.client import Unreachable, connect, sync
from turngate.client.kafka import connect as connect_kafka
from turngate.client.testing import Workplace
from turngate.gateway.guard import Limits
from turngate.schemas.outputs import Verdict
from turngate.streams.kafka.feed import KafkaFeed

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9"


class Wire:
    """A way to a gateway that can be cut: nobody gets through until it is mended."""

    def __init__(self, url: str) -> None:
        self._to = int(url.rpartition(":")[2])
        self._open: list[asyncio.StreamWriter] = []
        self._cut = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        self._server.close()

    def cut(self) -> None:
        self._cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self._cut = False

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        if self._cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._open.append(back)
        await asyncio.gather(_pipe(reader, back), _pipe(there, writer), return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_a_connection_that_breaks_is_made_again_and_decides_one_turn_once(tmp_path: Path) -> None:
    async with gateway_place(tmp_path) as place, Wire(place.url) as wire:
        office = Office(place)
        await office.open()
        asked = await office.said(GENERAL, "hello?")
        async with (
            connect(wire.url, token=place.token("mesh")) as gate,
            gate.turn(room=NOWHERE, trigger=asked) as turn,
        ):
            wire.cut()
            saying = asyncio.create_task(turn.say("hello"))
            await asyncio.sleep(0)
            wire.mend()
            await office.until_held(turn.name)
            wire.cut()
            await office.listed(NOWHERE, ALEX)
            wire.mend()
            verdict = await saying
        drafts = await office.place.records("turn-drafts")
        assert (verdict.verdict, verdict.text) == (Verdict.DELIVER, "hello")
        assert [s.text for s in await office.sent()] == ["hello"]
        assert len({draft.model_dump_json() for draft in drafts}) == 1


async def test_a_gateway_that_is_asked_too_often_is_asked_again(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "tokens.json")
    async with embedded(tmp_path / "log") as feed, gateway_on(feed, keyring, Limits(rate=6)) as running:
        office = Office(HttpPlace(running))
        await office.open()
        asked = await office.said(GENERAL, "hello?")

        async def one(number: int) -> str | None:
            async with gate.turn(room=GENERAL, trigger=asked) as turn:
                return (await turn.say(f"text {number}")).text

        async with office.gate() as gate:
            said = await asyncio.gather(*(one(number) for number in range(10)))
        assert said == [f"text {number}" for number in range(10)]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html> hi",
        b'HTTP/1.1 202 Accepted\r\nContent-Length: 31\r\n\r\n{"place": "http://evil.example"}',
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 No\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    ],
)
async def test_an_answer_that_is_none_is_silence(answer: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with (
            connect(f"http://127.0.0.1:{port}", token="secret-token", patience=0.1) as gate,
            gate.turn(room=GENERAL) as turn,
        ):
            context = await turn.context({"message:slack:T1/D1/1": "I fly on the 14th"})
            verdict = await turn.say("hello")
    assert (dict(context), verdict.verdict, verdict.text) == ({}, None, None)


async def test_nobody_there_is_silence_and_whoever_observes_speaks(caplog: pytest.LogCaptureFixture) -> None:
    said = []
    with caplog.at_level(logging.DEBUG):
        for mode in ("enforce", "observe"):
            async with (
                connect(NOBODY, token="secret-token", mode=mode, patience=0.1) as gate,
                gate.turn(room=GENERAL) as turn,
            ):
                context = await turn.context({"message:slack:T1/D1/1": "I fly on the 14th"})
                await turn.tool_returned("diary", "read")
                await turn.remember("Alex flies on the 14th")
                said.append((len(context), (await turn.say("hello")).text))
    assert said == [(0, None), (1, "hello")]
    assert not [word for word in ("secret-token", "hello", "14th") if word in caplog.text]


async def test_a_token_that_is_refused_is_silence_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keyring = Keyring(tmp_path / "tokens.json")
    async with embedded(tmp_path / "log") as feed, gateway_on(feed, keyring) as running:
        async with connect(running.url, token="no-such-token") as gate, gate.turn(room=GENERAL) as turn:
            verdict = await turn.say("hello")
        assert await Office(HttpPlace(running)).place.records("turn-drafts") == []
    assert verdict.text is None
    assert "401" in caplog.text
    assert "no-such-token" not in caplog.text


@pytest.mark.parametrize(
    ("url", "token", "what"),
    [
        ("", "t", "TURNGATE_URL"),
        ("ftp://127.0.0.1", "t", "http"),
        ("http://user:pass@127.0.0.1", "t", "password"),
        ("http://127.0.0.1", "", "TURNGATE_TOKEN"),
        ("http://127.0.0.1", "two\nlines", "TURNGATE_TOKEN"),
        ("http://gateway.example", "t", "unencrypted"),
    ],
)
async def test_what_cannot_be_used_is_said_at_once(url: str, token: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        async with connect(url, token=token):
            pass


async def test_a_url_over_tls_or_expressly_without_is_taken() -> None:
    async with connect("https://gateway.example", token="t"):
        pass
    async with connect("http://gateway.example", token="t", plain_http=True):
        pass


@pytest.mark.parametrize(
    "fields", [{"room": "general"}, {"room": GENERAL, "trigger": "x"}, {"room": GENERAL, "name": ""}]
)
async def test_a_turn_that_no_record_can_hold_is_refused_before_it_begins(
    workplace: Workplace, fields: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"unusable (room|trigger|turn)"):
        workplace.gate().turn(**fields)  # type: ignore[arg-type]


async def test_what_no_record_can_hold_later_is_evidence_that_nobody_has(workplace: Workplace) -> None:
    """And its twin without it is delivered."""
    office = Office(InProcessPlace(workplace))
    await office.listed(GENERAL, ALEX, agents=["mesh"])
    asked = await office.said(GENERAL, "hello?", agents=["mesh"])
    texts = []
    for bad in ("x", None):
        async with workplace.gate().turn(room=GENERAL, trigger=asked) as turn:
            context = await turn.context({asked: "hello?"} | ({} if bad is None else {bad: "what is this"}))
            assert dict(context) == {asked: "hello?"}
            if bad is not None:
                turn.saw(bad)
            texts.append((await turn.say("hello")).text)
    assert texts == [None, "hello"]


async def test_a_tool_result_that_could_not_be_recorded_is_said_to_nobody(workplace: Workplace) -> None:
    office = Office(InProcessPlace(workplace))
    await office.listed(GENERAL, ALEX, agents=["mesh"])
    asked = await office.said(GENERAL, "hello?", agents=["mesh"])
    async with workplace.gate().turn(room=GENERAL, trigger=asked) as turn:
        ref = await turn.tool_returned("web", "get", call="c" * 600)
        assert (await turn.say("hello")).text is None
    assert ref == "tool:" + "c" * 600
    assert workplace.sent == []


@pytest.mark.parametrize("text", ["\ud800", "\udfff with more", None])
async def test_a_text_that_no_record_can_hold_is_not_said(workplace: Workplace, tmp_path: Path, text: str) -> None:
    """And whoever writes one the way that it may be written is heard."""
    async with gateway_place(tmp_path) as place:
        for there in (InProcessPlace(workplace), place):
            office = Office(there)
            await office.listed(GENERAL, ALEX, agents=["mesh"])
            if there is place:
                await place.publish({})
            asked = await office.said(GENERAL, "hello?", agents=["mesh"])
            said = []
            async with there.gate(patience=5) as gate:
                for words in (text, "hello"):
                    async with gate.turn(room=GENERAL, trigger=asked) as turn:
                        context = await turn.context([asked])
                        await turn.remember(words)
                        said.append((await turn.say(context.rendering(words), words)).text)
            assert said == [None, "hello"]


async def test_an_error_of_the_agent_s_own_says_nothing_and_is_its_own(workplace: Workplace) -> None:
    turn = workplace.gate().turn(room=GENERAL)
    with pytest.raises(ZeroDivisionError):
        async with turn:
            raise ZeroDivisionError
    assert workplace.sent == []
    with pytest.raises(RuntimeError, match="async with"):
        await turn.say("hello")


async def test_an_agent_that_is_killed_goes_on_with_the_same_turn(tmp_path: Path) -> None:
    """R-TURN-8: kill -9 while it waits; begun again under the same name it is decided once."""
    async with gateway_place(tmp_path) as place:
        office = Office(place)
        await office.open()
        asked = await office.said(GENERAL, "hello?")
        command = [sys.executable, "-m", "tests.client.agent_process", NOWHERE, asked, "my-own-id", "hello"]
        settings = os.environ | {"TURNGATE_URL": place.url, "TURNGATE_TOKEN": place.token("mesh")}

        async def agent() -> asyncio.subprocess.Process:
            pipe = asyncio.subprocess.PIPE
            return await asyncio.create_subprocess_exec(*command, env=settings, stdout=pipe, cwd=ROOT)

        first = await agent()
        await office.until_held("my-own-id")
        first.kill()
        assert await first.wait() == -9
        await office.listed(NOWHERE, ALEX)
        assert await (await agent()).communicate() == (b"hello\n", None)
        assert await office.decided("my-own-id") == ["hold", "deliver"]
        assert [s.text for s in await office.sent()] == ["hello"]


@pytest.mark.kafka
async def test_a_worker_that_is_killed_decides_when_it_is_back(worker: Worker, unique: str) -> None:
    """R-RUN-4: what was handed in meanwhile is decided once."""
    cluster = worker.cluster
    async with KafkaFeed(cluster.settings, CODEC, cluster.prefix) as feed:
        place = KafkaPlace(feed, unique, cluster)
        office = Office(place)
        await office.open()
        asked = await office.said(GENERAL, "hello?")
        worker.kill()
        async with place.gate(patience=0.3) as gate, gate.turn(room=GENERAL, trigger=asked) as turn:
            silent = await turn.say("hello")
            worker.start()
            final = await turn.final(patience=30)
        assert (silent.verdict, silent.text) == (None, None)
        assert (final.verdict, final.text) == (Verdict.DELIVER, "hello")
        assert [s.text for s in await office.sent()] == ["hello"]


@pytest.mark.kafka
async def test_topics_that_are_not_there_are_said_when_they_are_asked_for(worker: Worker) -> None:
    address = worker.cluster.settings.bootstrap_servers
    with pytest.raises(Unreachable, match="topics"):
        async with connect_kafka(address, tenant="acme", agent="mesh", prefix="of-nobody-"):
            pass


async def test_no_broker_is_said_when_it_is_asked_for() -> None:
    with pytest.raises(Unreachable, match="doctor"):
        async with connect_kafka("127.0.0.1:9", tenant="acme", agent="mesh"):
            pass


def test_the_same_without_an_event_loop(tmp_path: Path) -> None:
    """A program without one asks from any thread; cancelled or not, its turns are the same."""
    with start_blocking_portal() as server, server.wrap_async_context_manager(gateway_place(tmp_path)) as place:
        office = Office(place)
        server.call(office.open)
        private = server.call(office.said, DIRECT, "I fly on the 14th")
        asked = server.call(office.said, GENERAL, "when am I away?")
        with sync.connect(place.url, token=place.token("mesh")) as gate:
            with gate.turn(room=GENERAL, trigger=asked) as turn:
                context = turn.context({private: "Alex flies on the 14th", asked: "when am I away?"})
                turn.tool_returned("wiki", "search", context=context)
                kept = turn.remember("somebody asked when Alex is away")
                verdict = turn.say(context.rendering("I do not know"))
            with gate.turn(room=GENERAL, trigger=asked) as turn:
                turn.saw(private)
                refused = turn.say("from the 14th on")
    assert list(context) == [asked]
    assert kept.revision is not None
    assert (verdict.text, refused.text) == ("I do not know", None)
