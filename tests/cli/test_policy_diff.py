"""`turngate policy diff`: what does a newer document tighten, and what does it loosen?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Turngate
from turngate.cli.policy_diff import duration
from turngate.schemas.policy import duration_ms

OLD = """\
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}}
freshness: {destination: 60s}
trusted_bots: ["slack:T1/UX"]
tools: {wiki: {audience: {workspace: "slack:T1"}}}
skills: {refund: {operation: crm.refund, params: {amount: {type: price, max: 500}}}}
"""
NEW = """\
version: 2
agents: {mesh: {accounts: ["slack:T1/UBOT"]}, scout: {}}
freshness: {destination: 45s}
trusted_bots: ["slack:T1/UY"]
notice: null
tools: {wiki: {audience: public}}
skills: {refund: {operation: crm.refund, params: {amount: {type: price, max: 400}}}}
"""
SAID = """\
version 1 -> 2: 2 tightened, 2 loosened, 1 both, 1 neither
tightens, at once and everywhere:
  freshness.destination: 1m -> 45s
  skills.refund.params.amount.max: 500 -> 400
loosens, for rooms that start after it:
  agents.scout: named now
  tools.wiki.audience: {"workspaces": ["slack:T1"]} -> public
tightens and loosens: some of what was permitted is not, and the other way round:
  trusted_bots: - slack:T1/UX, + slack:T1/UY
neither tightens nor loosens:
  notice: I can't check who can read this room right now. -> null
"""


@pytest.fixture
def documents(tmp_path: Path) -> tuple[Path, Path]:
    """A document, and the one that is to follow it."""
    (tmp_path / "old.yaml").write_text(OLD, "utf-8")
    (tmp_path / "new.yaml").write_text(NEW, "utf-8")
    return tmp_path / "old.yaml", tmp_path / "new.yaml"


def test_every_difference_is_said_under_what_it_does(turngate: Turngate, documents: tuple[Path, Path]) -> None:
    result = turngate("policy", "diff", *documents)
    assert (result.exit_code, result.stdout, result.stderr) == (0, SAID, "")


def test_json_is_for_other_programs(turngate: Turngate, documents: tuple[Path, Path]) -> None:
    told = json.loads(turngate("policy", "diff", *documents, "--json").stdout)
    assert (told["old"], told["new"]) == (1, 2)
    assert told["counts"] == {"tightens": 2, "loosens": 2, "both": 1, "neither": 1}
    changes = {change["field"]: change for change in told["changes"]}
    assert changes["freshness.destination"] == {
        "field": "freshness.destination",
        "path": ["freshness", "destination"],
        "effect": "tightens",
        "old": "1m",
        "new": "45s",
    }
    assert changes["agents.scout"]["new"] == {"accounts": []}
    assert "old" not in changes["agents.scout"]  # absent, where the notice is null
    assert changes["notice"]["new"] is None
    assert changes["tools.wiki.audience"]["new"] == "public"


def test_a_loosening_fails_only_where_that_is_asked_for(turngate: Turngate, documents: tuple[Path, Path]) -> None:
    assert turngate("policy", "diff", *documents, "--fail-on-loosening").exit_code == 1
    documents[1].write_text(OLD.replace("version: 1", "version: 2").replace("60s", "30s"), "utf-8")
    tightening = turngate("policy", "diff", *documents, "--fail-on-loosening")
    assert (tightening.exit_code, tightening.stdout.splitlines()[0]) == (0, "version 1 -> 2: 1 tightened")
    back = turngate("policy", "diff", *reversed(documents), "--fail-on-loosening")
    assert back.exit_code == 1
    assert "version 1 is not greater than 2, so it would not be taken up" in back.stderr


def test_documents_that_say_the_same_do_not_differ(turngate: Turngate, documents: tuple[Path, Path]) -> None:
    result = turngate("policy", "diff", documents[0], "-", input=OLD)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "version 1 -> 1: no other change\n", "")


def test_an_invalid_document_is_exit_code_2(turngate: Turngate, documents: tuple[Path, Path]) -> None:
    documents[1].write_text("version: 2\nstale: {then: shout}\n", "utf-8")
    result = turngate("policy", "diff", *documents)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"turngate: {documents[1]}: line 2: stale.then: must be downgrade or drop\n"
    assert "only one of the two" in turngate("policy", "diff", "-", "-").stderr


@pytest.mark.parametrize("text", ["0s", "1500ms", "59s", "1m", "90m", "1h", "365d"])
def test_a_length_of_time_is_said_as_documents_write_it(text: str) -> None:
    assert duration(duration_ms(text)) == text
