"""How the tests run `turngate events` and `turngate roster` as processes against the tests' Slack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli import processes
from tests.cli.processes import Running
from tests.slack import Slack, Workspace
from tests.slack.server import APP_TOKEN, SIGNING_SECRET


def slack_file(path: Path, *homes: Workspace, tenant: str = "acme", mode: int = 0o600) -> Path:
    """The document of these workspaces, each with the agent `mesh`."""
    apps = [{"id": "A1", "signing_secret": SIGNING_SECRET, "app_token": APP_TOKEN}]
    workspaces = [
        {"app": h.app, "team": h.id, "tenant": tenant, "agent": "mesh", "bot_user": h.bot, "token": h.token}
        for h in homes
    ]
    path.write_text(json.dumps({"apps": apps, "workspaces": workspaces}), "utf-8")
    path.chmod(mode)
    return path


@contextmanager
def running(folder: Path, slack: Slack, file: Path, *command: object) -> Iterator[Running]:
    """A command around the tests' Slack until the end of the block."""
    with processes.running(folder, *command, "--slack-file", file, "--slack-api", slack.url) as process:
        yield process
