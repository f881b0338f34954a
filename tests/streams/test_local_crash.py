"""The embedded runtime killed at any moment: what comes out in the end is what would have come without it (R-RUN-4)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from tests.streams.world import READERS, ROOMS, Input, draft, listing, message, policy, ref
from turngate.schemas.catalog import OUTPUT_TOPICS
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import Append, LocalLog


def many_turns(count: int) -> list[Input]:
    """Messages, each of them answered by a turn in its own room."""
    given = [policy(0), listing(1, ROOMS[0], READERS[:2])]
    for n in range(count):
        given += [message(10 + n, ROOMS[0], n), draft(10 + n, ROOMS[0], f"t{n}", (ref(ROOMS[0], n),))]
    return given


def filled(path: Path | None) -> LocalLog:
    log = LocalLog(path)
    log.append_many(Append(i.topic, i.key, i.value, i.timestamp) for i in many_turns(150))
    return log


def test_a_runtime_that_is_killed_again_and_again_leaves_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "test.log"
    filled(path).close()
    random_ = random.Random(5)
    killed = 0
    while True:
        process = subprocess.Popen([sys.executable, "-m", "tests.streams.stepping", str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(random_.randrange(10, 30)):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.stdout.close()
        if process.wait() == 0:
            break  # it had ended by itself
        killed += 1
    assert killed > 2
    with LocalLog(path) as log, filled(None) as reference:
        for _ in LocalRuntime(reference).steps(records=3):
            pass
        assert LocalRuntime(log).step() == []
        for topic in OUTPUT_TOPICS:
            assert [m.value for m in log.scan(topic)] == [m.value for m in reference.scan(topic)]
        assert len(list(log.scan("outbound"))) == 150
        assert dict(log.checkpoint(0).entries) == dict(reference.checkpoint(0).entries)
