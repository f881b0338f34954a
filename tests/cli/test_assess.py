"""`--assess` on an embedded log, and what `turngate assess` refuses; on a broker, see `test_assess_on_kafka`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import MESSAGE, Line, Turngate, listing, written
from tests.connectors.assessor.writes import ENABLED, a_write
from turngate.streams.clock import now_ms

POLICY: Line = ("PolicyPublished", {"version": "1", "document": ENABLED})
DISABLED: Line = ("PolicyPublished", {"version": "1", "document": ENABLED.replace("true", "false")})


def write(memory: str, text: str) -> Line:
    made = a_write(text, write=f"w-{memory}", memory=memory, revision=f"{memory}@1", room="slack:T1/D1")
    return "MemoryWrite", {k: v for k, v in made.model_dump(mode="json").items() if k not in ("tenant", "at")}


WRITES = (write("plain", "the launch is on Thursday"), write("private", "her salary is 90k"))


def restrictions(turngate: Turngate, log: Path) -> dict[str, Any]:
    shown = turngate("tail", "memory-revisions", "--log", log, "--from", "beginning", "--no-follow", "--json")
    values = [json.loads(line)["value"] for line in shown.stdout.splitlines()]
    return {value["memory"]: value["restrictions"] for value in values}


def test_writes_are_labelled_as_they_are_sent(turngate: Turngate, tmp_path: Path) -> None:  # R-SEN-2
    log = tmp_path / "log"
    day = written(tmp_path / "day", POLICY, listing(now_ms()), MESSAGE, at=now_ms())
    assert turngate("send", day, "--log", log).exit_code == 0
    more = turngate("send", written(tmp_path / "writes", *WRITES, at=now_ms()), "--log", log, "--assess")
    assert (more.exit_code, more.stderr) == (0, "2 records sent\n")
    assert restrictions(turngate, log) == {"plain": [], "private": ["slack:T1/D1"]}


def test_without_it_they_wait(turngate: Turngate, tmp_path: Path) -> None:  # R-SEN-1
    day = written(tmp_path / "day", POLICY, listing(now_ms()), MESSAGE, *WRITES, at=now_ms())
    assert turngate("send", day, "--log", tmp_path / "log").exit_code == 0
    assert restrictions(turngate, tmp_path / "log") == {}


def test_nobody_is_asked_where_the_policy_does_not_enable_it(turngate: Turngate, tmp_path: Path) -> None:  # R-SEN-1
    day = written(tmp_path / "day", DISABLED, listing(now_ms()), MESSAGE, *WRITES, at=now_ms())
    assert turngate("send", day, "--log", tmp_path / "log", "--assess").exit_code == 0
    assert restrictions(turngate, tmp_path / "log") == {"plain": [], "private": []}
    shown = turngate("tail", "memory-writes", "--log", tmp_path / "log", "--from", "beginning", "--no-follow")
    assert "SensitivityAssessed" not in shown.stdout


def test_a_file_is_applied_with_labels_of_its_own_time(turngate: Turngate, tmp_path: Path) -> None:
    day = written(tmp_path / "day", POLICY, listing(now_ms()), MESSAGE, *WRITES, at=now_ms())
    shown = turngate("apply", day, "--assess")
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    revisions = {line["value"]["memory"]: line["value"] for line in lines if line["record"] == "RevisionRecorded"}
    assert (revisions["plain"]["notes"], revisions["private"]["notes"]) == (["ordinary"], ["sensitive"])


def test_a_broker_has_a_process_of_its_own_for_it(turngate: Turngate, tmp_path: Path) -> None:
    day = written(tmp_path / "day", POLICY)
    result = turngate("send", day, "--assess", "--bootstrap-servers", "127.0.0.1:1")
    assert (result.exit_code, result.stderr) == (
        2,
        "turngate: --assess is for an embedded log; on a broker run `turngate assess`\n",
    )


@pytest.mark.parametrize(
    ("arguments", "token", "message"),
    [
        (("--endpoint", "labels.acme.example"), "", "--endpoint: must be an http:// or https:// URL"),
        (("--endpoint", "http://labels.acme.example/"), "t0k", "TURNGATE_ASSESSOR_TOKEN would be sent unencrypted"),
        (("--endpoint", "https://h/", "--endpoint-ca-file", "/absent.pem"), "", "/absent.pem: no such file"),
        ((), "", "no broker: give --bootstrap-servers"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    turngate: Turngate, arguments: tuple[str, ...], token: str, message: str
) -> None:
    result = turngate("assess", *arguments, env={"TURNGATE_ASSESSOR_TOKEN": token})
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "t0k" not in result.stderr
