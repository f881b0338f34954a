"""Decides which runtimes the contract suite runs on: each is a function from a test's fixtures to a harness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from tests.contract.harness import Harness, LocalHarness

Start = Callable[[pytest.FixtureRequest], AbstractContextManager[Harness]]


def _local(request: pytest.FixtureRequest) -> AbstractContextManager[Harness]:
    folder: Path = request.getfixturevalue("tmp_path")
    return closing(LocalHarness(folder))


RUNTIMES = [pytest.param(_local, id="local")]


@pytest.fixture(params=RUNTIMES)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A running runtime on empty topics of its own."""
    start: Start = request.param
    with start(request) as running:
        yield running
