"""A compiled engine decides what the interpreted one decides, byte for byte; whoever wants none needs no compiler."""

from __future__ import annotations

import json
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.comparing_builds import STREAMS
from tests.wheels import ROOT, built, installed, run

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a compiled wheel's files; not optimised, which makes the same of the sources in half the time."""
    folder = tmp_path_factory.mktemp("compiled")
    wheel = built(folder, TURNGATE_COMPILE="1", TURNGATE_COMPILE_LEVEL="0")
    return installed(wheel, folder / "site")


def test_what_is_edited_is_never_shadowed_by_what_was_compiled() -> None:
    done = run(sys.executable, "setup.py", "editable_wheel", TURNGATE_COMPILE="1")
    assert done.returncode == 1
    assert "stays Python" in done.stderr
    assert not list((ROOT / "processors").glob("*.so"))


def test_the_library_is_inside_of_turngate_and_every_module_is_there_as_python_too(compiled: Path) -> None:
    assert {path.name for path in compiled.iterdir() if path.suffix != ".dist-info"} == {"turngate", "bin"}
    made = {str(path.relative_to(compiled)).removesuffix(SUFFIX) for path in compiled.rglob("*.so")}
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["turngate"]["compiled"]
    names = {f"turngate/{package.replace('.', '/')}/{name}" for package, some in listed.items() for name in some}
    assert made == names | {"turngate/compiled__mypyc"}
    assert all((compiled / f"{name}.py").exists() for name in names)


def test_random_streams_come_to_the_same_records_and_the_same_state(compiled: Path) -> None:
    interpreted = run(sys.executable, "-m", "tests.comparing_builds", PYTHONPATH=str(ROOT / "typings"))
    found = run(sys.executable, "-m", "tests.comparing_builds", PYTHONPATH=str(compiled))
    assert (interpreted.returncode, found.returncode) == (0, 0), interpreted.stderr + found.stderr
    before, *expected = interpreted.stdout.splitlines()
    after, *lines, verdicts = found.stdout.splitlines()
    assert (before, after) == (".py", ".so")
    assert [*lines, verdicts] == expected
    assert len(lines) == STREAMS
    decided = json.loads(verdicts)
    assert all(decided[what] > STREAMS for what in ("deliver", "hold", "drop", "decision_error"))


def test_the_golden_streams_come_to_what_is_expected(compiled: Path) -> None:
    command = f"{compiled / 'bin' / 'turngate'} apply {{events}}"
    done = run(sys.executable, ROOT / "tests" / "golden" / "check.py", command, PYTHONPATH=str(compiled))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "120 passed, 0 failed"
