"""The commands on a live broker: its topics, records in, a worker, records out."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.broker import Broker
from tests.cli.conftest import AT, INSTALLED, MESSAGE, POLICY, Line, Turngate, installed, listing, written
from tests.gateway.processes import running
from tests.registry import Registry
from turngate.demo.run import SHIPPED
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka

SCENARIO = """\
scenario: A message of a listed room is known.
rules: [R-AUD-5]
steps:
  - room: {room: slack:T1/D1, kind: direct, visibility: members, members: [slack:T1/UALEX]}
  - MessageObserved: {room: slack:T1/D1, message: slack:T1/D1/1, author: slack:T1/UALEX, text: hello}
    expect: [EvidenceRecorded: {status: %s}]
"""


@contextmanager
def worker(bootstrap: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own, ended at the end if it has not ended by itself."""
    command = [INSTALLED, "worker", "--bootstrap-servers", bootstrap, *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def tailed(turngate: Turngate, bootstrap: str, topic: str, *more: str) -> list[dict[str, object]]:
    at = ("--bootstrap-servers", bootstrap, *more)
    shown = turngate("tail", topic, "--from", "beginning", "--no-follow", "--json", *at)
    assert (shown.exit_code, shown.stderr) == (0, "")
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_from_an_empty_broker_to_a_decision(turngate: Turngate, own_broker: Broker, tmp_path: Path) -> None:
    at = ("--bootstrap-servers", own_broker.bootstrap)
    before = turngate("doctor", *at)
    assert before.exit_code == 1
    assert "FAIL topics: the broker has none of Turngate's topics; create them with" in before.stdout
    assert "none of Turngate's topics" in turngate("worker", *at).stderr

    created = turngate("topics", "create", *at, "--partitions", 2)
    assert (created.exit_code, created.stderr) == (0, "")
    assert created.stdout.startswith("23 topics created: membership-refreshes, ")
    assert turngate("topics", "create", *at).stdout == "0 topics created, all of them are there\n"
    assert turngate("doctor", *at).exit_code == 0

    draft: Line = (
        "TurnDrafted",
        {"agent": "mesh", "turn": "t1", "room": "slack:T1/D1", "trigger": "message:slack:T1/D1/1",
         "renderings": [{"text": "hello"}]},
    )  # fmt: skip
    began = now_ms()
    with worker(own_broker.bootstrap) as process:
        for name, line in (("policy", POLICY), ("listing", listing(began)), ("message", MESSAGE), ("draft", draft)):
            sent = turngate("send", written(tmp_path / name, line, at=began), *at)
            assert (sent.exit_code, sent.stderr) == (0, "1 records sent\n")
        deadline = time.monotonic() + 30
        while not (decided := tailed(turngate, own_broker.bootstrap, "turn-verdicts")):
            assert time.monotonic() < deadline, "the worker decided nothing within 30 s"
        (value,) = (d["value"] for d in decided)
        assert isinstance(value, dict)
        assert (value["tenant"], value["turn"], value["verdict"]) == ("acme", "t1", "deliver")
        asked_over_http(turngate, tmp_path, *at)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert [a["record"] for a in tailed(turngate, own_broker.bootstrap, "outbound")] == ["TurnAuthorized"] * 2
    result = {"agent": "mesh", "room": "slack:T1/D1", "call": "c1", "server": "web", "operation": "get", "fields": []}
    assert turngate("send", written(tmp_path / "result", ("ToolReturned", result), at=now_ms()), *at).exit_code == 0
    suggested = turngate("policy", "suggest", "--tenant", "acme", *at)
    assert (suggested.exit_code, suggested.stderr) == (0, "")
    assert "  web: {adapter: mcp, private: true, untrusted: true}" in suggested.stdout.splitlines()


def asked_over_http(turngate: Turngate, folder: Path, *at: object) -> None:
    """A draft is decided through a gateway, and after that one was killed through another: once."""
    file = folder / "tokens.json"
    who = ("--tenant", "acme", "--agent", "mesh", "--scope", "agent", "--tokens-file", file)
    headers = {"Authorization": f"Bearer {turngate('token', 'create', *who).stdout.strip()}"}
    body = {"turn": "t2", "room": "slack:T1/D1", "trigger": "message:slack:T1/D1/1", "renderings": [{"text": "hi"}]}
    answers = []
    for last in (False, True):
        at_once = now_ms()
        fresh: Line = ("MembershipPage", listing(at_once)[1] | {"refresh": f"r{at_once}"})
        assert turngate("send", written(folder / "fresh", fresh, at=at_once), *at).exit_code == 0
        with running(folder, "gateway", "--listen", "127.0.0.1:0", "--tokens-file", file, *at) as (gateway, url):
            answers.append(httpx2.post(f"{url}/v1/drafts", json=body, headers=headers, timeout=30))
            if last:
                gateway.stop()
    assert answers[0].json()["verdict"] == "deliver"
    assert answers[1].content == answers[0].content


def test_with_a_schema_registry_everything_is_in_its_wire_format(
    turngate: Turngate, own_broker: Broker, own_registry: Registry, tmp_path: Path
) -> None:
    at = ("--bootstrap-servers", own_broker.bootstrap, "--registry-url", own_registry.url)
    assert "is not registered" in turngate("doctor", *at).stdout
    created = turngate("topics", "create", *at, "--partitions", 1)
    assert created.stdout.endswith(f"schemas registered at {own_registry.url}\n")
    healthy = turngate("doctor", *at)
    assert healthy.exit_code == 0
    assert f"ok   schema registry: {own_registry.url} answers and has the newest schema" in healthy.stdout

    assert turngate("send", written(tmp_path / "policy", POLICY), *at).exit_code == 0
    there = ("tail", "policies", "--from", "beginning", "--no-follow")
    assert " acme PolicyPublished version=1 " in turngate(*there, *at).stdout
    # whoever does not ask the registry cannot read it, and says so
    assert "no record (no record of the contract), " in turngate(*there, *at[:2]).stdout


def test_an_export_goes_onto_a_broker(turngate: Turngate, own_broker: Broker, tmp_path: Path) -> None:
    at = ("--bootstrap-servers", own_broker.bootstrap)
    assert turngate("topics", "create", *at, "--partitions", 1).exit_code == 0
    assert turngate("import", "slack-export", SHIPPED, *at).exit_code == 0
    assert turngate("import", "slack-export", SHIPPED, "--out", tmp_path / "file").exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "file").read_text("utf-8").splitlines()]
    told = [line["value"]["message"] for line in lines if line["topic"] == "observed-messages"]
    came = [m["value"] for m in tailed(turngate, own_broker.bootstrap, "observed-messages")]
    assert [m["message"] for m in came if isinstance(m, dict)] == told


def test_a_topic_that_is_missing_is_one_sentence(turngate: Turngate, own_broker: Broker) -> None:
    result = turngate("tail", "outbound", "--bootstrap-servers", own_broker.bootstrap)
    assert result.exit_code == 2
    assert result.stderr == "turngate: there is no topic outbound; create the topics with `turngate topics create`\n"


def test_scenarios_run_through_the_worker(turngate: Turngate, kafka: str, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(SCENARIO % "known", "utf-8")
    (tmp_path / "wrong.yaml").write_text(SCENARIO % "unknown", "utf-8")
    arguments = ("scenarios", tmp_path, "--kafka", "--bootstrap-servers", kafka)
    result = turngate(*arguments, env={"TURNGATE_TEST_TIME": "1"})
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith("ok   good: ")
    assert result.stdout.splitlines()[1].startswith("FAIL wrong: ")
    assert result.stdout.endswith("1 passed, 1 failed\n")

    refused = turngate(*arguments, env={"TURNGATE_TEST_TIME": ""})
    assert refused.exit_code == 2
    assert "on loopback, with TURNGATE_TEST_TIME=1" in refused.stderr


def test_a_file_of_events_comes_to_the_same_through_the_worker(turngate: Turngate, kafka: str, tmp_path: Path) -> None:
    draft: Line = (
        "TurnDrafted",
        {"agent": "mesh", "turn": "t1", "room": "slack:T1/D1", "renderings": [{"text": "hi"}]},
    )
    tick: Line = ("Tick", {"tenant": "0"})
    acme = written(tmp_path / "a", POLICY, draft, MESSAGE, listing(AT + 1000), draft).read_text("utf-8")
    later = AT + 60_000
    other = written(tmp_path / "b", POLICY, draft, MESSAGE, tick, tick, tenant="other", at=later).read_text("utf-8")
    ticks = written(tmp_path / "c", tick, at=later + 10_000).read_text("utf-8")
    (tmp_path / "all").write_text(acme + other + ticks, "utf-8")

    embedded = turngate("apply", tmp_path / "all")
    arguments = ("apply", tmp_path / "all", "--kafka", "--bootstrap-servers", kafka)
    result = installed(*arguments, env={"TURNGATE_TEST_TIME": "1"})
    assert (result.returncode, result.stderr) == (0, "")
    # In the same order, and the same but for where the records lay.
    assert placeless(result.stdout) == placeless(embedded.stdout)
    verdicts = [(v["tenant"], v["verdict"]) for record, v in placeless(result.stdout) if record == "TurnDecided"]
    assert {tenant for tenant, _ in verdicts} == {"acme", "other"}
    assert ("other", "hold") in verdicts
    assert verdicts[-1][1] != "hold"  # a tick that stands for every partition ended it

    refused = turngate(*arguments, env={"TURNGATE_TEST_TIME": ""})
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "on loopback, with TURNGATE_TEST_TIME=1" in refused.stderr
    assert "leave --kafka out" in turngate(*arguments, "--log", tmp_path / "log").stderr


def placeless(text: str) -> list[tuple[str, dict[str, object]]]:
    """What was printed, without positions and what is made of them."""
    came = [(x["record"], x["value"]) for x in map(json.loads, text.splitlines())]
    return [
        (record, {k: v for k, v in value.items() if k not in ("as_of", "decided", "previous")})
        for record, value in came
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "create"],
        ["worker"],
        ["tail", "outbound"],
        ["send", "FILE"],
        ["import", "slack-export", str(SHIPPED)],
    ],
)
def test_a_broker_that_is_not_there_is_one_sentence_and_exit_code_2(tmp_path: Path, command: list[str]) -> None:
    records = written(tmp_path / "policy", POLICY)
    whole = [INSTALLED, *(str(records) if c == "FILE" else c for c in command), "--bootstrap-servers", "127.0.0.1:1"]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "127.0.0.1:1" in done.stderr.splitlines()[-1]
    assert "is it running" in done.stderr.splitlines()[-1]
