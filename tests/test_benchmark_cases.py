"""Other people's labelled cases, where they are at hand: no decision differs from what the rules say of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.others import BENCHMARKS

#: The command beside the interpreter that runs the tests.
TURNGATE = Path(sys.executable).with_name("turngate")


def test_no_decision_differs() -> None:
    command = [sys.executable, "judge.py", "--cmd", f"{TURNGATE} apply {{events}}", "--against", "rows.jsonl.gz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    said = done.stdout[-2000:] + done.stderr[-2000:]
    assert "against rows.jsonl.gz: 0 decisions differ of 25633" in done.stdout, said
