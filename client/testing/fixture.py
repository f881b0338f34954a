"""Decides what a test is handed: a workplace of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from turngate.client.testing.workplace import Workplace


@pytest.fixture
def workplace() -> Iterator[Workplace]:
    """A workplace of one tenant, empty at first, with the agent `mesh`."""
    with Workplace() as made:
        yield made
