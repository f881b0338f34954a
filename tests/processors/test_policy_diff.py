"""Every field of the policy document says which way a change of it goes, and never calls a loosening a tightening."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.processors.policy import MEETS, effective
from turngate.processors.policy_diff import ABSENT, JUDGES, WALKS, Change, Effect, compare
from turngate.schemas.policy import Adapter, Mode, Part, Policy, Tool
from turngate.schemas.shapes import Audience

T1, ONE, TWO = "slack:T1", "slack:T1/UA", "slack:T1/UB"
TOOL: dict[str, Any] = {"adapter": "mcp"}
SKILL: dict[str, Any] = {"operation": "o"}
PARAM: dict[str, Any] = {"type": "id"}

#: Of each field a value, and one that is stricter: `diff` must say so, and the opposite the other way round.
STRICTER: dict[str, tuple[Any, Any]] = {
    "Agent.accounts": ([ONE, TWO], [ONE]),
    "Evidence.max_leaves": (5, 4),
    "Freshness.clock_skew": ("5s", "4s"),
    "Freshness.delivery": ("5s", "4s"),
    "Freshness.destination": ("5s", "4s"),
    "Freshness.observation": ("5s", "4s"),
    "Freshness.settle": ("5s", "4s"),
    "Interlock.approvers": ([ONE], []),
    "Interlock.ask_ttl": ("15m", "14m"),
    "Interlock.leak_guard": (False, True),
    "Interlock.link_hosts": (["a.example", "b.example"], ["b.example"]),
    "Interlock.mode": ("ask", "refuse"),
    "Interlock.outward": ("allow", "ask"),
    "Interlock.taint_ttl": ("24h", "25h"),
    "Interlock.untrusted_writes": ("allow", "refuse"),
    "Operation.access": ("read", "write"),
    "Operation.audience": ("internal", "external"),
    "Operation.outward": ("allow", None),  # the interlock's, which asks
    "Policy.agents": ({"x": {}}, {}),
    "Policy.open_rooms": ("own_words", "refuse"),
    "Policy.operations": ({"x": {}}, {}),
    "Policy.skills": ({"x": SKILL}, {}),
    "Policy.tools": ({"x": TOOL}, {}),
    "Policy.trusted_bots": ([ONE], []),
    "RecentRead.within": ("10m", "9m"),
    "Retention.log": ("7y", "6y"),
    "Retention.messages": ("7y", "6y"),
    "Retention.room_empty": ("7y", "6y"),
    "Retention.room_inactive": ("7y", "6y"),
    "Sensitivity.deadline": ("2s", "1s"),
    "Sensitivity.enabled": (False, True),
    "Sharing.audiences": (["workspace", "public"], ["public"]),
    "Sharing.code_ttl": ("2m", "1m"),
    "Skill.approval": (None, "required"),
    "Skill.params": ({"p": PARAM | {"optional": True}}, {}),
    "Skill.recent_read": (None, {"operation": "o", "within": "1m"}),
    "Skill.unique": (None, "$params.x"),
    "Skill.valid_for": (None, "30d"),
    "SkillParam.from_untrusted": (True, False),
    "SkillParam.max": (Decimal("1.5"), Decimal("1.25")),
    "SkillParam.optional": (True, False),
    "SkillParam.set_by": (["read", "person"], ["read"]),
    "Stale.hold": ("5s", "4s"),
    "Stale.then": ("downgrade", "drop"),
    "Tool.adapter": ("mcp", "legacy"),
    "Tool.audience": ("public", {"workspace": T1}),
    "Tool.fields": ({}, {"$.iban": "secret"}),
    "Tool.health": ([], ["$.diagnosis"]),
    "Tool.mask": ([], ["secret"]),
    "Tool.private": (False, True),
    "Tool.restrict": (None, "slack:T1/C1"),
    "Tool.untrusted": (False, True),
    "Tool.within": ({"workspace": T1}, "unknown"),
}
#: Of these any two values permit what the other does not.
DIFFERENT = {"Skill.operation": ("o", "p"), "SkillParam.type": ("id", "text"), "RecentRead.operation": ("o", "p")}
#: These permit and forbid nothing.
INDIFFERENT = {"Policy.notice": ("one", None)}
#: Looked into, or (the version) said apart.
PARTS = {f"Policy.{n}" for n, f in Policy.model_fields.items() if f.annotation in set(MEETS)} | {"Policy.version"}
#: Where each part lies in a document.
PLACES: dict[str, Any] = {
    "Policy": lambda f: f,
    "Agent": lambda f: {"agents": {"x": f}},
    "Operation": lambda f: {"operations": {"x": f}},
    "Tool": lambda f: {"tools": {"x": ({"audience": "result"} if "within" in f else {}) | TOOL | f}},
    "Skill": lambda f: {"skills": {"x": SKILL | f}},
    "SkillParam": lambda f: {"skills": {"x": SKILL | {"params": {"p": PARAM | f}}}},
    "RecentRead": lambda f: {"skills": {"x": SKILL | {"recent_read": {"operation": "o", "within": "1m"} | f}}},
}


def parts(of: type[Part] = Policy) -> set[type[Part]]:
    """Every part of the document, found through the types of its fields."""
    found, waiting = {of}, [field.annotation for field in of.model_fields.values()]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, Part):
            found |= parts(kind)
        waiting += get_args(kind)
    return found


FIELDS = {f"{part.__name__}.{name}" for part in parts() for name in part.model_fields}


def policy(field: str, value: Any) -> Policy:
    part, name = field.split(".")
    place = PLACES.get(part, lambda f: {part.lower(): f})
    return Policy.model_validate({"version": 1} | place({name: value}))


def effect(field: str, old: Any, new: Any) -> Effect:
    changes = compare(policy(field, old), policy(field, new))
    assert len(changes) == 1, changes
    assert field.split(".")[1] in changes[0].path
    return changes[0].effect


def test_every_field_of_the_document_is_in_a_table_above() -> None:  # R-POL-1
    assert STRICTER.keys() | DIFFERENT.keys() | INDIFFERENT.keys() | PARTS == FIELDS


def test_every_field_of_the_document_is_judged_or_walked() -> None:  # R-POL-1
    for part in parts():
        single = {n for n, f in part.model_fields.items() if f.annotation not in parts()}
        assert single <= JUDGES[part].keys() | WALKS.get(part, {}).keys(), part


@pytest.mark.parametrize("field", sorted(STRICTER))
def test_a_stricter_value_tightens_and_the_way_back_loosens(field: str) -> None:
    loose, strict = STRICTER[field]
    assert effect(field, loose, strict) is Effect.TIGHTENS
    assert effect(field, strict, loose) is Effect.LOOSENS
    assert compare(policy(field, strict), policy(field, strict)) == []


@pytest.mark.parametrize(("field", "values"), sorted((DIFFERENT | INDIFFERENT).items()))
def test_other_values_do_neither_or_both(field: str, values: tuple[Any, Any]) -> None:
    wanted = Effect.BOTH if field in DIFFERENT else Effect.NEITHER
    assert effect(field, *values) is effect(field, *reversed(values)) is wanted


@pytest.mark.parametrize(
    ("field", "old", "new", "wanted"),
    [
        ("Policy.trusted_bots", [ONE], [TWO], Effect.BOTH),
        ("Tool.adapter", "mcp", "identity", Effect.BOTH),  # met, they are legacy
        ("Tool.restrict", "slack:T1/C1", "slack:T1/C2", Effect.BOTH),
        ("Tool.audience", "public", "result", Effect.TIGHTENS),
        ("Tool.audience", "result", {"workspace": T1}, Effect.BOTH),
        ("Tool.audience", None, "result", Effect.LOOSENS),
        ("Tool.audience", None, "unknown", Effect.NEITHER),
        ("Tool.audience", {"readers": [ONE]}, {"readers": [ONE, TWO]}, Effect.LOOSENS),
        # a guest of the workspace whom the list names is not in the workspace's audience
        ("Tool.audience", {"readers": [ONE]}, {"workspace": T1}, Effect.BOTH),
        ("Tool.within", None, "public", Effect.LOOSENS),  # without it, anything but public
        ("Tool.within", None, {"workspace": T1}, Effect.TIGHTENS),
        ("Tool.within", {"workspace": T1}, {"workspace": "slack:T2"}, Effect.BOTH),
        ("Tool.fields", {"$.a": "internal"}, {"$.a": "personal"}, Effect.BOTH),
        ("Tool.fields", {"$.a": "personal"}, {"$.a": "secret"}, Effect.TIGHTENS),
        ("Tool.fields", {"$.a": "personal"}, {"$.a": "public"}, Effect.LOOSENS),
        ("Skill.params", {}, {"p": PARAM}, Effect.BOTH),  # actions without it were good, and are not any more
        ("Skill.unique", "$params.a", "$params.b", Effect.BOTH),
        ("Skill.valid_for", "30d", None, Effect.LOOSENS),
        ("Operation.outward", None, "ask", Effect.NEITHER),  # as the interlock has it
        ("Operation.audience", None, "external", Effect.LOOSENS),
    ],
)
def test_what_is_less_plain(field: str, old: Any, new: Any, wanted: Effect) -> None:
    assert effect(field, old, new) is wanted


def test_within_means_nothing_where_the_audience_is_the_policys() -> None:
    old, new = (
        Policy.model_validate({"version": 1, "tools": {"x": {"audience": "public", "within": within}}})
        for within in (None, "public")
    )
    assert [change.effect for change in compare(old, new)] == [Effect.NEITHER]


def test_an_operation_without_an_outward_of_its_own_goes_with_the_interlock() -> None:
    """The interlock's line says it; the operation that keeps what it had by naming it is indifferent."""
    old = Policy.model_validate({"version": 1, "operations": {"a": {}, "b": {}}})
    new = Policy.model_validate(
        {"version": 2, "operations": {"a": {"outward": "ask"}, "b": {}}, "interlock": {"outward": "allow"}}
    )
    assert compare(old, new) == [
        Change(("operations", "a", "outward"), Effect.NEITHER, None, Mode.ASK),
        Change(("interlock", "outward"), Effect.LOOSENS, Mode.ASK, Mode.ALLOW),
    ]


def test_what_only_one_document_names_is_one_change() -> None:
    old, new = (Policy.model_validate({"version": 1, "tools": {name: TOOL}}) for name in ("one", "two"))
    assert compare(old, new) == [
        Change(("tools", "one"), Effect.TIGHTENS, Tool(adapter=Adapter.MCP), ABSENT),
        Change(("tools", "two"), Effect.LOOSENS, ABSENT, Tool(adapter=Adapter.MCP)),
    ]


def test_null_is_a_value_and_not_absence() -> None:
    (change,) = compare(policy("Tool.audience", "public"), policy("Tool.audience", None))
    assert (change.old, change.new) == (Audience.model_validate("public"), None)


CHOICES = st.fixed_dictionaries({field: st.integers(0, 1) for field in STRICTER if field.split(".")[0] != "Policy"})
MET = {part.__name__ for part in MEETS} - {"Policy"}


def drawn(sides: dict[str, int]) -> Policy:
    """A policy with, of every field, the looser (0) or the stricter (1) value of the table."""
    fields: dict[str, dict[str, Any]] = {}
    for field, side in sides.items():
        part, name = field.split(".")
        fields.setdefault(part, {})[name] = STRICTER[field][side]
    whole: dict[str, Any] = {"version": 1}
    for part, values in fields.items():
        if part in MET:
            whole |= PLACES.get(part, lambda f, part=part: {part.lower(): f})(values)
    return Policy.model_validate(whole)


@given(CHOICES, st.sets(st.sampled_from(sorted(STRICTER))))
@settings(max_examples=150)
def test_what_only_tightens_is_the_meet_of_both(sides: dict[str, int], more: set[str]) -> None:  # R-POL-1
    old, new = drawn(sides), drawn(sides | dict.fromkeys(more & sides.keys(), 1))
    met = effective((old, new)).settings
    assert {change.effect for change in compare(old, new)} <= {Effect.TIGHTENS, Effect.NEITHER}
    assert {change.effect for change in compare(new, old)} <= {Effect.LOOSENS, Effect.NEITHER}
    assert compare(met, effective((new,)).settings) == []
