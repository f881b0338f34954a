"""The meet of two policy versions: every field has one, and it is never looser than either."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processors.feed import ALEX, C1, GUEST, KIM, Feed, verdicts
from turngate.processors.audience import Sets, listed
from turngate.processors.policy import MEETS, effective, meet, tool_terms
from turngate.schemas.digests import audience_digest
from turngate.schemas.policy import Mode, OpenRooms, Part, Policy, RecentRead, Skill, SkillParam, Then, Tool
from turngate.schemas.shapes import Audience

#: Of these every version is kept and asked, so they have no meet.
KEPT = {Tool, Skill, SkillParam, RecentRead}

DURATION = st.integers(0, 3).map(lambda n: f"{n}s")
NAMES = st.lists(st.sampled_from(["slack:T1/UA", "slack:T1/UB", "slack:T1/UC"]), max_size=3, unique=True)
MODES = st.sampled_from(["refuse", "ask", "allow"])
SPANS = {"freshness": "destination observation settle clock_skew delivery", "retention": "room_empty room_inactive"}
DOCUMENTS = st.fixed_dictionaries(
    {
        "version": st.integers(1, 3),
        "agents": st.dictionaries(st.sampled_from("xyz"), st.builds(dict, accounts=NAMES), max_size=3),
        "stale": st.builds(dict, hold=DURATION, then=st.sampled_from(["downgrade", "drop"])),
        "trusted_bots": NAMES,
        "open_rooms": st.sampled_from(["refuse", "own_words"]),
        "notice": st.sampled_from([None, "one", "two"]),
        "sharing": st.builds(
            dict, code_ttl=DURATION, audiences=st.lists(st.sampled_from(["workspace", "public"]), unique=True)
        ),
        "sensitivity": st.builds(dict, enabled=st.booleans(), deadline=DURATION),
        "evidence": st.builds(dict, max_leaves=st.integers(1, 3)),
        "operations": st.dictionaries(
            st.sampled_from("xyz"),
            st.builds(
                dict,
                access=st.sampled_from(["read", "write"]),
                audience=st.sampled_from([None, "internal", "external"]),
                outward=MODES,
            ),
            max_size=3,
        ),
        "interlock": st.builds(
            dict,
            mode=MODES,
            outward=MODES,
            untrusted_writes=MODES,
            ask_ttl=DURATION,
            taint_ttl=DURATION,
            approvers=NAMES,
            leak_guard=st.booleans(),
            link_hosts=st.lists(st.sampled_from("pqr"), unique=True),
        ),
        **{part: st.builds(dict, **dict.fromkeys(keys.split(), DURATION)) for part, keys in SPANS.items()},
    }
)
POLICIES = DOCUMENTS.map(Policy.model_validate)
MODE = [Mode.REFUSE, Mode.ASK, Mode.ALLOW]
#: The stricter values first; of everything that is not here, a smaller number or fewer names are stricter.
ORDERS: dict[str, list[Any]] = {
    "then": [Then.DROP, Then.DOWNGRADE],
    "open_rooms": [OpenRooms.REFUSE, OpenRooms.OWN_WORDS],
    "enabled": [True, False],
    "leak_guard": [True, False],
    "audience": [None, "external", "internal"],
    **dict.fromkeys(("mode", "outward", "untrusted_writes"), MODE),
}


def parts(of: type[Part] = Policy) -> set[type[Part]]:
    """Every part of the document, found through the types of its fields."""
    found = {of}
    waiting: list[Any] = [field.annotation for field in of.model_fields.values()]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, Part):
            found |= parts(kind)
        waiting += get_args(kind)
    return found


@pytest.mark.parametrize("part", sorted(parts() - KEPT, key=lambda p: p.__name__))
def test_every_field_of_every_part_has_a_meet(part: type[Part]) -> None:  # R-POL-1
    assert set(MEETS[part]) == set(part.model_fields)


def test_what_has_no_meet_is_kept_in_every_version() -> None:  # R-POL-1
    assert parts() - set(MEETS) == KEPT
    first = Policy.model_validate({"version": 1, "tools": {"a": {}, "b": {}}, "skills": {"s": {"operation": "o"}}})
    second = Policy.model_validate({"version": 2, "tools": {"b": {"private": True}}, "skills": {}})
    met = effective((first, second))
    assert met.tools == {"b": (first.tools["b"], second.tools["b"])}
    assert met.skills == {}


def plain(value: Any, *, notice: bool = True) -> Any:
    """A policy as data whose lists are in order: a meet names what both name, in either's order."""
    if isinstance(value, Part):
        kept = {n: getattr(value, n) for n in type(value).model_fields if notice or n != "notice"}
        return {name: plain(v) for name, v in kept.items()}
    if isinstance(value, dict):
        return {name: plain(v) for name, v in sorted(value.items())}
    return sorted(value) if isinstance(value, tuple) else value


@given(POLICIES)
@settings(max_examples=50, deadline=None)
def test_a_policy_met_with_itself_is_itself(a: Policy) -> None:
    assert plain(meet(a, a)) == plain(a)


@given(POLICIES, POLICIES)
@settings(max_examples=100, deadline=None)
def test_only_the_notice_depends_on_which_version_is_the_earlier(a: Policy, b: Policy) -> None:
    assert plain(meet(a, b), notice=False) == plain(meet(b, a), notice=False)
    pinned = None if None in (a.notice, b.notice) else a.notice
    assert meet(a, b).notice == pinned


def stricter(field: str, a: Any, b: Any) -> bool:
    """Whether `a` allows no more than `b`."""
    if isinstance(a, Part):
        return all(stricter(n, getattr(a, n), getattr(b, n)) for n in type(a).model_fields if n not in KEPT_FIELDS)
    if isinstance(a, dict):
        return all(name in b and stricter(name, a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return set(a) <= set(b)
    if field == "access":
        return a == b or a == "write"
    if field == "taint_ttl":
        return bool(a >= b)
    return ORDERS[field].index(a) <= ORDERS[field].index(b) if field in ORDERS else bool(a <= b)


KEPT_FIELDS = {"tools", "skills", "version", "notice"}


@given(POLICIES, POLICIES)
@settings(max_examples=200, deadline=None)
def test_a_meet_is_never_looser_than_either_side(a: Policy, b: Policy) -> None:  # R-POL-1
    met = meet(a, b)
    assert stricter("", met, a)
    assert stricter("", met, b)


READERS = ["slack:T1/UA", "slack:T1/UB", "slack:T2/UC"]
SUBSETS = st.lists(st.sampled_from(READERS), max_size=3, unique=True)
AUDIENCES = st.one_of(
    st.builds(
        listed,
        SUBSETS,
        SUBSETS,
        st.lists(st.sampled_from(["slack:T1", "slack:T2"]), max_size=2, unique=True),
        st.dictionaries(st.sampled_from(READERS), st.sampled_from([("slack:T1",), ("slack:T2",)]), max_size=2),
    ),
    st.sampled_from(["public", "unknown"]).map(Audience.model_validate),
)


def within(d: Audience, s: Audience) -> bool:
    return Sets().within(d, audience_digest(d), s, audience_digest(s))


@given(AUDIENCES, AUDIENCES, AUDIENCES)
@settings(max_examples=400, deadline=None)
def test_a_tools_audience_permits_what_every_version_permits(d: Audience, a: Audience, b: Audience) -> None:
    tools = (Tool.model_construct(audience=a), Tool.model_construct(audience=b))  # R-POL-1
    terms = tool_terms(tools, None, Sets())
    if all(within(d, s) for s in (terms.audience, *terms.each)):
        assert within(d, a)
        assert within(d, b)


@pytest.mark.parametrize(("kind", "verdict"), [("member", "deliver"), ("guest", "drop")])
def test_a_guest_hears_nothing_that_a_version_gives_to_a_workspace(kind: str, verdict: str) -> None:  # R-POL-1, R-AUD-1
    feed = Feed()
    feed.policy(
        f'version: 1\nagents: {{mesh: {{}}}}\ntools: {{wiki: {{audience: {{readers: ["{ALEX}", "{GUEST}"]}}}}}}\n'
    )
    feed.listing(C1, [ALEX, {"reader": GUEST, "kind": kind}])
    feed.policy('version: 1\nagents: {mesh: {}}\ntools: {wiki: {audience: {workspace: "slack:T1"}}}\n', 2)
    feed.tool(C1, "c", server="wiki")
    assert verdicts(feed.draft(C1, "t1", exposed=("tool:c",))) == [("t1", verdict)]
    feed.joined(C1, KIM)
    assert verdicts(feed.draft(C1, "t2", exposed=("tool:c",))) == [("t2", "drop")]
