"""A policy document is taken as it is meant, or refused with the line and the field of what is wrong (R-POL-3)."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas import contract_text
from turngate.schemas.policy import (
    MAX_CHARACTERS,
    NOTICE,
    Mode,
    OpenRooms,
    Policy,
    PolicyInvalid,
    Then,
    duration_ms,
    parse_policy,
)
from turngate.schemas.shapes import Audience, Origin, Scope


def refusal(text: str) -> str:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_document_of_a_version_alone_has_every_default() -> None:
    assert parse_policy("version: 3") == parse_policy('{"version": 3}') == Policy(version=3)


def test_yaml_and_json_say_the_same() -> None:
    document = contract_text.policy()
    parsed = parse_policy(document)
    assert parse_policy(json.dumps(yaml.safe_load(document))) == parsed


def test_every_part_is_taken_as_it_is_written() -> None:
    policy = parse_policy("""
version: 7
agents: {mesh: {accounts: ["slack:T1/UBOT"]}}
freshness: {destination: 90s}
stale: {hold: 1500ms, then: drop}
open_rooms: own_words
notice: null
sharing: {code_ttl: 1h, audiences: [public]}
tools: {crm: {adapter: mcp, audience: result, within: {workspace: "slack:T1"}, fields: {"$.iban": secret}}}
skills: {pay: {operation: crm.pay, params: {amount: {type: price, max: 0.50, set_by: [read]}}, unique: $params.amount}}
interlock: {mode: allow, link_hosts: [example.org]}
""")
    assert policy.agents["mesh"].accounts == ("slack:T1/UBOT",)
    assert (policy.freshness.destination, policy.freshness.settle) == (90_000, 30_000)
    assert (policy.stale.hold, policy.stale.then) == (1_500, Then.DROP)
    assert policy.open_rooms is OpenRooms.OWN_WORDS
    assert policy.notice is None
    assert policy.sharing.audiences == ("public",)
    assert policy.tools["crm"].audience == "result"
    assert policy.tools["crm"].within == Audience(workspaces=("slack:T1",))
    assert policy.skills["pay"].params["amount"].max == Decimal("0.50")  # never a binary fraction
    assert policy.skills["pay"].params["amount"].set_by == (Origin.READ,)
    assert policy.interlock.mode is Mode.ALLOW
    assert policy.interlock.outward is Mode.ASK


def test_a_tool_without_an_audience_is_unknown_and_one_with_a_shorthand_is_not() -> None:
    tools = parse_policy("version: 1\ntools: {a: {}, b: {audience: public}, c: {audience: unknown}}").tools
    assert tools["a"].audience is None
    assert tools["b"].audience == Audience(scope=Scope.PUBLIC)
    assert tools["c"].audience == Audience(scope=Scope.UNKNOWN)


def test_what_a_left_out_notice_says() -> None:
    assert parse_policy("version: 1").notice == NOTICE
    assert parse_policy("version: 1\nnotice: ''").notice == ""


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0),
        ("1ms", 1),
        ("1500ms", 1_500),
        ("10s", 10_000),
        ("15m", 900_000),
        ("24h", 86_400_000),
        ("90d", 7_776_000_000),
        ("7y", 220_752_000_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "5S", "-5s", "1.5s", "5w", "5s ", "٥s", "1" * 10 + "s", 5, None])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="must be a duration such as 1500ms"):
        duration_ms(text)


WRONG = [
    # what a document as a whole can be
    ("", "line 1: the document must be a mapping"),
    ("null", "line 1: the document must be a mapping"),
    ("[1, 2]", "line 1: the document must be a mapping"),
    ("just words", "line 1: the document must be a mapping"),
    ("agents: {}", "line 1: version: is required"),
    ("version: 1\n---\nversion: 2", "line 2: but found another document"),
    # text that is no YAML
    ("version: 1\nagents: {mesh: ", "line 2: did not find expected node content"),
    ("version: 1\nstale:\n\thold: 5s", "line 3: found character that cannot start any token"),
    ("version: 1\nnotice: 'open", "line 2: found unexpected end of stream"),
    ("version: 1\nnotice: \x07", "line 1: not YAML or JSON"),
    ("version: 1\nnotice: *nobody", "line 2: found undefined alias"),
    # keys
    ("version: 1\nfreshnes: {}", "line 2: freshnes: is not a key of the policy document"),
    ("version: 1\nstale:\n  hold: 5s\n  hols: 6s", "line 4: stale.hols: is not a key of the policy document"),
    ("version: 1\nstale: {hold: 5s}\nstale: {hold: 6s}", "line 3: stale: is there twice"),
    ("version: 1\nstale:\n  hold: 5s\n  hold: 5s", "line 4: stale.hold: is there twice"),
    ('{"version": 1,\n "version": 2}', "line 2: version: is there twice"),
    ("version: 1\n? [a, b]\n: c", "line 2: document: a key must be text"),
    ("version: 1\nagents:\n  ? {a: b}\n  : {}", "line 3: agents: a key must be text"),
    ("version: 1\nstale: &s {hold: 5s}\nfreshness: *s", "line 2: freshness: aliases are not allowed"),
    (
        "version: 1\nagents:\n  mesh: {accounts: ['not a reader']}",
        "line 3: agents.mesh.accounts.0: string should match",
    ),
    ("version: 1\nagents: {'': {}}", "line 2: agents"),
    # values
    ("version: one", "line 1: version: must be a whole number"),
    ("version: yes", "line 1: version: must be a whole number"),
    ("version: '1'", "line 1: version: must be a whole number"),
    ("version: 1\nevidence: {max_leaves: true}", "line 2: evidence.max_leaves: must be a whole number"),
    ("version: -1", "line 1: version: input should be greater than or equal to 0"),
    ("version: 1.5", "line 1: version: "),
    ("version: 1\nfreshness: {destination: 60}", "line 2: freshness.destination: must be a duration such as 1500ms"),
    ("version: 1\nfreshness:\n  settle: 30 s", "line 3: freshness.settle: must be a duration such as 1500ms"),
    ("version: 1\nstale: {then: wait}", "line 2: stale.then: must be downgrade or drop"),
    ("version: 1\nopen_rooms: yes", "line 2: open_rooms: must be refuse or own_words"),
    ("version: 1\nsensitivity: {enabled: maybe}", "line 2: sensitivity.enabled: must be true or false"),
    ("version: 1\nevidence: {max_leaves: 0}", "line 2: evidence.max_leaves: input should be greater than or equal"),
    ("version: 1\nstale: 5s", "line 2: stale: must be a mapping"),
    ("version: 1\nagents: [mesh]", "line 2: agents: must be a mapping"),
    ("version: 1\ntrusted_bots: slack:T1/UBOT", "line 2: trusted_bots: must be a list"),
    ("version: 1\nnotice: [a]", "line 2: notice: must be text"),
    ("version: 1\nsharing: {audiences: [everyone]}", "line 2: sharing.audiences.0: must be workspace or public"),
    (
        "version: 1\ntools:\n  crm:\n    adapter: soap",
        "line 4: tools.crm.adapter: must be mcp, legacy or identity",
    ),
    ("version: 1\ntools: {a: {audience: {readers: [x]}}}", "line 2: tools.a.audience"),
    ("version: 1\ntools: {a: {fields: {x: hidden}}}", "line 2: tools.a.fields.x: must be public, internal, personal"),
    ("version: 1\noperations: {a.b: {access: run}}", "line 2: operations.a.b.access: must be write or read"),
    ("version: 1\nskills: {pay: {}}", "line 2: skills.pay.operation: is required"),
    (
        "version: 1\nskills:\n  pay:\n    operation: a.b\n    params:\n      n: {type: money}",
        "line 6: skills.pay.params.n.type: must be price, int, number, text, email, date, bool or id",
    ),
    ("version: 1\nskills: {p: {operation: a, params: {n: {type: int, max: lots}}}}", "line 2: skills.p.params.n.max: "),
    ("version: 1\nskills: {p: {operation: a, unique: id}}", "line 2: skills.p.unique: string should match"),
    ("version: 1\nskills: {p: {operation: a, approval: maybe}}", "line 2: skills.p.approval: must be required"),
    ("version: 1\ninterlock:\n  ask_ttl: 15m\n  mode: deny", "line 4: interlock.mode: must be refuse, ask or allow"),
    # tags that say what the text does not
    ("version: 1\nsensitivity: {enabled: !!bool maybe}", "line 2: sensitivity.enabled: must be true or false"),
    ("version: !!int ٣", "line 1: version: must be a whole number"),
    ("version: 1\ninterlock: {leak_guard: !!null never}", "line 2: interlock.leak_guard: must be true or false"),
    ("version: !!python/name:os.system 1", "line 1: version: must be a whole number"),
    ("version: 1\nretention: {log: forever}", "line 2: retention.log: must be a duration such as 1500ms"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_said_with_its_line_and_field(text: str, said: str) -> None:
    assert refusal(text).startswith(said)


@pytest.mark.parametrize("digits", [101, 4_300, 4_301, 400_000])
@pytest.mark.parametrize(
    ("document", "place"),
    [
        ('{{"version":\n {}}}', "version"),
        ("version: 1\nevidence: {{max_leaves: {}}}", "evidence.max_leaves"),
        (
            "version: 1\nskills: {{p: {{operation: a, params: {{n: {{type: int, max: 0.{}}}}}}}}}",
            "skills.p.params.n.max",
        ),
    ],
)
def test_a_number_of_any_length_is_read_or_refused_wherever_it_runs(document: str, place: str, digits: int) -> None:
    said = refusal(document.format("9" * digits))  # of more than 4,300 digits Python's environment decides
    assert said == f"line 2: {place}: has more than 100 digits"


def test_a_number_of_many_digits_is_exact() -> None:
    policy = parse_policy("version: 1\nskills: {p: {operation: a, params: {n: {type: int, max: " + "9" * 100 + "}}}}")
    assert policy.skills["p"].params["n"].max == Decimal("9" * 100)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"])), st.sampled_from([None, 1, "\t"]))
def test_a_text_is_the_same_however_json_writes_it(notice: str, indent: int | str | None) -> None:  # contract section 5
    for ascii_only in (True, False):
        document = json.dumps({"version": 1, "notice": notice}, ensure_ascii=ascii_only, indent=indent)
        assert parse_policy(document).notice == notice


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\uD83D\uDE00!", "😀!"),
        (r"\\ud83d\\ude00", r"\ud83d\ude00"),  # a backslash and letters
        (r"\\\ud83d\ude00", "\\😀"),
    ],
)
def test_a_character_that_json_escapes_as_two(written: str, meant: str) -> None:
    assert parse_policy(f'{{"version": 1, "notice": "{written}"}}').notice == meant


def test_half_a_character_is_refused_and_yaml_keeps_its_own_escapes() -> None:
    for half in (r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83d\u0041"):
        assert refusal(f'{{"version": 1,\n "notice": "{half}"}}').startswith("line 2: ")
    assert parse_policy(r"{version: 1, notice: '\ud83d\ude00'}").notice == r"\ud83d\ude00"


def test_a_document_that_is_too_large_or_too_deep_is_refused() -> None:
    assert refusal("version: 1\nnotice: " + "x" * MAX_CHARACTERS).startswith(
        "line 1: the document has more than 500000"
    )
    assert refusal("[" * 100_000).startswith("line 1: ")
    assert refusal("{a: " * 5_000 + "1" + "}" * 5_000).startswith("line 1: ")
    laughs = "version: 1\na: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(9))
    assert "aliases are not allowed" in refusal(laughs)


def test_no_refusal_quotes_a_value() -> None:
    for text in (
        "version: hunter2",
        "version: 1\nstale: {hold: hunter2}",
        "version: 1\nopen_rooms: hunter2",
        "version: 1\ntools: {a: {audience: hunter2}}",
        "version: 1\nskills: {p: {operation: a, unique: hunter2}}",
        "version: 1\ninterlock: {approvers: [hunter2]}",
    ):
        assert "hunter2" not in refusal(text)


@settings(max_examples=300)
@given(st.text(max_size=200))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    for document in (text, f"version: 1\n{text}", f"version: 1\nnotice: {text}"):
        try:
            policy = parse_policy(document)
        except PolicyInvalid as error:
            said = str(error)
        else:
            said = "line 1: a policy" if isinstance(policy, Policy) else "neither"
        assert said.startswith("line ")


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_JSON = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner))


@settings(max_examples=200)
@given(st.sampled_from(sorted(Policy.model_fields)), _JSON)
def test_any_json_in_any_place_is_a_policy_or_refused(key: str, value: object) -> None:
    document = json.dumps({"version": 1} | {key: value})
    try:
        parsed = parse_policy(document)
    except PolicyInvalid as error:
        assert str(error).startswith("line 1: ")  # noqa: PT017  either outcome is right
    else:
        assert isinstance(parsed, Policy)
