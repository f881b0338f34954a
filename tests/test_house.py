"""The house stands as it is drawn: imports point one way, the engine is pure, and a wheel holds every room."""

from __future__ import annotations

import shutil
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.wheels import BIN, ROOT, built, installed, run, tracked

CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = {
    name.removeprefix("turngate."): ROOT / path for name, path in CONFIG["tool"]["setuptools"]["package-dir"].items()
}
#: What an agent's own environment imports without any extra.
BASE = (
    "turngate.schemas.codec",
    "turngate.processors.engine",
    "turngate.streams.local",
    "turngate.client",
    "turngate.client.sync",
    "turngate.cli.main",
)


@pytest.mark.parametrize(
    "line",
    [
        "import schemas",
        "import schemas.codec",
        "from schemas import codec",
        "from schemas.codec import Codec",
        "from processors.engine import Engine",
        "import streams.log",
        "import connectors",
        "import sinks",
        "from demo import run",
        "import cli",
    ],
)
def test_a_folder_imported_without_its_house_is_a_lint_error(line: str) -> None:
    done = run(BIN / "ruff", "check", "--stdin-filename", "streams/x.py", "--select", "TID", "-", text=line + "\n")
    assert done.returncode == 1
    assert "TID251" in done.stdout


def test_the_same_with_its_house_is_none() -> None:
    lines = "from turngate.schemas.codec import Codec\nimport turngate.streams.log\n"
    done = run(BIN / "ruff", "check", "--stdin-filename", "streams/x.py", "--select", "TID", "-", text=lines)
    assert done.returncode == 0, done.stdout


def test_imports_point_one_way() -> None:
    done = run(BIN / "lint-imports", "--no-logo", "--no-cache")
    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("schemas/shapes.py", "import turngate.processors.errors", "Imports point one way BROKEN"),
        ("processors/errors.py", "import turngate.streams.log", "Imports point one way BROKEN"),
        ("streams/log.py", "import turngate.connectors", "Imports point one way BROKEN"),
        ("connectors/__init__.py", "import turngate.sinks", "Imports point one way BROKEN"),
        ("client/gate.py", "import turngate.streams.log", "The client needs records alone"),
        ("client/testing/__init__.py", "import turngate.connectors", "The client needs records alone"),
        ("processors/errors.py", "import time", "The engine is pure"),
        ("processors/errors.py", "import datetime", "The engine is pure"),
        ("schemas/shapes.py", "import os", "The engine is pure"),  # what the engine imports of ours is held to it too
    ],
)
def test_an_import_that_points_the_other_way_is_an_error(tmp_path: Path, file: str, line: str, contract: str) -> None:
    house = tmp_path / "turngate"
    for name, folder in FOLDERS.items():
        shutil.copytree(folder, house / name, ignore=shutil.ignore_patterns("__pycache__", "*.avsc"))
    broken = house / file
    broken.write_text(f"{broken.read_text('utf-8')}\n{line}\n", "utf-8")
    done = run(
        BIN / "lint-imports", "--no-logo", "--no-cache", ROOT / "pyproject.toml", cwd=tmp_path, PYTHONPATH=str(tmp_path)
    )
    assert done.returncode == 1, done.stdout
    assert contract in " ".join(done.stdout.split())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


def _sources() -> set[str]:
    """Every file of the packages as it must lie in the wheel."""
    return {
        f"turngate/{name}"
        for name in tracked()
        if name.split("/")[0] in FOLDERS and "/" in name and not name.endswith(".md")
    }


def test_the_wheel_holds_every_file_of_every_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        entry_points = archive.read(next(n for n in archive.namelist() if n.endswith("entry_points.txt"))).decode()
    assert inside == _sources()
    assert "turngate = turngate.cli.main:main" in entry_points
    assert "turngate = turngate.streams.kafka.transport:Transport" in entry_points


def test_every_module_can_be_imported_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    installed(wheel, tmp_path)
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in _sources()
        if name.endswith(".py") and not name.endswith("__main__.py")
    )
    check = (
        "import importlib, sys\n"
        "for name in sys.argv[2:]:\n"
        "    module = importlib.import_module(name)\n"
        "    assert module.__file__.startswith(sys.argv[1]), module.__file__\n"
    )
    done = run(sys.executable, "-c", check, tmp_path, *modules, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_a_base_install_has_engine_embedded_log_and_command_line_and_no_broker(wheel: Path, tmp_path: Path) -> None:
    """Only what the wheel itself asks for, in an environment of its own; the versions are those of the lock file."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    done = run(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--constraint", _constraints(tmp_path), wheel
    )
    assert done.returncode == 0, done.stderr
    done = run(python, "-c", "import " + ", ".join(BASE), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "env" / "bin" / "turngate", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "worker" in done.stdout
    done = run(python, "-c", "import aiokafka", cwd=tmp_path)
    assert "ModuleNotFoundError" in done.stderr


def _constraints(folder: Path) -> Path:
    """The lock file without its hashes, which pip does not take for a wheel that is built here."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    path = folder / "constraints.txt"
    path.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line.split(";")[0]), "utf-8")
    return path
