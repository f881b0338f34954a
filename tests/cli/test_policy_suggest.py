"""`turngate policy suggest`: what was seen and is not named gets the strictest entry, and a comment that says why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import AT, DAY, MESSAGE, Line, Turngate, listing, written
from turngate.schemas.policy import Policy, parse_policy

DIRECT = {"agent": "mesh", "room": "slack:T1/D1"}
OLD: dict[str, Any] = {
    "version": 7,
    "agents": {"mesh": {"accounts": ["slack:T1/UBOT"]}},
    "stale": {"hold": "1s", "then": "drop"},
    "tools": {"wiki": {"audience": "public"}},
    "operations": {"wiki.get": {"access": "read", "audience": "internal"}},
    "skills": {
        "pay": {"operation": "crm.pay", "params": {"amount": {"type": "price", "max": 99.5, "set_by": ["read"]}}}
    },
    "interlock": {"mode": "ask", "link_hosts": ["example.com"]},
}


def published(document: dict[str, Any]) -> Line:
    return "PolicyPublished", {"version": str(document["version"]), "document": json.dumps(document)}


def returned(call: str, server: str, turn: str) -> Line:
    result = {"server": server, "operation": "get", "call": call, "turn": turn, "fields": []}
    return "ToolReturned", DIRECT | result


def drafted(turn: str, **more: Any) -> Line:
    return "TurnDrafted", DIRECT | {"turn": turn, "trigger": "message:slack:T1/D1/1"} | more


#: Two tools, an action, and links; one of each is named.
SEEN = (
    returned("c1", "wiki", "t1"),
    returned("c2", "web", "t2"),
    returned("c3", "web", "t2"),
    drafted("t1", renderings=[{"text": "see https://example.com/a and https://evil.example/b"}]),
    drafted("t2", renderings=[{"text": "see https://evil.example/c"}]),
    drafted(
        "t3", action={"operation": "mail.send", "skill": "mail", "params": [{"name": "to", "value": "x@y.example"}]}
    ),
    drafted("t5", action={"operation": "mail.drop", "params": [{"name": "id", "value": "1"}]}),
    drafted("t4", action={"operation": "wiki.get", "skill": "pay"}),
)


@pytest.fixture
def suggested(turngate: Turngate, tmp_path: Path) -> str:
    log = tmp_path / "log"
    lines = written(tmp_path / "lines", published(OLD), listing(AT + 1000), MESSAGE, *SEEN)
    turngate("apply", lines, "--log", log)
    return turngate("policy", "suggest", "--tenant", "acme", "--log", log).stdout


def test_what_was_seen_and_is_not_named_is_proposed_with_what_stands_against_it(suggested: str) -> None:
    said = [line.strip() for line in suggested.splitlines()]
    for comment, entry in (
        ("# seen 2 times; source_unknown (1)", "web: {adapter: mcp, private: true, untrusted: true}"),
        ("# seen 2 times; undrafted_call (2)", "web.get: {access: write}"),
        ("# seen once; operation_unknown (1)", "mail.send: {access: write}"),
        ("# seen once; skill_unknown (1)", "mail:"),
        ("# seen once; skill_unknown (1)", "mail.drop:"),  # nobody has named it
        ("# seen 2 times; interlock_link (1)", "#     - evil.example"),
    ):
        assert (entry in said, said[said.index(entry) - 1]) == (True, comment)


def test_the_proposal_validates_and_keeps_what_there_was(turngate: Turngate, tmp_path: Path, suggested: str) -> None:
    (tmp_path / "next.yaml").write_text(suggested, "utf-8")
    checked = turngate("policy", "check", tmp_path / "next.yaml")
    assert (checked.exit_code, "valid, version 8: 1 agents, 2 tools, 4 operations, 3 skills" in checked.stdout) == (
        0,
        True,
    )
    new, old = parse_policy(suggested), parse_policy(json.dumps(OLD))
    for part in ("tools", "operations", "skills"):
        assert {name: getattr(new, part)[name] for name in getattr(old, part)} == getattr(old, part)
    rest = {name: getattr(new, name) for name in Policy.model_fields} | {
        name: getattr(old, name) for name in ("version", "tools", "operations", "skills")
    }
    assert Policy.model_construct(**rest) == old
    assert parse_policy(re.sub("^# (?= )", "", suggested, flags=re.MULTILINE)).interlock.link_hosts == (
        "example.com",
        "evil.example",
    )


def test_without_a_policy_and_with_names_that_are_no_yaml_it_validates_all_the_same(
    turngate: Turngate, tmp_path: Path
) -> None:
    """Names are others' words: none ends a line, a key or a comment."""
    name = "a: b\n# c: {[&x *y\u2028\U0001f600'\""
    act = drafted("t1", action={"operation": name, "skill": name, "params": [{"name": name, "value": "v"}]})
    said = drafted("t2", renderings=[{"text": "see bbc.co.uk and http://*.evil.example/x"}])
    lines = written(tmp_path / "lines", returned("c1", name, "t1"), act, said)
    turngate("apply", lines, "--log", tmp_path / "log")
    shown = turngate("policy", "suggest", "--tenant", "acme", "--log", tmp_path / "log").stdout
    policy = parse_policy(shown)
    assert (policy.version, set(policy.tools), set(policy.skills)) == (1, {name}, {name})
    assert set(policy.operations) == {name, f"{name}.get"}
    assert policy.interlock.link_hosts == ()
    named = parse_policy(re.sub("^# (?=interlock| )", "", shown, flags=re.MULTILINE))
    assert named.interlock.link_hosts == ("bbc.co.uk", "*.evil.example")


def test_where_everything_is_named_or_nothing_is_of_this_tenant_it_says_so(turngate: Turngate, tmp_path: Path) -> None:
    suggest = ("policy", "suggest", "--log", tmp_path / "log", "--tenant", "acme")
    turngate("apply", written(tmp_path / "lines", *DAY, *SEEN[:1], tenant="globex"), "--log", tmp_path / "log")
    mistyped = turngate(*suggest)
    assert (mistyped.exit_code, mistyped.stdout) == (2, "")
    assert mistyped.stderr == "turngate: nothing of a tenant acme was recorded here; check --tenant\n"
    turngate("apply", written(tmp_path / "lines", *DAY, at=AT + 3_600_000), "--log", tmp_path / "log")
    done = turngate(*suggest)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "everything that was seen of acme is named" in done.stderr
