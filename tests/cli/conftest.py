"""Decides how the tests call the command line: in this process, or as it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from turngate.cli.main import app

#: The command beside the interpreter that runs the tests.
INSTALLED = Path(sys.executable).with_name("turngate")
#: 2026-01-01T00:00:00Z.
AT = 1_767_225_600_000

Turngate = Callable[..., Result]
Line = tuple[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests reaches a command."""
    for name in [name for name in os.environ if name.startswith("TURNGATE_")]:
        if not name.startswith("TURNGATE_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def turngate() -> Turngate:
    """Runs a command in this process; `input` is its standard input."""

    def run(*arguments: object, **more: Any) -> Result:
        result = CliRunner().invoke(app, [str(a) for a in arguments], **more)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def installed(
    *arguments: object, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs the installed command in a process of its own."""
    whole = None if env is None else {**os.environ, **env}
    command = [str(INSTALLED), *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=whole, timeout=60, **more)


def written(path: Path, *lines: Line, tenant: str = "acme", at: int = AT) -> Path:
    """A file of records, one second after the other."""
    text = ""
    for number, (record, fields) in enumerate(lines):
        when = at + 1000 * number
        value = {"tenant": tenant, "at": when, **fields}
        text += json.dumps({"record": record, "at": when, "value": value}) + "\n"
    path.write_text(text, "utf-8")
    return path


POLICY = (
    "PolicyPublished",
    {"version": "1", "document": '{"version": 1, "agents": {"mesh": {"accounts": ["slack:T1/UBOT"]}}}'},
)
MESSAGE = (
    "MessageObserved",
    {
        "agent": "mesh",
        "room": "slack:T1/D1",
        "message": "slack:T1/D1/1",
        "author": "slack:T1/UALEX",
        "author_kind": "person",
        "text": "good morning",
    },
)
DRAFT = (
    "TurnDrafted",
    {
        "agent": "mesh",
        "turn": "t1",
        "room": "slack:T1/D1",
        "trigger": "message:slack:T1/D1/1",
        "renderings": [{"text": "hello"}],
    },
)


def listing(began: int) -> Line:
    """A complete listing of the direct room, begun at this time."""
    members = [{"reader": "slack:T1/UALEX", "kind": "member", "workspaces": []}]
    info = {"kind": "direct", "visibility": "members"}
    page = {"agent": "mesh", "room": "slack:T1/D1", "refresh": "r1", "page": 0, "last": True, "started_at": began}
    return "MembershipPage", {**page, "info": info, "members": members}


#: A day on which one draft is delivered.
DAY = (POLICY, listing(AT + 1000), MESSAGE, DRAFT)
