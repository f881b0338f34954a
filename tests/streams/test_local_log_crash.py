"""The embedded log after a crash: nothing acknowledged is lost, nothing is half there."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.streams.committing import PADDING, commit
from turngate.streams.local_log import LocalLog


def whole_commits(path: Path) -> int:
    """How many commits the log holds, each of them whole."""
    with LocalLog(path) as log:
        checkpoint = log.checkpoint(0)
        n = checkpoint.positions["ticks"]
        numbers = [b"%d" % i + PADDING for i in range(1, n + 1)]
        assert [m.value for m in log.scan("ticks")] == numbers
        assert [m.value for m in log.scan("turn-verdicts")] == numbers
        entries = dict(checkpoint.entries)
        assert entries == ({b"last": b"%d" % n, b"padding": numbers[-1]} if n else {})
        return n


def test_a_process_killed_while_it_commits_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "test.log"
    random_ = random.Random(3)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.streams.committing", str(path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        acknowledged = 0
        for _ in range(random_.randrange(5, 60)):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)  # it is in the middle of a later commit
        acknowledged = int([acknowledged, *process.stdout.read().split()][-1])
        assert process.wait() == -signal.SIGKILL
        assert acknowledged <= whole_commits(path) <= acknowledged + 1


def test_a_full_disk_is_said_in_words_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """The child's files may not grow beyond a limit, which the system reports as it reports a full disk."""
    path = tmp_path / "test.log"
    command = [sys.executable, "-m", "tests.streams.committing", str(path), "500000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"LogError: {path}: the log cannot be used: " in ended.stderr.splitlines()[-1]
    acknowledged = len(ended.stdout.split())
    assert acknowledged > 10
    assert acknowledged <= whole_commits(path) <= acknowledged + 1


def test_a_log_cut_at_any_byte_of_a_commit_holds_every_commit_before(tmp_path: Path) -> None:
    """What a power cut can leave: the file and its `-wal` up to some byte, no more."""
    path, wal = tmp_path / "test.log", tmp_path / "test.log-wal"
    ends = []
    with LocalLog(path) as log:
        for n in range(1, 6):
            commit(log, n)
            ends.append(wal.stat().st_size)
        shutil.copy(path, tmp_path / "disk")
        written = wal.read_bytes()
    # Frames are cut at every byte of their headers' neighbourhood, and at many of the bytes between.
    cuts = {end + near for end in ends for near in (-4096, -25, -1, 0)} | set(range(0, len(written), 1361))
    seen = set()
    for cut in sorted(c for c in cuts if 0 <= c <= len(written)):
        cut_path = tmp_path / "cut.log"
        shutil.copy(tmp_path / "disk", cut_path)
        cut_path.with_name("cut.log-wal").write_bytes(written[:cut])
        held = whole_commits(cut_path)
        assert held == sum(end <= cut for end in ends), f"cut at byte {cut}"
        seen.add(held)
    assert seen == set(range(6))
