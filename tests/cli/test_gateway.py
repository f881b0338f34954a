"""`turngate up` and `turngate gateway` as processes: asked over HTTP, on an embedded log, without any server."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import httpx2
import trustme

from tests.cli.conftest import MESSAGE, POLICY, Turngate, listing, written
from tests.gateway.processes import running
from turngate.streams.clock import now_ms

DRAFT = {"turn": "t1", "room": "slack:T1/D1", "trigger": "message:slack:T1/D1/1", "renderings": [{"text": "hello"}]}


def a_day(turngate: Turngate, folder: Path) -> Path:
    """An embedded log on which a draft will be delivered for a minute from now on."""
    at, log = now_ms() - 4000, folder / "turngate.db"
    turngate("apply", written(folder / "day", POLICY, listing(at + 1000), MESSAGE, at=at), "--log", log)
    return log


def a_token(turngate: Turngate, folder: Path) -> tuple[Path, str]:
    file = folder / "tokens.json"
    options = ("--tenant", "acme", "--agent", "mesh", "--scope", "agent", "--tokens-file", file)
    return file, turngate("token", "create", *options).stdout.strip()


def ask(url: str, token: str, body: dict[str, Any]) -> httpx2.Response:
    return httpx2.post(f"{url}/v1/drafts", json=body, headers={"Authorization": f"Bearer {token}"}, timeout=30)


def test_one_process_without_slack_answers_agents(turngate: Turngate, tmp_path: Path) -> None:
    log, (file, token) = a_day(turngate, tmp_path), a_token(turngate, tmp_path)
    command = ("--gateway", "127.0.0.1:0", "--tokens-file", file, "--log", log)
    nobody = tmp_path / "nobody.yaml"
    nobody.write_text("version: 2\n", "utf-8")
    with running(tmp_path, "up", *command, "--shadow", nobody) as (up, url):
        answer = ask(url, token, DRAFT)
        assert (answer.status_code, answer.json()["verdict"]) == (200, "deliver")
        assert ask(url, token[:-1] + "!", DRAFT).status_code == 401
        # Every decision is on record on the same file, while the process has it.
        assert turngate("audit", "verify", "--log", log).exit_code == 0
        assert "may be said (deliver" in turngate("explain", "t1", "--tenant", "acme", "--log", log).stdout
        up.stop()
    with running(tmp_path, "gateway", "--listen", "127.0.0.1:0", *command[2:]) as (gateway, url):
        assert ask(url, token, DRAFT).content == answer.content
        assert ask(url, token, DRAFT | {"thread": "x"}).status_code == 409
        gateway.stop()
    tail = ("tail", "shadow-verdicts", "--log", log, "--from", "beginning", "--no-follow", "--json")
    (shadow,) = (json.loads(line)["value"] for line in turngate(*tail).stdout.splitlines())
    assert (shadow["turn"], shadow["was"]["verdict"], shadow["now"]["verdict"]) == ("t1", "deliver", "drop")
    assert token not in up.said + gateway.said
    assert "hello" not in up.said + gateway.said
    assert "ERROR" not in up.said + gateway.said


def test_it_speaks_https_with_a_certificate(turngate: Turngate, tmp_path: Path) -> None:
    log, (file, token) = a_day(turngate, tmp_path), a_token(turngate, tmp_path)
    authority, pems = trustme.CA(), (tmp_path / "cert.pem", tmp_path / "key.pem")
    made = authority.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(pems[0])
    made.private_key_pem.write_to_path(pems[1])
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    command = ("gateway", "--listen", "127.0.0.1:0", "--tokens-file", file, "--log", log)
    with running(tmp_path, *command, "--tls", *pems) as (gateway, url):
        at, headers = url.replace("http:", "https:"), {"Authorization": f"Bearer {token}"}
        answer = httpx2.post(f"{at}/v1/drafts", json=DRAFT, headers=headers, verify=trusting, timeout=30)
        assert answer.json()["verdict"] == "deliver"
        gateway.stop()
    refused = turngate(*command, "--tls", pems[0], pems[0])
    assert (refused.exit_code, "--tls: not a PEM certificate and its private key" in refused.stderr) == (2, True)
    refused = turngate(*command, "--tls", pems[0], tmp_path / "nothing")
    assert (refused.exit_code, f"{tmp_path / 'nothing'}: No such file" in refused.stderr) == (2, True)


async def test_who_waits_when_it_stops_is_told_to_ask_again(turngate: Turngate, tmp_path: Path) -> None:
    log, (file, token) = a_day(turngate, tmp_path), a_token(turngate, tmp_path)
    command = ("up", "--gateway", "127.0.0.1:0", "--tokens-file", file, "--log", log)
    headers, far = {"Authorization": f"Bearer {token}"}, DRAFT | {"room": "slack:T1/D2"}
    with running(tmp_path, *command) as (up, url):
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30) as agent:
            place = (await agent.post("/v1/drafts?wait=0", json=far)).headers["location"]
            async with agent.stream("GET", place, headers={"Accept": "text/event-stream"}) as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == "event: TurnDecided"
                waiting = asyncio.create_task(agent.post("/v1/drafts", json=far | {"turn": "t2"}))
                tail = ("tail", "turn-drafts", "--log", log, "--from", "beginning", "--no-follow")
                while "turn=t2" not in (await asyncio.to_thread(turngate, *tail)).stdout:
                    assert not waiting.done()
                await asyncio.to_thread(up.stop)
                assert not [line async for line in lines if line.startswith("event:")]
            assert (await waiting).status_code == 202
    assert "Traceback" not in up.said
    assert "ERROR" not in up.said


def test_without_tokens_or_a_free_place_it_says_so(turngate: Turngate, tmp_path: Path) -> None:
    file, _ = a_token(turngate, tmp_path)
    refused = turngate("gateway", "--log", tmp_path / "log")
    assert (refused.exit_code, "nobody may ask: give --tokens-file or --postgres-dsn" in refused.stderr) == (2, True)
    refused = turngate("up", "--gateway", "nowhere", "--tokens-file", file, "--log", tmp_path / "log")
    assert (refused.exit_code, "--gateway nowhere: write HOST:PORT" in refused.stderr) == (2, True)
    with running(tmp_path, "up", "--gateway", "127.0.0.1:0", "--tokens-file", file, "--log", tmp_path / "log") as (
        _,
        url,
    ):
        place = url.removeprefix("http://")
        refused = turngate("gateway", "--listen", place, "--tokens-file", file, "--log", tmp_path / "other")
    assert (refused.exit_code, f"--listen {place}: Address already in use" in refused.stderr) == (2, True)
