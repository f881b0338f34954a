"""`turngate events` and `turngate roster` on an embedded log, and what they refuse; on a broker, see the other file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import POLICY, Turngate, written
from tests.cli.slack_commands import running, slack_file
from tests.slack import Slack, Workspace
from turngate.connectors.slack.installing import SCOPES
from turngate.streams.clock import now_ms


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as server:
        yield server


@pytest.fixture
def acme(slack: Slack) -> Workspace:
    home = slack.workspace("T1", bot="UBOT")
    home.user("UALEX")
    slack.channel("C1", home, ["UBOT", "UALEX"], private=True)
    return home


def on_log(turngate: Turngate, log: Path, topic: str) -> list[dict[str, Any]]:
    shown = turngate("tail", topic, "--log", log, "--from", "beginning", "--no-follow", "--json")
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_an_event_and_then_a_listing(turngate: Turngate, slack: Slack, acme: Workspace, tmp_path: Path) -> None:
    log, file = tmp_path / "log", slack_file(tmp_path / "slack.json", acme)
    assert turngate("send", written(tmp_path / "policy", POLICY, at=now_ms()), "--log", log).exit_code == 0
    with running(tmp_path, slack, file, "events", "--listen", "127.0.0.1:0", "--log", log) as events:
        url = "http://" + events.until(r"listening on (\S+)")[1] + "/slack/events"
        slack.say(slack.rooms["C1"], "UALEX", "the zebra is out")
        assert slack.post(slack.queue[0], url).status == 200
        assert slack.post(slack.queue[0], url, X_Slack_Retry_Num="1").status == 200
        assert slack.post(slack.queue[0], url, X_Slack_Signature="v0=00").status == 401
        (message,) = on_log(turngate, log, "observed-messages")
        events.process.kill()  # what was acknowledged is there
    assert message["value"]["text"] == "the zebra is out"
    assert len(on_log(turngate, log, "refresh-requests")) == 1
    with running(tmp_path, slack, file, "roster", "--log", log) as roster:
        roster.until("listing for 1 workspaces")
        slack.wait(lambda: len(slack.called("conversations.info")) == 2, "listing")
        while not (pages := on_log(turngate, log, "membership-refreshes")):
            assert roster.process.poll() is None
        roster.stop()
    assert [(p["value"]["room"], p["value"]["error"], len(p["value"]["members"])) for p in pages] == [
        ("slack:T1/C1", None, 2)
    ]
    assert on_log(turngate, log, "source-evidence")[-1]["value"]["status"] == "known"
    said = events.said + roster.said
    assert "zebra" not in said
    assert acme.token not in said
    assert "ERROR" not in said


def test_over_socket_mode(turngate: Turngate, slack: Slack, acme: Workspace, tmp_path: Path) -> None:
    log, file = tmp_path / "log", slack_file(tmp_path / "slack.json", acme)
    with running(tmp_path, slack, file, "events", "--socket-mode", "--log", log) as events:
        slack.say(slack.rooms["C1"], "UALEX", "hello")
        slack.wait_acknowledged(slack.push(slack.queue[0]))
        (message,) = on_log(turngate, log, "observed-messages")
        events.stop()
    assert message["value"]["text"] == "hello"


def test_when_it_starts_nothing_listed_is_known_to_hold(
    turngate: Turngate, slack: Slack, acme: Workspace, tmp_path: Path
) -> None:
    log, file = tmp_path / "log", slack_file(tmp_path / "slack.json", acme)
    member = {"reader": "slack:T1/UALEX", "kind": "member"}
    page = {"agent": "mesh", "room": "slack:T1/C1", "refresh": "r1", "page": 0, "last": True, "started_at": now_ms()}
    listing = ("MembershipPage", {**page, "info": {"kind": "channel", "visibility": "members"}, "members": [member]})
    assert turngate("send", written(tmp_path / "day", POLICY, listing, at=now_ms()), "--log", log).exit_code == 0
    with running(tmp_path, slack, file, "events", "--listen", "127.0.0.1:0", "--log", log) as events:
        events.until("listening on")
        (_, changed) = on_log(turngate, log, "membership-refreshes")
        events.stop()
    assert (changed["record"], changed["value"]["what"]) == ("RoomChanged", "events may have been missed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("roster",), "no broker: give --bootstrap-servers"),
        (("events", "--log", "LOG"), "give either --listen HOST:PORT or --socket-mode"),
        (("events", "--log", "LOG", "--listen", "x:1", "--socket-mode"), "give either --listen HOST:PORT or"),
        (("events", "--log", "LOG", "--listen", "3000"), "--listen 3000: write HOST:PORT"),
        (("roster", "--log", "LOG", "--slack-api", "http://slack.example/api/"), "tokens would be sent unencrypted"),
        (("roster", "--log", "LOG", "--slack-file", "/absent"), "Slack file /absent: No such file or directory"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    turngate: Turngate, acme: Workspace, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    words = [str(tmp_path / "log") if word == "LOG" else word for word in arguments]
    result = turngate(*words, env={"TURNGATE_SLACK_FILE": str(slack_file(tmp_path / "slack.json", acme))})
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not (tmp_path / "log").exists()


def test_a_file_that_others_may_read(turngate: Turngate, acme: Workspace, tmp_path: Path) -> None:
    file = slack_file(tmp_path / "slack.json", acme, mode=0o644)
    result = turngate("roster", "--log", tmp_path / "log", "--slack-file", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "others may use it (mode 644): chmod 600" in result.stderr


def test_a_link_to_install_with(turngate: Turngate, acme: Workspace, tmp_path: Path) -> None:
    file = slack_file(tmp_path / "slack.json", acme)
    words = ("slack-install", "--tenant", "acme", "--agent", "mesh", "--redirect-url", "https://t.example/slack/oauth",
             "--team", "T1")  # fmt: skip
    refused = turngate(*words, "--app", "A1", "--slack-file", file)
    assert (refused.exit_code, "not its client_id and client_secret" in refused.stderr) == (2, True)
    document = json.loads(file.read_text())
    document["apps"][0] |= {"client_id": "1.2", "client_secret": "s3cr3t"}
    file.write_text(json.dumps(document))
    shown = turngate(*words, "--app", "A1", "--slack-file", file)
    assert shown.stdout.startswith("https://slack.com/oauth/v2/authorize?client_id=1.2&scope=channels%3Aread%2C")
    assert "s3cr3t" not in shown.stdout
    assert turngate(*words, "--app", "A1", "--slack-file", file, "--tenant", "Not one").exit_code == 2


def test_the_doctor_looks_at_each_workspace(turngate: Turngate, slack: Slack, acme: Workspace, tmp_path: Path) -> None:
    acme.scopes = ",".join(SCOPES)
    other, third = slack.workspace("T2", bot="UBOT2"), slack.workspace("T3", bot="UBOT3", enterprise="E1")
    other.scopes = "channels:read,chat:write"
    third.scopes = acme.scopes
    log, file = tmp_path / "log", slack_file(tmp_path / "slack.json", acme, other, third)
    assert turngate("send", written(tmp_path / "policy", POLICY, at=now_ms()), "--log", log).exit_code == 0
    words = ("doctor", "--log", log, "--slack-file", file, "--slack-api", slack.url)
    shown = turngate(*words)
    assert shown.exit_code == 1
    assert "ok   Slack T1: slack:T1/UBOT speaks for agent mesh of acme\n" in shown.stdout
    assert "FAIL Slack T2: its token lacks groups:read, im:read, " in shown.stdout
    assert "FAIL Slack T3: its enterprise is another than Slack says" in shown.stdout
    assert acme.token not in shown.stdout
    acme.installed, other.bot = False, "UOTHER"
    shown = turngate(*words)
    assert "FAIL Slack T1: Slack does not know its token: auth.test: account_inactive\n" in shown.stdout
    assert "FAIL Slack T2: its token is another account's than bot_user says\n" in shown.stdout
    assert "Slack" not in turngate("doctor", "--log", log).stdout
    file.chmod(0o644)
    assert "FAIL Slack: Slack file" in turngate(*words).stdout
