"""Decides how a scenario file says that it cannot be used."""

from __future__ import annotations

from pathlib import Path


class ScenarioError(ValueError):
    """A scenario file that does not say what contract section 8 asks for. The message names the file and the step."""

    def __init__(self, path: Path, where: str, what: str) -> None:
        super().__init__(f"{path}: {where}: {what}" if where else f"{path}: {what}")


class Wrong(ValueError):
    """What is wrong inside one step; whoever knows the file and the step makes a `ScenarioError` of it."""
