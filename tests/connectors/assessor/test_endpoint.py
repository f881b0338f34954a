"""An endpoint gets the body and nothing else; whatever it does but answer in time is `uncertain` (R-SEN-2)."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.assessor.server import Answer, Server, labelled, serving
from tests.connectors.assessor.writes import a_write
from turngate.connectors.assessor.assessment import UNCERTAIN, Assessment
from turngate.connectors.assessor.endpoint import MAX_ANSWER, Endpoint, EndpointSettings
from turngate.schemas.inputs import Label
from turngate.streams.kafka.environment import SettingsError, TlsFiles

SECRET = "the zebra is out"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda _: labelled("ordinary")) as made:
        yield made


async def asked(server: Server, seconds: float = 10, **write: object) -> Assessment:
    async with Endpoint(EndpointSettings(server.url)) as endpoint:
        return await endpoint.assess(a_write(SECRET, **write), seconds)


@pytest.mark.parametrize("label", list(Label))
async def test_a_label_is_taken_as_it_is_said(server: Server, label: Label) -> None:
    server.answer = lambda _: labelled(label.value)
    assert await asked(server) == Assessment(label)


async def test_it_gets_write_memory_text_and_kind_and_nothing_else(server: Server) -> None:
    await asked(server, kind="rule", room="slack:T1/D1", turn="t1")
    assert server.came == [{"write": "w1", "memory": "m", "text": SECRET, "kind": "rule"}]
    named = {name.lower() for name in server.headers[0]}
    assert named <= {"host", "accept", "accept-encoding", "connection", "user-agent", "content-length", "content-type"}


async def test_a_note_and_a_question_come_with_it(server: Server) -> None:
    server.answer = lambda _: labelled("sensitive", note="health", ask_author=True, score=0.7)
    assert await asked(server) == Assessment(Label.SENSITIVE, "health", ask_author=True)


MALFORMED: dict[str, Answer] = {
    "another status": (500, {}, b'{"label": "ordinary"}'),
    "accepted is no answer": (202, {}, b'{"label": "ordinary"}'),
    "no JSON": (200, {}, b"ordinary"),
    "nothing": (200, {}, b""),
    "a list": (200, {}, b'["ordinary"]'),
    "no label": (200, {}, b'{"note": "x"}'),
    "a label that there is not": labelled("harmless"),
    "a label of another type": labelled(1),
    "a note of another type": labelled("ordinary", note=7),
    "a note without end": labelled("ordinary", note="x" * 1001),
    "a question of another type": labelled("ordinary", ask_author="no"),
    "no UTF-8": (200, {}, b'{"label": "ordinary", "note": "\xff"}'),
    "too long": (200, {}, b'{"label": "ordinary", "x": "' + b"x" * MAX_ANSWER + b'"}'),
    "not what its encoding says": (200, {"Content-Encoding": "gzip"}, b'{"label": "ordinary"}'),
    "shorter than it says": (200, {"Content-Length": "1000", "Connection": "close"}, b'{"label": "ordinary"}'),
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_answer_is_uncertain(
    server: Server, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    server.answer = lambda _: answer
    with caplog.at_level(logging.DEBUG, "turngate"):
        assert await asked(server, seconds=5) == UNCERTAIN
    assert SECRET not in caplog.text
    assert caplog.records


async def test_texts_go_to_no_other_place_by_a_redirect(server: Server) -> None:
    with serving(lambda _: labelled("ordinary")) as other:
        server.answer = lambda _: (307, {"Location": other.url}, b"")
        assert await asked(server) == UNCERTAIN
        assert other.came == []


async def test_a_slow_answer_is_uncertain_in_time(server: Server) -> None:
    server.held = threading.Event()
    began = time.monotonic()
    assert await asked(server, seconds=0.2) == UNCERTAIN
    assert time.monotonic() - began < 5  # the server would hold it for 30 s


async def test_nobody_there_is_uncertain(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        async with Endpoint(EndpointSettings(url)) as endpoint:
            assert await endpoint.assess(a_write(SECRET), 5) == UNCERTAIN
    assert SECRET not in caplog.text


async def test_proxies_of_the_environment_get_no_text(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: labelled("ordinary")) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert (await asked(server)).label is Label.ORDINARY
        assert proxy.came == []


async def test_a_token_is_sent_and_never_shown(server: Server) -> None:
    settings = EndpointSettings(server.url, token="tok-en")
    async with Endpoint(settings) as endpoint:
        await endpoint.assess(a_write(), 5)
    assert {k.lower(): v for k, v in server.headers[0].items()}["authorization"] == "Bearer tok-en"
    assert "tok-en" not in repr(settings)


async def test_a_text_that_is_no_text_is_null(server: Server) -> None:
    async with Endpoint(EndpointSettings(server.url)) as endpoint:
        await endpoint.assess(a_write(None), 5)
    assert json.dumps(server.came[0]["text"]) == "null"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (EndpointSettings("ftp://x/"), "must be an http:// or https:// URL"),
        (EndpointSettings("http://user:pass@127.0.0.1/"), "must not carry a password"),
        (EndpointSettings("http://labels.example/", token="t"), "would be sent unencrypted"),
        (EndpointSettings("http://127.0.0.1/", TlsFiles(ca=Path("x"))), "a CA file is named"),
        (EndpointSettings("https://127.0.0.1/", TlsFiles(ca=Path("/absent.pem"))), "no such file"),
    ],
)
def test_settings_that_do_not_work_are_said(settings: EndpointSettings, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        settings.check()
    assert "pass@" not in str(refused.value)


def test_texts_that_leave_the_machine_unencrypted_are_known() -> None:
    assert EndpointSettings("http://labels.example/").exposed
    assert not EndpointSettings("https://labels.example/").exposed
    assert not EndpointSettings("http://127.0.0.1:8000/").exposed
