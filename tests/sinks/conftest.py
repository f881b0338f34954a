"""Decides what the tests of sinks can ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sinks.stage import Stage
from tests.slack import Slack


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Slack() as slack:
        made = Stage(tmp_path / "log", slack)
        yield made
        made.log.close()
