"""A small workspace export, written as Slack writes one, for tests to change and read."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Any

from turngate.connectors.slack_export import Export, RoomEvent, read_export

Tree = dict[str, Any]
NS = "slack:T1"
MEMBER = {"is_bot": False, "is_restricted": False, "is_ultra_restricted": False}
UNSHARED = {"is_shared": False, "is_ext_shared": False, "is_pending_ext_shared": False}


def user(uid: str, **more: Any) -> dict[str, Any]:
    return {"id": uid, "team_id": "T1", "name": uid.lower(), "deleted": False, **MEMBER, **more}


def said(ts: str, uid: str = "UALEX", text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"type": "message", "ts": ts, "user": uid, "text": text, **more}


def workspace() -> Tree:
    """Two people and a bot; one public channel, which is stated not to be shared, and one message in it."""
    return {
        "users.json": [user("UALEX"), user("UMORGAN"), user("UBOT", is_bot=True)],
        "channels.json": [{"id": "C1", "name": "general", "members": ["UALEX", "UMORGAN"], **UNSHARED}],
        "general/2026-01-05.json": [said("1767600000.000100")],
    }


def changed(path: str, value: Any) -> Tree:
    """The workspace with one file replaced."""
    return {**workspace(), path: value}


def day(*entries: Any) -> Tree:
    """The workspace with these entries in its channel."""
    return changed("general/2026-01-05.json", list(entries))


def content(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(copy.deepcopy(value)).encode()


def folder(root: Path, tree: Tree) -> Path:
    for path, value in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content(value))
    return root


def archive(path: Path, tree: Tree) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in tree.items():
            file.writestr(name, content(value))
    return path


def read(root: Path, tree: Tree, **how: Any) -> Export:
    return read_export(folder(root, tree), tenant="acme", agent="mesh", **how)


def events(root: Path, tree: Tree, record: str | None = None, **how: Any) -> list[RoomEvent]:
    with read(root, tree, **how) as export:
        return [e for e in export if record in (None, e.record)]


def fields(root: Path, tree: Tree, record: str, **how: Any) -> list[dict[str, Any]]:
    return [e.fields for e in events(root, tree, record, **how)]
