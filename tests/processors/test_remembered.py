"""What was worked out before is used again only for what it holds of: the same leaf, destination and policy."""

from __future__ import annotations

import pytest

from tests.processors.feed import ALEX, BOT, C1, C2, D1, GUEST, KIM, POLICY, Feed, codes, ref, verdicts
from tests.processors.remembering import remembering

T1 = {"visibility": "workspace", "workspaces": ["slack:T1"]}


@pytest.mark.parametrize("restrict", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_a_note_that_stays_in_its_room_is_no_less_bound_than_what_it_was_made_of_is_free(
    before: bool, restrict: bool
) -> None:  # R-EVI-4, R-AUD-2
    feed = remembering()
    feed.listing(C1, [ALEX, KIM], info=T1)
    feed.listing(C2, [ALEX, KIM], info=T1)
    feed.message(C1, 2)
    feed.message(C2, 1)
    feed.write("plan", "plan@1", room=C1, restrict=restrict, sources=[ref(C1, 2)])
    if before:  # its leaf is known to be permitted there
        assert verdicts(feed.draft(C2, "t1", trigger=ref(C2, 1), exposed=(ref(C1, 2),))) == [("t1", "deliver")]
    out = feed.draft(C2, "t2", trigger=ref(C2, 1), exposed=("revision:plan@1",))
    assert codes(out) == ({"restricted_to_conversation"} if restrict else set())
    assert verdicts(feed.draft(C1, "t3", trigger=ref(C1, 2), exposed=("revision:plan@1",))) == [("t3", "deliver")]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_bot_that_a_later_policy_does_not_trust_is_a_guest_at_once(trusted: bool) -> None:  # R-ROOM-7, R-POL-1
    trust = f"trusted_bots: ['{BOT}']\n"
    feed = Feed()
    feed.policy(POLICY + trust)
    feed.listing(C1, [ALEX, {"reader": BOT, "kind": "bot"}], info={"visibility": "members"})
    feed.tool(C1, "c", server="wiki")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    feed.policy(POLICY + (trust if trusted else ""), 2)
    assert codes(feed.draft(C1, "t2", exposed=("tool:c",))) == (set() if trusted else {"audience_not_subset"})


def test_an_account_that_a_later_policy_does_not_list_is_a_reader_at_once() -> None:  # R-ROOM-7, R-POL-1
    feed = Feed()
    feed.policy(POLICY)
    own = "slack:T1/UBOT"
    feed.listing(C1, [ALEX, {"reader": own, "kind": "self"}])
    feed.tool(C1, "c", server="wiki")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", "deliver")]
    feed.policy(POLICY.replace(f'"{own}"', ""), 2)
    assert codes(feed.draft(C1, "t2", exposed=("tool:c",))) == {"audience_not_subset"}


def test_a_tool_that_a_later_policy_narrows_leaves_what_it_returned_before_as_it_was() -> None:  # R-AUD-8, R-POL-1
    feed = Feed()
    feed.policy(POLICY)
    feed.listing(C1, [ALEX, KIM])
    feed.tool(C1, "before", server="wiki")
    feed.policy(
        POLICY.replace('wiki: {audience: {workspace: "slack:T1"}}', f"wiki: {{audience: {{readers: ['{ALEX}']}}}}"), 2
    )
    feed.tool(C1, "after", server="wiki")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:before",))) == [("t1", "deliver")]
    assert codes(feed.draft(C1, "t2", exposed=("tool:after",))) == {"audience_not_subset"}


@pytest.mark.parametrize(
    ("text", "expected"), [("heron-4711", {"secret_exposed"}), ("egret-0815", {"secret_exposed"}), ("stork", set())]
)
def test_of_a_call_that_is_used_again_the_values_of_both_results_are_found(text: str, expected: set[str]) -> None:
    feed = remembering()  # R-EGR-1, R-EGR-4, R-AUD-8
    for value in ("heron-4711", "egret-0815"):
        feed.tool(D1, "c", server="wiki", fields=[{"name": "code", "value": value, "class": "secret"}])
    assert codes(feed.draft(D1, "t1", trigger=ref(D1, 1), renderings=[{"text": f"It is {text}."}])) == expected


@pytest.mark.parametrize(("days", "expected"), [(0, set()), (1, {"health_not_retained"})])
def test_what_was_made_of_values_that_are_not_remembered_any_more_goes_to_no_outsider(
    days: int, expected: set[str]
) -> None:  # R-EGR-6, R-RET-4
    feed = remembering("retention: {messages: 1d, room_inactive: 400d}\n")
    feed.tool(D1, "c", fields=[{"name": "code", "value": "heron-4711", "class": "internal"}])
    feed.write("n", "n@1", sources=["tool:c"])
    feed.tick(days * 86_400_000)
    feed.listing(C2, [ALEX, {"reader": GUEST, "kind": "guest"}])
    assert codes(feed.draft(C2, "t1", exposed=["revision:n@1"])) == expected
    feed.listing(C2, [ALEX])
    assert verdicts(feed.draft(C2, "t2", exposed=["revision:n@1"])) == [("t2", "deliver")]
