"""`turngate audit`: what it says of a log that nobody touched, of one that somebody did, and of checkpoints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import AT, DAY, DRAFT, INSTALLED, MESSAGE, Turngate, written
from tests.streams.history import history
from tests.streams.test_verifying import live
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import StretchApplied
from turngate.streams.local_log import LocalLog

LATER = (DRAFT[0], DRAFT[1] | {"turn": "t2", "room": "slack:T1/C9"})
LAST = (DRAFT[0], DRAFT[1] | {"turn": "t3", "at": AT + 60_000})
WHOLE = re.compile(r"\d+ traces of 1 tenants, which name \d+ records; 0 chains broken\n")


@pytest.fixture
def log(turngate: Turngate, tmp_path: Path) -> Path:
    """A log of a day with a delivery and a hold."""
    day = written(tmp_path / "day", *DAY, LATER)
    assert turngate("apply", day, "--log", tmp_path / "log").exit_code == 0
    return tmp_path / "log"


@pytest.fixture
def key(turngate: Turngate, tmp_path: Path) -> Path:
    assert turngate("audit", "key", tmp_path / "key").exit_code == 0
    return tmp_path / "key"


def changed(path: Path, topic: str, offset: int, **fields: object) -> None:
    with LocalLog(path) as log:
        (message,) = log.scan(topic, 0, offset, offset + 1)
        record = Codec().decode(message.value).model_copy(update=fields)
        log.erase([replace(message, value=Codec().encode(record))])


def signed(turngate: Turngate, log: Path, key: Path) -> list[object]:
    """The options that name a checkpoint of the log as it stands."""
    made = turngate("audit", "checkpoint", "--log", log, "--key", key, "--out", key.parent / "kept")
    assert (made.exit_code, made.stderr) == (0, "")
    return ["--checkpoint", made.stdout.strip(), "--public-key", f"{key}.pub"]


def test_a_log_that_nobody_touched_is_whole(turngate: Turngate, log: Path, key: Path, tmp_path: Path) -> None:
    result = turngate("audit", "verify", "--log", log)
    assert (result.exit_code, result.stderr) == (0, "")
    assert WHOLE.fullmatch(result.stdout)
    assert turngate("audit", "verify", "--log", log, *signed(turngate, log, key)).stdout == result.stdout
    assert turngate("export", tmp_path / "x", "--log", log).exit_code == 0
    assert turngate("audit", "verify", "--exported", tmp_path / "x").stdout == result.stdout


@pytest.mark.parametrize("topic", ["audit", "turn-verdicts", "outbound"])
def test_the_first_break_is_named(turngate: Turngate, log: Path, topic: str) -> None:
    changed(log, topic, 0, turn="another")
    result = turngate("audit", "verify", "--log", log)
    assert (result.exit_code, result.stderr) == (1, "")
    first, last = result.stdout.splitlines()
    assert first.startswith(f"acme: {topic}[0]@{int(topic == 'audit')} ")
    assert last.endswith("1 chains broken")
    without = turngate("audit", "verify", "--log", log, "--no-outbound")
    assert without.exit_code == int(topic != "outbound")
    told, summary = map(json.loads, turngate("audit", "verify", "--log", log, "--json").stdout.splitlines())
    assert (told["tenant"], told["topic"], told["partition"]) == ("acme", topic, 0)
    assert (summary["tenants"], summary["broken"]) == (1, 1)


def test_an_end_that_is_gone_is_found_with_a_checkpoint(
    turngate: Turngate, log: Path, key: Path, tmp_path: Path
) -> None:
    shutil.copy(log, tmp_path / "before")
    day = written(tmp_path / "later", LAST)
    assert turngate("apply", day, "--log", log).exit_code == 0
    known = signed(turngate, log, key)
    assert turngate("audit", "verify", "--log", log, *known).exit_code == 0
    assert turngate("audit", "verify", "--log", tmp_path / "before").exit_code == 0
    result = turngate("audit", "verify", "--log", tmp_path / "before", *known)
    assert result.exit_code == 1
    assert "its end is missing" in result.stdout


def test_the_last_trace_is_held_by_a_checkpoint(turngate: Turngate, log: Path, key: Path) -> None:
    known = signed(turngate, log, key)
    with LocalLog(log, read_only=True) as there:
        last = there.end("audit", 0) - 1
    changed(log, "audit", last, policy="9")
    assert turngate("audit", "verify", "--log", log).exit_code == 0
    result = turngate("audit", "verify", "--log", log, *known)
    assert (result.exit_code, f"audit[0]@{last} is not the trace that was signed" in result.stdout) == (1, True)


def test_a_checkpoint_goes_on_from_the_one_before(turngate: Turngate, log: Path, key: Path, tmp_path: Path) -> None:
    first = signed(turngate, log, key)
    assert turngate("apply", written(tmp_path / "later", LAST), "--log", log).exit_code == 0
    second = signed(turngate, log, key)
    one, other = (json.loads(Path(str(known[1])).read_text())["partitions"]["0"] for known in (first, second))
    assert one["end"] < other["end"]
    assert one["heads"]["acme"][0] < other["heads"]["acme"][0]
    assert turngate("audit", "verify", "--log", log, *first, *second[:2]).exit_code == 0
    changed(log, "audit", other["end"] - 1, previous="0" * 64)
    made = turngate("audit", "checkpoint", "--log", log, "--key", key, "--out", tmp_path / "fresh")
    assert (made.exit_code, "names another trace" in made.stdout, list((tmp_path / "fresh").iterdir())) == (1, True, [])


def test_no_checkpoint_is_made_of_a_log_whose_end_is_gone(
    turngate: Turngate, log: Path, key: Path, tmp_path: Path
) -> None:
    shutil.copy(log, tmp_path / "before")
    assert turngate("apply", written(tmp_path / "later", LAST), "--log", log).exit_code == 0
    signed(turngate, log, key)
    made = turngate("audit", "checkpoint", "--log", tmp_path / "before", "--key", key, "--out", key.parent / "kept")
    assert (made.exit_code, "its end is missing" in made.stdout) == (1, True)
    assert len(list((key.parent / "kept").iterdir())) == 1


def test_checkpoints_are_made_time_after_time(log: Path, key: Path, tmp_path: Path) -> None:
    options = ["--log", log, "--key", key, "--out", tmp_path / "kept", "--every", "100ms"]
    with subprocess.Popen([INSTALLED, "audit", "checkpoint", *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [process.stdout.readline().strip() for _ in range(3)]
        process.terminate()
    assert sorted(str(path) for path in (tmp_path / "kept").glob("*.json"))[:3] == names
    assert len(set(names)) == 3


def test_a_key_that_is_no_tenants_is_found_and_moves_no_cursor(turngate: Turngate, log: Path) -> None:
    with LocalLog(log) as there:
        there.append("audit", b"\x1b[2J\xff", b"nothing", timestamp=AT)
    result = turngate("audit", "verify", "--log", log)
    assert (result.exit_code, "\x1b" in result.stdout) == (1, False)
    assert "is no record of this topic" in result.stdout


def test_nothing_but_what_was_signed_with_this_key_is_a_checkpoint(
    turngate: Turngate, log: Path, key: Path, tmp_path: Path
) -> None:
    known = signed(turngate, log, key)
    path = Path(str(known[1]))
    body = json.loads(path.read_text())
    body["partitions"]["0"]["heads"] = {}
    others = {"altered": json.dumps(body), "no JSON": "{", "no checkpoint": "[]", "unsigned": '{"format": "x"}'}
    for name, text in others.items():
        (tmp_path / name).write_text(text)
        result = turngate("audit", "verify", "--log", log, "--checkpoint", tmp_path / name, *known[2:])
        assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), name
        assert str(tmp_path / name) in result.stderr
    assert turngate("audit", "key", tmp_path / "other").exit_code == 0
    for public in (tmp_path / "other.pub", key, tmp_path / "none"):
        result = turngate("audit", "verify", "--log", log, *known[:2], "--public-key", public)
        assert (result.exit_code, result.stdout) == (2, "")
    for options in (known[:2], known[2:]):
        assert turngate("audit", "verify", "--log", log, *options).exit_code == 2


def test_a_key_is_its_owners_alone_and_never_made_over_another(turngate: Turngate, key: Path, log: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_text()
    assert turngate("audit", "key", key).exit_code == 2
    assert key.read_text() == secret
    key.chmod(0o644)
    result = turngate("audit", "checkpoint", "--log", log, "--key", key, "--out", key.parent / "kept")
    assert (result.exit_code, "chmod 600" in result.stderr) == (2, True)
    assert not any(line in result.stderr for line in secret.splitlines())


def test_another_tools_key_signs_too(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    made, public = tmp_path / "theirs", tmp_path / "theirs.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", made], check=True)
    subprocess.run(["openssl", "pkey", "-in", made, "-pubout", "-out", public], check=True)
    assert turngate("audit", "verify", "--log", log, *signed(turngate, log, made)).exit_code == 0


def test_what_is_older_than_the_topic_is_said(turngate: Turngate, log: Path, tmp_path: Path) -> None:
    with LocalLog(tmp_path / "cut") as made, LocalLog(log, read_only=True) as there:
        for topic in there.topics():
            for m in there.scan(topic):
                if topic not in ("audit", "turn-verdicts") or m.offset > 0:
                    made.append(topic, m.key, m.value, timestamp=m.timestamp, headers=m.headers, offset=m.offset)
    assert turngate("export", tmp_path / "x", "--log", tmp_path / "cut").exit_code == 0
    for part in (tmp_path / "x").glob("*/0/*.avro"):  # as what was exported after retention begins
        if part.parts[-3] in ("audit", "turn-verdicts"):
            part.rename(part.with_name(part.name.replace("0" * 20, f"{1:020}", 1)))
    result = turngate("audit", "verify", "--exported", tmp_path / "x")
    assert (result.exit_code, result.stderr.splitlines()[:2]) == (
        0,
        ["audit[0] begins at 1: what was before is gone", "acme: audit[0]: the chain begins at number 2"],
    )


@pytest.mark.parametrize("engine", ["4", "5"])
def test_decisions_of_an_engine_that_traced_nothing_are_no_break(
    turngate: Turngate, log: Path, tmp_path: Path, engine: str
) -> None:
    with LocalLog(tmp_path / "old") as old, LocalLog(log, read_only=True) as there:
        for m in (m for topic in there.topics() if topic != "audit" for m in there.scan(topic)):
            record = Codec().decode(m.value)
            decided = record.model_copy(update={"engine": engine}) if isinstance(record, StretchApplied) else record
            old.append(m.topic, m.key, Codec().encode(decided), timestamp=m.timestamp, headers=m.headers)
    result = turngate("audit", "verify", "--log", tmp_path / "old")
    if engine == "4":
        assert (result.exit_code, "were not checked" in result.stderr) == (0, True)
    else:
        assert (result.exit_code, "turn-verdicts[0]@0 has no trace" in result.stdout) == (1, True)


def test_an_erasure_leaves_the_chain_as_it_was(turngate: Turngate, log: Path, key: Path, tmp_path: Path) -> None:
    known = signed(turngate, log, key)
    forgotten = turngate(
        "forget", "--reader", MESSAGE[1]["author"], "--tenant", "acme", "--operator", "ops", "--log", log
    )
    assert forgotten.exit_code == 0
    assert "the texts of" in forgotten.stdout
    assert turngate("apply", written(tmp_path / "later", LAST), "--log", log).exit_code == 0
    result = turngate("audit", "verify", "--log", log, *known)
    assert (result.exit_code, result.stderr) == (0, "")
    assert WHOLE.fullmatch(result.stdout)


def test_a_long_history_is_whole(tmp_path: Path) -> None:
    with LocalLog(tmp_path / "log") as there:
        live(there, history(300), together=20)
    said = subprocess.run(
        [INSTALLED, "audit", "verify", "--log", tmp_path / "log"], capture_output=True, text=True, check=True
    )
    assert int(said.stdout.split()[0]) >= 300
    assert "; 0 chains broken" in said.stdout
