"""What the world does to a command (a full disk, a device, a name that is no text) is one line and exit code 2.

On Linux, whose devices these are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DAY, INSTALLED, installed, written

FULL = Path("/dev/full")
ENDLESS = Path("/dev/zero")

POLICY = "version: 1\nagents: {mesh: {accounts: ['slack:T1/UBOT']}}\n"


@pytest.mark.parametrize("command", ["--help", "--version", "apply", "tail", "policy check", "import", "scenarios"])
def test_what_is_written_to_a_full_disk_is_no_answer(command: str, tmp_path: Path) -> None:
    day, log = written(tmp_path / "day.jsonl", *DAY), tmp_path / "log"
    assert installed("apply", day, "--log", log).returncode == 0
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "one.yaml").write_text("scenario: Nothing happens.\nrules: [R-TIME-1]\nsteps: [wait: 1s]\n")
    shipped = Path(__file__).parents[2] / "demo" / "export"
    arguments = {
        "apply": ["apply", day],
        "tail": ["tail", "turn-verdicts", "--log", log, "--from", "beginning", "--no-follow"],
        "policy check": ["policy", "check", tmp_path / "policy.yaml"],
        "import": ["import", "slack-export", shipped, "--out", "-"],
        "scenarios": ["scenarios", tmp_path / "one.yaml"],
    }.get(command, [command])
    with FULL.open("w") as full:
        done = subprocess.run([INSTALLED, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "turngate: No space left on device"
    assert "Traceback" not in done.stderr
    assert installed(*arguments).returncode == 0


def test_a_file_that_cannot_be_read_to_its_end_is_no_answer() -> None:
    for command in (["apply"], ["policy", "check"], ["send", "--log", "log"]):
        done = installed(*command, "/proc/self/mem")  # opens, and gives an error instead of bytes
        assert (done.returncode, done.stderr) == (2, "turngate: Input/output error\n")


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        (["apply"], "line 1: is longer than 33554432 bytes", 2),
        (["policy", "check"], "line 1: the document has more than 500000 characters", 1),
        (["policy", "diff", ENDLESS], "line 1: the document has more than 500000 characters", 2),
    ],
)
def test_a_file_without_an_end_is_read_no_farther_than_it_counts(command: list[str], said: str, code: int) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({2**30}, {2**30})); "
    run = [sys.executable, "-c", limited + "from turngate.cli.main import main; main()", *map(str, command), ENDLESS]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (code, f"{'' if code == 1 else 'turngate: '}{ENDLESS}: {said}\n")


def test_a_name_that_is_no_text_changes_no_answer(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    policy = os.fsdecode(folder + b"/p\xff.yaml")
    Path(policy).write_text(POLICY)
    scenario = os.fsdecode(folder + b"/s\xff.yaml")
    Path(scenario).write_text("scenario: Nothing happens.\nrules: [R-TIME-1]\nsteps: [wait: 1s]\n")
    log = os.fsdecode(folder + b"/l\xff")
    checked = installed("policy", "check", policy)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith(rf"{tmp_path}/p\udcff.yaml: valid, version 1")
    ran = installed("scenarios", scenario)
    assert (ran.returncode, ran.stdout) == (0, "ok   s\\udcff: Nothing happens.\n1 passed, 0 failed\n")
    applied = installed("apply", written(tmp_path / "day.jsonl", *DAY), "--log", log)
    assert (applied.returncode, applied.stderr) == (0, "")
    assert Path(log).exists()
    read = ("tail", "turn-verdicts", "--log", log, "--from", "beginning", "--no-follow", "--tenant")
    assert '"turn": "t1"' in installed(*read, "acme", "--json").stdout
    nobody = installed(*read, os.fsdecode(b"acme\xff"))
    assert (nobody.returncode, nobody.stdout, nobody.stderr) == (0, "", "")


def test_a_name_is_no_command_to_the_terminal(tmp_path: Path) -> None:
    """Names of files, such as those in an archive that somebody sent, are shown and not obeyed."""
    done = installed("apply", tmp_path / "\x1b[2J\r\x1b]0;owned\x07.jsonl")
    assert done.returncode == 2
    assert done.stderr.endswith("\\x1b[2J\\r\\x1b]0;owned\\x07.jsonl: No such file or directory\n")
    export = tmp_path / "export"
    shutil.copytree(Path(__file__).parents[2] / "demo" / "export", export)
    channels, name = export / "channels.json", "\x1b[2J"
    channels.write_text(
        channels.read_text("utf-8").replace('"name": "general"', f'"name": {json.dumps(name)}'), "utf-8"
    )
    (export / "general").rename(export / name)
    next((export / name).iterdir()).write_text("not JSON")
    done = installed("import", "slack-export", export, "--out", tmp_path / "out", "--keep-going")
    assert "left out, broken: \\x1b[2J/" in done.stderr
    assert "\x1b" not in done.stderr
