"""Decides what the tests of sinks can ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sinks.engine import Engine
from tests.sinks.records import ALEX, KIM, ROOM
from tests.sinks.stage import Stage
from tests.slack import Slack


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Slack() as slack:
        made = Stage(tmp_path / "log", slack)
        yield made
        made.log.close()


@pytest.fixture
def engine(stage: Stage) -> Engine:
    stage.slack.direct("D1", stage.acme, "UALEX")
    made_of = Engine(stage)
    made_of.policy()
    made_of.listing(ROOM, ALEX, KIM)
    made_of.say()
    return made_of
