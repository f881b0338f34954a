"""The examples of the documentation run, and say what the documentation says that they do."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", sorted(path.stem for path in (DOCS / "examples").glob("*.py")))
def test_an_example_says_what_the_documentation_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "examples" / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert f"$ python docs/examples/{name}.py\n{said}```" in (DOCS / "agents.md").read_text("utf-8")
