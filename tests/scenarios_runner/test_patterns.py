"""Contract section 8: a map matches by subset, a list exactly unless under `contains:`, reasons by their codes."""

from __future__ import annotations

from typing import Any

import pytest

from turngate.streams.scenarios.errors import Wrong
from turngate.streams.scenarios.patterns import compiled, matches, substituted
from turngate.streams.scenarios.times import EPOCH

LISTED = {
    "scope": "listed",
    "workspaces": ["slack:T1"],
    "readers": ["slack:T1/UALEX", "slack:T1/UKIM"],
    "guests": [],
    "memberships": {},
}
REASONS = [{"code": "source_missing", "ref": "tool:c1"}, {"code": "no_rendering", "ref": None}]
DECIDED = {"turn": "t1", "verdict": "drop", "rendering": None, "reasons": REASONS, "provenance": ["tool:c1", "tool:c2"]}
AUTHORIZED = {"turn": "t1", "destination": LISTED, "valid_until": EPOCH + 12_000, "broadcast": True, "text": "hi"}


def fits(record: str, pattern: dict[str, Any], value: dict[str, Any]) -> bool:
    return matches(compiled(record, pattern), value)


def test_a_map_matches_by_subset() -> None:
    assert fits("TurnDecided", {}, DECIDED)
    assert fits("TurnDecided", {"turn": "t1"}, DECIDED)
    assert not fits("TurnDecided", {"turn": "t1", "verdict": "deliver"}, DECIDED)


def test_null_matches_what_is_null_and_what_is_not_there() -> None:
    assert fits("TurnDecided", {"rendering": None, "fingerprint": None}, DECIDED)
    assert not fits("TurnDecided", {"verdict": None}, DECIDED)


def test_a_number_is_no_boolean() -> None:
    assert fits("TurnAuthorized", {"broadcast": True}, AUTHORIZED)
    assert not fits("TurnAuthorized", {"broadcast": 1}, AUTHORIZED)
    assert not fits("TurnDecided", {"rendering": 0}, {"rendering": False})


def test_a_list_matches_exactly_and_in_order() -> None:
    assert fits("TurnDecided", {"provenance": ["tool:c1", "tool:c2"]}, DECIDED)
    assert not fits("TurnDecided", {"provenance": ["tool:c2", "tool:c1"]}, DECIDED)
    assert not fits("TurnDecided", {"provenance": ["tool:c1"]}, DECIDED)
    assert not fits("TurnDecided", {"provenance": []}, DECIDED)


def test_contains_asks_for_at_least_these() -> None:
    assert fits("TurnDecided", {"provenance": {"contains": ["tool:c2"]}}, DECIDED)
    assert fits("TurnDecided", {"provenance": {"contains": []}}, DECIDED)
    assert not fits("TurnDecided", {"provenance": {"contains": ["tool:c2", "tool:c3"]}}, DECIDED)


def test_maps_in_lists_match_by_subset_too() -> None:
    leaves = {"leaves": [{"author": "slack:T1/UALEX", "audience": LISTED, "private": True}]}
    assert fits("EvidenceRecorded", {"leaves": [{"audience": {"readers": LISTED["readers"]}}]}, leaves)
    assert fits("EvidenceRecorded", {"leaves": {"contains": [{"author": "slack:T1/UALEX"}]}}, leaves)
    assert not fits("EvidenceRecorded", {"leaves": [{"private": False}]}, leaves)


def test_reasons_are_a_set_of_codes_in_any_order() -> None:
    assert fits("TurnDecided", {"reasons": ["no_rendering", "source_missing"]}, DECIDED)
    assert not fits("TurnDecided", {"reasons": ["no_rendering"]}, DECIDED)
    assert not fits("TurnDecided", {"reasons": []}, DECIDED)
    assert fits("TurnDecided", {"reasons": []}, {"reasons": []})
    assert fits("TurnDecided", {"reasons": {"contains": ["no_rendering"]}}, DECIDED)
    assert not fits("TurnDecided", {"reasons": {"contains": ["paused"]}}, DECIDED)


def test_a_code_that_came_for_two_refs_counts_once() -> None:
    twice = {"reasons": [{"code": "source_missing", "ref": "tool:c1"}, {"code": "source_missing", "ref": "tool:c2"}]}
    assert fits("TurnDecided", {"reasons": ["source_missing"]}, twice)


def test_reasons_of_what_was_withheld_are_codes_too() -> None:
    value = {"withheld": [{"ref": "tool:c1", "reasons": [{"code": "source_missing"}]}]}
    assert fits("ContextDecided", {"withheld": [{"ref": "tool:c1", "reasons": ["source_missing"]}]}, value)
    assert not fits("ContextDecided", {"withheld": [{"ref": "tool:c1", "reasons": ["other_agent"]}]}, value)


def test_an_audience_has_its_shorthands() -> None:
    assert fits("TurnAuthorized", {"destination": {"workspace": "slack:T1"}}, AUTHORIZED)
    assert not fits("TurnAuthorized", {"destination": {"workspace": "slack:T2"}}, AUTHORIZED)
    assert fits("TurnAuthorized", {"destination": {"readers": ["slack:T1/UALEX", "slack:T1/UKIM"]}}, AUTHORIZED)
    assert not fits("TurnAuthorized", {"destination": {"readers": ["slack:T1/UALEX"]}}, AUTHORIZED)
    assert not fits("TurnAuthorized", {"destination": "public"}, AUTHORIZED)
    assert fits("TurnAuthorized", {"destination": "public"}, {"destination": {"scope": "public", "readers": []}})


def test_a_time_may_be_milliseconds_or_an_offset() -> None:
    assert fits("TurnAuthorized", {"valid_until": 1767225612000}, AUTHORIZED)
    assert fits("TurnAuthorized", {"valid_until": "12s"}, AUTHORIZED)
    assert not fits("TurnAuthorized", {"valid_until": "13s"}, AUTHORIZED)


@pytest.mark.parametrize(
    ("record", "pattern", "message"),
    [
        ("TurnDecided", {"verdikt": "deliver"}, "TurnDecided has no field 'verdikt'"),
        ("TurnAuthorized", {"destination": {"reader": []}}, r"TurnAuthorized\.destination has no field 'reader'"),
        ("TurnDecided", {"provenance": "tool:c1"}, r"TurnDecided\.provenance: a list"),
        ("TurnAuthorized", {"valid_until": "soon"}, "is no time"),
    ],
)
def test_a_pattern_that_could_never_match_is_a_mistake(record: str, pattern: dict[str, Any], message: str) -> None:
    with pytest.raises(Wrong, match=message):
        compiled(record, pattern)


def test_a_captured_name_stands_for_its_value_inside_text_too() -> None:
    captured = {"code": "ABCDEFGH2345", "n": 3}
    assert substituted("$code", captured) == "ABCDEFGH2345"
    assert substituted("$n", captured) == 3
    assert substituted({"text": "  Share $code "}, captured) == {"text": "  Share ABCDEFGH2345 "}
    assert substituted(["$code", "$5", "$params.invoice"], captured) == ["ABCDEFGH2345", "$5", "$params.invoice"]
