"""Decides whether the engine is installed as C: only where `TURNGATE_COMPILE=1` asks for it (docs/operations.md).

`pip install .` needs no compiler and installs Python. With `TURNGATE_COMPILE=1` mypyc compiles what drafts run through,
as pyproject.toml lists it, which needs a C compiler; what is decided is the same (tests/test_compiled.py), in less time
(docs/benchmarks.md).
`TURNGATE_COMPILE_LEVEL` is the C compiler's level of optimisation, 2 where it is not set.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
#: What the sources are known to compile with.
MYPYC = ["mypy==2.4.*", "types-PyYAML"]
#: Commands that ask what a build needs, or what it will be called, and build nothing.
ASKING = {"egg_info", "dist_info"}


def requirements() -> list[str]:
    """What compiling needs beside a compiler: mypyc, and what the sources import, since it reads their types."""
    return [*MYPYC, *CONFIG["project"]["dependencies"]]


def extensions() -> list[Extension]:
    """The modules that are compiled, and the one library inside `turngate` that holds them all."""
    from mypyc.build import mypycify  # noqa: PLC0415 - is there only where it was asked for

    house = ROOT / "build" / "house"
    house.mkdir(parents=True, exist_ok=True)
    if not (house / "turngate").exists():
        (house / "turngate").symlink_to(ROOT, target_is_directory=True)
    os.environ["MYPYPATH"] = str(house)
    modules = [
        (house / "turngate").joinpath(*package.split("."), f"{name}.py")
        for package, names in CONFIG["tool"]["turngate"]["compiled"].items()
        for name in names
    ]
    return mypycify(
        [f"--config-file={ROOT / 'pyproject.toml'}", *map(str, modules)],
        opt_level=os.environ.get("TURNGATE_COMPILE_LEVEL", "2"),
        debug_level="0",
        group_name="turngate.compiled",
    )


if os.environ.get("TURNGATE_COMPILE") == "1":
    if "editable_wheel" in sys.argv:  # its libraries would lie beside the sources, and run in place of what is edited
        sys.exit("TURNGATE_COMPILE=1 is for `pip install .`: what is installed with --editable stays Python.")
    setup(setup_requires=requirements(), ext_modules=[] if ASKING.intersection(sys.argv) else extensions())
else:
    setup()
