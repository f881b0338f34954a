"""What goes into a message's metadata is found there again, and nothing else is."""

from __future__ import annotations

import pytest

from turngate.schemas.metadata import NOTE, TURN, metadata, named_in


def test_a_turns_id_is_found_again_and_is_all_there_is() -> None:
    assert metadata(TURN, "t1") == {"event_type": "turngate_turn", "event_payload": {"id": "t1"}}
    assert named_in(metadata(TURN, "t1")) == "t1"
    assert named_in(metadata(NOTE, "t1"), NOTE) == "t1"


@pytest.mark.parametrize(
    "found",
    [
        None,
        "turngate_turn",
        {},
        {"event_type": "turngate_turn"},
        {"event_type": "turngate_turn", "event_payload": None},
        {"event_type": "turngate_turn", "event_payload": {"id": 1}},
        {"event_type": "turngate_turn", "event_payload": {"id": ""}},
        {"event_type": "other", "event_payload": {"id": "t1"}},
        metadata(NOTE, "t1"),
    ],
)
def test_what_is_no_turns_metadata_names_none(found: object) -> None:
    assert named_in(found) is None
