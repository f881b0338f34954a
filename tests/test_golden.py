"""The golden streams: `turngate apply`, as it is installed, prints the records that must come of them, in order.

On the embedded log, and through the worker on a broker.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"
#: The command beside the interpreter that runs the tests.
TURNGATE = Path(sys.executable).with_name("turngate")


def checked(command: str) -> subprocess.CompletedProcess[str]:
    """All streams as one file, compared by the checker that lies beside them."""
    return subprocess.run(
        [sys.executable, str(FOLDER / "check.py"), f"{TURNGATE} {command}"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TURNGATE_TEST_TIME": "1"},
    )


def test_every_stream_gives_what_is_expected_all_in_one_file() -> None:
    done = checked("apply {events}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "120 passed, 0 failed"


@pytest.mark.kafka
def test_every_stream_gives_what_is_expected_through_the_worker_on_a_broker(kafka: str) -> None:
    done = checked(f"apply --kafka --bootstrap-servers {kafka} {{events}}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "120 passed, 0 failed"
