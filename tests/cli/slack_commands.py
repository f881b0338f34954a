"""How the tests run `turngate events` and `turngate roster` as processes against the tests' Slack."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import INSTALLED
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


class Running:
    """A command, and what it says on standard error."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self._said = said

    @property
    def said(self) -> str:
        """Everything so far."""
        return self._said.read_text("utf-8")

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until it says this."""
        deadline = time.monotonic() + 60
        while (found := re.search(pattern, self.said)) is None:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)
        return found

    def stop(self) -> None:
        """SIGTERM, which it obeys."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said


@contextmanager
def running(folder: Path, slack: Slack, file: Path, *command: object) -> Iterator[Running]:
    """A command until the end of the block, killed if it has not ended by then."""
    said = folder / f"{command[0]}-{time.monotonic_ns()}"
    words = [str(INSTALLED), *map(str, command), "--slack-file", str(file), "--slack-api", slack.url]
    with said.open("wb") as out, subprocess.Popen(words, stderr=out, env=os.environ) as process:
        try:
            yield Running(process, said)
        finally:
            process.kill()
