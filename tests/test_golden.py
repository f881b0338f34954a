"""The golden streams: `turngate apply`, as it is installed, prints the records that must come of them, in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
#: The command beside the interpreter that runs the tests.
TURNGATE = Path(sys.executable).with_name("turngate")


def test_every_stream_gives_what_is_expected_all_in_one_file() -> None:
    command = [sys.executable, str(FOLDER / "check.py"), f"{TURNGATE} apply {{events}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "120 passed, 0 failed"
