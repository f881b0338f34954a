"""The examples of the documentation run, and say what the documentation says that they do."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker import free_port

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "agents.md").read_text("utf-8")
#: Started by the page's own commands.
FIRST = "first_agent"
OTHERS = sorted(path.stem for path in (DOCS / "examples").glob("*.py") if path.stem != FIRST)


@pytest.mark.parametrize("name", OTHERS)
def test_an_example_says_what_the_documentation_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "examples" / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert f"$ python docs/examples/{name}.py\n{said}```" in PAGE


def test_an_example_runs_where_there_is_no_pytest() -> None:
    """An agent's own environment has none; the fixture is for whoever has."""
    program = "import runpy, sys; sys.modules['pytest'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    command = [sys.executable, "-c", program, str(DOCS / "examples" / "narrower.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr, done.stdout != "") == (0, "", True)


def test_the_commands_of_the_page_lead_from_nothing_to_a_guarded_agent(tmp_path: Path) -> None:
    """But for `pip`, as they stand there; on a port that is free."""
    block = re.search(r"```sh\npip install 'turngate\[gateway\]'\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    commands = block[1].replace("8080", str(free_port())).replace("docs/examples", str(DOCS / "examples"))
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
    path = f"{Path(sys.executable).parent}:{plain['PATH']}"
    script = f"set -e\ntrap 'kill %1; wait' EXIT\n{commands}"
    environment = plain | {"PATH": path}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "You asked: hello?\n", done.stderr


def test_the_agent_that_the_page_shows_is_the_one_that_runs() -> None:
    shown = re.search(r"```python\n(async def answer\(gate: Gate.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert shown[1] in (DOCS / "examples" / f"{FIRST}.py").read_text("utf-8")
