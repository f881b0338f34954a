"""Decides how a wheel of what git has is built, and what runs from one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def run(
    *command: str | Path, cwd: Path = ROOT, text: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """A command, without what Python was told by the environment of the tests, and with `more` in it."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        command,
        cwd=cwd,
        input=text,
        env=plain | {"PATH": f"{BIN}:{plain['PATH']}", "COLUMNS": "200"} | more,
        capture_output=True,
        text=True,
        timeout=600,  # compiling takes a minute, and several of a machine that is busy
        check=False,
    )


def tracked() -> list[str]:
    """Every file that git has, or would have."""
    done = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert done.returncode == 0, done.stderr
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def built(folder: Path, **more: str) -> Path:
    """The wheel of what git has, built in a copy, so that nothing left over by an earlier build gets into it."""
    for name in tracked():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        if not (ROOT / name).is_symlink():
            shutil.copy2(ROOT / name, folder / "source" / name)
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    done = run(*command, cwd=folder / "source", **more)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl")
    return made


def installed(wheel: Path, folder: Path) -> Path:
    """A wheel's files in a folder that nothing else is in."""
    done = run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, wheel)
    assert done.returncode == 0, done.stderr
    return folder
