"""Where tokens and secrets come from, and that no message shows one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turngate.connectors.slack.installations import read_installations
from turngate.streams.log import LogError

APP = {"id": "A1", "signing_secret": "s3cr3t", "app_token": "xapp-s3cr3t"}
WORKSPACE = {
    "app": "A1",
    "team": "T1",
    "tenant": "acme",
    "agent": "mesh",
    "bot_user": "UBOT",
    "token": "xoxb-s3cr3t",
}


def document(**more: Any) -> str:
    return json.dumps({"apps": [APP], "workspaces": [WORKSPACE]} | more)


def private(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    found = read_installations(private(tmp_path / "slack.json", document()), {})
    (one,) = found
    assert (one.account, one.room("C1"), one.token) == ("slack:T1/UBOT", "slack:T1/C1", "xoxb-s3cr3t")
    assert found.of("A1", "T1") is one
    assert "s3cr3t" not in repr(one) + repr(found.apps)


def test_from_the_environment(tmp_path: Path) -> None:
    assert len(list(read_installations(None, {"TURNGATE_SLACK": document()}))) == 1
    path = private(tmp_path / "slack.json", document())
    assert len(list(read_installations(None, {"TURNGATE_SLACK_FILE": str(path)}))) == 1


def test_a_rooms_token_is_that_of_its_own_workspace(tmp_path: Path) -> None:
    other = WORKSPACE | {"team": "T2", "token": "xoxb-other"}
    scout = WORKSPACE | {"app": "A2", "agent": "scout", "token": "xoxb-scout"}
    text = document(apps=[APP, {"id": "A2"}], workspaces=[WORKSPACE, other, scout])
    found = read_installations(private(tmp_path / "slack.json", text), {})

    def token(tenant: str, agent: str, room: str) -> str | None:
        one = found.of_room(tenant, agent, room)
        return None if one is None else one.token

    assert token("acme", "mesh", "slack:T1/C1") == "xoxb-s3cr3t"
    assert token("acme", "mesh", "slack:T2/C1") == "xoxb-other"
    assert token("acme", "scout", "slack:T1/C1") == "xoxb-scout"
    for who in (
        ("other", "mesh", "slack:T1/C1"),
        ("acme", "other", "slack:T1/C1"),
        ("acme", "mesh", "slack:T3/C1"),
        ("acme", "mesh", "teams:T1/C1"),
        ("acme", "mesh", "slack:T1/C1/1"),
    ):
        assert token(*who) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "it: "),
        ("{s3cr3t", "it: "),
        (document(workspaces=[WORKSPACE | {"token": ""}]), "workspaces.0.token: "),
        (document(workspaces=[WORKSPACE | {"token": "xoxb-s3cr3t\n"}]), "workspaces.0.token: "),
        (document(workspaces=[WORKSPACE | {"team": "T/s3cr3t"}]), "workspaces.0.team: "),
        (document(workspaces=[WORKSPACE | {"tenant": "Acme s3cr3t"}]), "workspaces.0.tenant: "),
        (document(workspaces=[WORKSPACE | {"secret": "s3cr3t"}]), "workspaces.0.secret: "),
        (document(workspaces=[WORKSPACE, WORKSPACE]), "is there twice"),
        (document(apps=[]), "app A1, which is not under apps"),
    ],
)
def test_what_is_no_document_is_named_and_not_quoted(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(LogError) as caught:
        read_installations(private(tmp_path / "slack.json", text), {})
    assert message in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = private(tmp_path / "slack.json", document(), mode)
    with pytest.raises(LogError, match=rf"others may use it \(mode {mode:o}\): chmod 600"):
        read_installations(path, {})


def test_both_and_none(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="both set"):
        read_installations(None, {"TURNGATE_SLACK": document(), "TURNGATE_SLACK_FILE": "x"})
    with pytest.raises(LogError, match="no Slack workspace: give --slack-file"):
        read_installations(None, {})
    with pytest.raises(LogError, match="No such file"):
        read_installations(tmp_path / "absent", {})
