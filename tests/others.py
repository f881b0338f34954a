"""Decides where data lies that is not the project's: without it the tests on it are not collected."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(os.environ.get("TURNGATE_TEST_DATA") or Path(__file__).parents[2] / "shared")
#: A Slack workspace's export, and labelled cases of public benchmarks with what judges them (docs/judgement.md).
SLACK_EXPORT, BENCHMARKS = _FOLDER / "data" / "slack-export", _FOLDER / "benchmarks"
