"""What frees a value that was claimed once: that its own turn was not sent where it was let out to (R-ACT-4)."""

from __future__ import annotations

import pytest

from tests.processors.feed import C1, D1, codes, ref
from tests.processors.remembering import PAYING, pay, remembering
from turngate.schemas.inputs import TurnDelivered


@pytest.mark.parametrize(("room", "expected"), [(D1, set()), (C1, {"not_unique"})])
def test_only_what_was_let_out_to_a_room_can_have_failed_there(room: str, expected: set[str]) -> None:
    feed = remembering(PAYING)
    assert codes(feed.draft(D1, "t1", trigger=ref(D1, 1), action=pay("INV-7"))) == set()
    feed.make(TurnDelivered, turn="t1", room=room, status="failed")
    assert codes(feed.draft(D1, "t2", trigger=ref(D1, 1), action=pay("INV-7"))) == expected
