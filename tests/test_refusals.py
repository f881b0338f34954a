"""The page on refusals has a way on for every code."""

from __future__ import annotations

import re
from pathlib import Path

from turngate.schemas.shapes import Code
from turngate.schemas.ways_on import WAYS_ON

PAGE = Path(__file__).parents[1] / "docs" / "refusals.md"


def test_every_code_has_a_way_on() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert all(len(row) == 5 and all(cell.strip() for cell in row[1:4]) for row in rows)
    named = [code for row in rows for code in re.findall(r"`([a-z_]+)`", row[1])]
    assert sorted(named) == sorted(code.value for code in Code)
    ways = {code: row[3].strip() for row in rows for code in re.findall(r"`([a-z_]+)`", row[1])}
    assert ways == WAYS_ON  # which is what `turngate explain` says
