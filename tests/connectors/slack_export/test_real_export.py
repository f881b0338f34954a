"""A real workspace's export, where it is at hand: its people, joins and messages, all of them, and nothing made up."""

from __future__ import annotations

from collections import Counter

from tests.others import SLACK_EXPORT
from turngate.connectors.slack_export import read_export


def test_everything_in_it_is_told() -> None:
    with read_export(SLACK_EXPORT, tenant="acme", agent="mesh") as export:
        told = Counter(e.record for e in export)
    s = export.summary
    assert (s.rooms, s.accounts, s.messages, s.joins, s.leaves) == (16, 71, 1382, 320, 3)
    assert (s.edits, s.changes, s.deletions) == (37, 9, 0)
    assert (s.skipped, s.problems) == (Counter(), [])
    assert told == {"MessageObserved": 1382 + 37, "MembershipChanged": 323, "RoomChanged": 9, "MembershipPage": 16}


def test_it_does_not_say_whether_channels_are_shared_so_no_listing_is_complete() -> None:
    with read_export(SLACK_EXPORT, tenant="acme", agent="mesh") as export:
        assert {e.fields["info"]["visibility"] for e in export if e.record == "MembershipPage"} == {None}
    assert export.summary.established == 0


def test_with_the_operators_declaration_every_channel_is_its_workspaces() -> None:
    with read_export(SLACK_EXPORT, tenant="acme", agent="mesh", not_shared=True) as export:
        assert {e.fields["info"]["visibility"] for e in export if e.record == "MembershipPage"} == {"workspace"}
    assert export.summary.established == 16
