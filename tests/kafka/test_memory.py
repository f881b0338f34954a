"""What does not fit is said, and what only waits to be collected is not counted."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Iterator

import pytest

from turngate.streams.kafka.memory import SHARE, Memory, StateTooLarge, give_back

#: Bytes of what is held, and of what is still allowed before it is.
HELD, ROOM = 96 << 20, 48 << 20
#: Of one text among many: more than Python's own allocator takes, and less than what the system's maps by itself.
PIECE = 32 << 10


@pytest.fixture(autouse=True)
def _nothing_is_given_back_by_chance() -> Iterator[None]:
    give_back()
    gc.disable()
    yield
    gc.enable()


def ring() -> list[object]:
    """Something large in a cycle, as the tables of a partition and what holds them are; a mapping of its own."""
    pages = mmap.mmap(-1, HELD)
    for at in range(0, HELD, mmap.PAGESIZE):
        pages[at] = 1
    held: list[object] = [pages]
    held.append(held)
    return held


def test_what_only_a_collection_frees_is_freed_before_anything_is_refused() -> None:
    memory = Memory(int((Memory().used() + ROOM) / SHARE))
    ring()
    assert memory.used() > SHARE * memory.limit
    memory.check("the state of a partition")
    assert memory.used() < SHARE * memory.limit


def test_what_is_free_and_not_given_back_is_given_back_before_anything_is_refused() -> None:
    memory = Memory(int((Memory().used() + ROOM) / SHARE))
    texts = ["x" * PIECE for _ in range(HELD // PIECE)]
    kept = texts[::100]  # what lies between them cannot go by itself
    del texts
    assert memory.used() > SHARE * memory.limit
    memory.check("the state of a partition")
    assert memory.used() < SHARE * memory.limit
    assert len(kept) > 1


def test_what_is_held_does_not_fit() -> None:
    memory = Memory(int((Memory().used() + ROOM) / SHARE))
    memory.check("the state of a partition")
    held = ring()
    with pytest.raises(StateTooLarge, match=r"the state of a partition does not fit: \d+ MB in use"):
        memory.check("the state of a partition")
    assert len(held) == 2
