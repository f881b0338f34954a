"""`turngate doctor`: what can be reached and what is misconfigured, in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import DAY, DRAFT, MESSAGE, POLICY, Line, Turngate, written
from turngate.streams.clock import now_ms

NO_KEYS = "-    keys: none, so nobody is offered to share; make some with `turngate keys new FILE`"


def test_an_embedded_log_in_order_is_exit_code_0(turngate: Turngate, tmp_path: Path) -> None:
    turngate("send", written(tmp_path / "day.jsonl", *DAY), "--log", tmp_path / "log")
    result = turngate("doctor", "--log", tmp_path / "log")
    assert result.exit_code == 0
    assert result.stdout == (
        f"ok   embedded log: {tmp_path / 'log'}: 1 partition(s), 0 record(s) not yet applied\n{NO_KEYS}\n"
    )


def test_a_log_that_is_none_is_exit_code_1(turngate: Turngate, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no log at all " * 100)
    for name in ("text", "absent"):
        result = turngate("doctor", "--log", tmp_path / name)
        assert result.exit_code == 1
        assert result.stdout.startswith(f"FAIL embedded log: {tmp_path / name}: ")


def test_nothing_configured_is_a_failure_that_says_what_to_give(turngate: Turngate) -> None:
    result = turngate("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "FAIL broker: no broker: give --bootstrap-servers or TURNGATE_BOOTSTRAP_SERVERS (host:port,…)",
        "-    schema registry: not configured",
        "-    Postgres: not configured",
        NO_KEYS,
    ]


def test_everything_out_of_reach_is_said_one_by_one(turngate: Turngate) -> None:
    result = turngate(
        "doctor", "--bootstrap-servers", "127.0.0.1:1", "--registry-url", "http://127.0.0.1:1",
        "--postgres-dsn", "postgresql://u:geheim@127.0.0.1:1/x",
    )  # fmt: skip
    assert result.exit_code == 1
    broker, registry, postgres, _ = result.stdout.splitlines()
    assert broker.startswith("FAIL broker: no broker answers at 127.0.0.1:1 by PLAINTEXT: is it running")
    assert registry.startswith("FAIL schema registry: no schema registry answered at http://127.0.0.1:1 ")
    assert postgres.startswith("FAIL Postgres: does not let us in: ")
    assert "geheim" not in result.output


def test_a_database_that_answers_is_said_to_with_its_version(turngate: Turngate, postgres: str) -> None:
    result = turngate("doctor", "--postgres-dsn", postgres)
    assert re.search(r"^ok   Postgres: answers, version \d+\.\d+, unencrypted$", result.stdout, re.MULTILINE)


def test_a_setting_that_contradicts_another_is_named(turngate: Turngate) -> None:
    result = turngate("doctor", "--bootstrap-servers", "127.0.0.1:1", "--sasl-user", "me")
    assert "FAIL broker: SASL_SSL needs TURNGATE_SASL_USER and TURNGATE_SASL_PASSWORD" in result.stdout


def test_a_misspelled_variable_is_named(turngate: Turngate, tmp_path: Path) -> None:
    turngate("send", written(tmp_path / "day.jsonl", *DAY), "--log", tmp_path / "log")
    meant = {"TURNGATE_SASL_PASSWORD": "geheim", "TURNGATE_TEST_TIME": "1", "TURNGATE_TOKEN": "tg_a_b"}
    assert turngate("doctor", "--log", tmp_path / "log", env=meant).exit_code == 0
    result = turngate("doctor", "--log", tmp_path / "log", env=meant | {"TURNGATE_BOOTSTRAP_SERVER": "x"})
    assert result.exit_code == 1
    first, second, _ = result.stdout.splitlines()
    assert first == "FAIL settings: TURNGATE_BOOTSTRAP_SERVER is no setting of Turngate's; it has no effect"
    assert second.startswith("ok   embedded log")


def test_keys_are_told_by_their_id_and_never_shown(turngate: Turngate, tmp_path: Path) -> None:
    turngate("send", written(tmp_path / "day.jsonl", *DAY), "--log", tmp_path / "log")
    assert turngate("keys", "new", tmp_path / "keys").exit_code == 0
    secret = json.loads((tmp_path / "keys").read_text())["keys"]["1"]["*"]
    for named in ({"TURNGATE_KEYS_FILE": str(tmp_path / "keys")}, {"TURNGATE_KEYS": (tmp_path / "keys").read_text()}):
        result = turngate("doctor", "--log", tmp_path / "log", env=dict.fromkeys(("TURNGATE_KEYS",), "") | named)
        assert (result.exit_code, result.stdout.splitlines()[-1]) == (
            0,
            "ok   keys: key 1 is current, for every tenant",
        )
        assert secret not in result.output
    (tmp_path / "keys").chmod(0o644)
    loose = turngate("doctor", "--log", tmp_path / "log", "--keys-file", tmp_path / "keys")
    assert loose.exit_code == 1
    assert f"FAIL keys: keys file {tmp_path / 'keys'}: others may use it (mode 644): chmod 600" in loose.stdout


def test_what_bots_cost(turngate: Turngate, tmp_path: Path) -> None:  # R-ROOM-7
    began, rooms = now_ms(), ("slack:T1/LOUD", "slack:T1/QUIET")
    listings: list[Line] = []
    for room, bots in zip(rooms, (["slack:T1/UAPP"], []), strict=True):
        members = [{"reader": "slack:T1/UALEX", "kind": "member"}, *({"reader": bot, "kind": "bot"} for bot in bots)]
        info = {"kind": "channel", "visibility": "workspace", "workspaces": ["slack:T1"]}
        page = {"agent": "mesh", "room": room, "refresh": room, "page": 0, "last": True, "started_at": began}
        listings.append(("MembershipPage", {**page, "info": info, "members": members}))
    messages: list[Line] = [("MessageObserved", MESSAGE[1] | {"room": r, "message": f"{r}/1"}) for r in rooms]
    refs = [f"message:{room}/1" for room in rooms]
    draft = DRAFT[1] | {"room": rooms[0], "trigger": refs[0], "exposed": refs[1:]}
    day = written(tmp_path / "day", POLICY, *listings, *messages, ("TurnDrafted", draft), at=began)
    assert turngate("send", day, "--log", tmp_path / "log").exit_code == 0
    shown = turngate("doctor", "--bots", "--log", tmp_path / "log")
    assert shown.stdout.splitlines()[-1] == (
        "-    bots: slack:T1/LOUD: 1 turns refused for who reads it; of these 1 pass for agent mesh of acme if "
        "trusted_bots lists slack:T1/UAPP"
    )
    assert "bots:" not in turngate("doctor", "--log", tmp_path / "log").stdout


def test_rooms_that_take_too_long_to_list(turngate: Turngate, tmp_path: Path) -> None:  # R-DLV-1
    at = now_ms()
    took = {"slack:T1/C1": (7_000, 6_000), "slack:T1/C2": (7_000, 4_999)}  # the second only once
    listings: list[Line] = []
    for room, times in took.items():
        for number, time in enumerate(times):
            page = {"agent": "mesh", "room": room, "refresh": f"{room}{number}", "page": 0, "last": True}
            listings.append(("MembershipPage", {**page, "at": at, "started_at": at - time, "members": []}))
    failed = {"agent": "mesh", "room": "slack:T1/C3", "refresh": "r", "page": 0, "last": True, "error": "timeout"}
    listings.append(("MembershipPage", {**failed, "started_at": at - 9_000}))
    turngate("send", written(tmp_path / "day", POLICY, *listings, at=at), "--log", tmp_path / "log")
    shown = turngate("doctor", "--rooms", "--log", tmp_path / "log")
    (line,) = (line for line in shown.stdout.splitlines() if line[5:].startswith("rooms:"))
    assert line.startswith("FAIL rooms: slack:T1/C1 of acme takes 6 s to list, and freshness.delivery is 5 s: nothing")
    assert shown.exit_code == 1
    turngate("send", written(tmp_path / "quiet", POLICY, at=at), "--log", tmp_path / "quick")
    shown = turngate("doctor", "--rooms", "--log", tmp_path / "quick")
    assert "ok   rooms: each that was listed was listed within freshness.delivery" in shown.stdout
    assert shown.exit_code == 0
