"""What `docs/threat-model.md` says is seen somewhere is seen there: the tests and scenarios that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
SCENARIOS = set(re.findall(r"`(R-[A-Z]+-\d+-[a-z0-9-]+)`", PAGE))
TESTS = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE))
#: Its tables, each a list of lines; those of attacks have a column that says where they are seen to fail.
TABLES = [block.split("\n") for block in PAGE.split("\n\n") if block.startswith("|")]
ATTACKS = [row for head, _, *rows in TABLES if head.endswith("| seen in |") for row in rows]


def test_every_scenario_and_test_that_it_names_is_there() -> None:
    assert len(SCENARIOS) > 40
    assert {name for name in SCENARIOS if not (ROOT / "tests" / "scenarios" / f"{name}.yaml").is_file()} == set()
    assert len(TESTS) > 25
    assert {(file, name) for file, name in TESTS if not _there(file, name)} == set()


def test_every_attack_that_is_stopped_names_where_that_is_seen() -> None:
    assert len(ATTACKS) > 45
    cells = [row.strip("| ").rpartition(" | ")[2] for row in ATTACKS]
    assert [seen for seen in cells if re.search(r"`(R-[A-Z]+-\d+-|tests/)", seen) is None] == []


def test_every_rule_that_it_cites_has_a_scenario_or_a_test() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    known = "\n".join([*texts, *(path.stem for path in (ROOT / "tests" / "scenarios").glob("*.yaml"))])
    cited = set(re.findall(r"R-[A-Z]+-\d+", PAGE)) - {"R-DLV-4"}  # which says what is outside
    assert {rule for rule in cited if re.search(rf"{rule}(?!\d)", known) is None} == set()


def _there(file: str, name: str) -> bool:
    path = ROOT / file
    if not path.is_file():
        return False
    tests = (ast.FunctionDef, ast.AsyncFunctionDef)
    named = {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, tests)}
    return name == "" or name in named
