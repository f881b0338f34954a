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


def _kafka(request: pytest.FixtureRequest) -> AbstractContextManager[Harness]:
    bootstrap: str = request.getfixturevalue("kafka")
    from tests.kafka.harness import KafkaHarness  # needs the extra `kafka`

    return closing(KafkaHarness(bootstrap, request.getfixturevalue("unique"), request.getfixturevalue("tmp_path")))


RUNTIMES = [pytest.param(_local, id="local"), pytest.param(_kafka, id="kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=RUNTIMES)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A running runtime on empty topics of its own."""
    start: Start = request.param
    with start(request) as running:
        yield running
