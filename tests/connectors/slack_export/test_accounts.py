"""Who an account is: a full member only where the export says so (R-ROOM-7), in the workspace that the export names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connectors.slack_export.workspace import NS, changed, fields, read, user, workspace
from turngate.connectors.slack_export import ExportError


def kind(root: Path, entry: dict[str, Any], **how: Any) -> str:
    """What the listing says of an account, entered beside those of the workspace."""
    tree = workspace()
    tree["users.json"].append(entry)
    tree["channels.json"][0]["members"].append(entry["id"])
    (listing,) = fields(root, tree, "MembershipPage", **how)
    return str(listing["members"][-1]["kind"])


def test_a_full_member_is_one_whose_every_flag_says_so(tmp_path: Path) -> None:
    assert kind(tmp_path, user("UX")) == "member"


@pytest.mark.parametrize("flag", ["is_bot", "is_restricted", "is_ultra_restricted"])
def test_a_missing_flag_makes_a_guest(tmp_path: Path, flag: str) -> None:
    assert kind(tmp_path, {k: v for k, v in user("UX").items() if k != flag}) == "guest"
    assert kind(tmp_path, user("UX") | {flag: None}) == "guest"


def test_guests_are_guests(tmp_path: Path) -> None:
    assert kind(tmp_path, user("UX", is_restricted=True)) == "guest"
    assert kind(tmp_path, user("UX", is_ultra_restricted=True, is_restricted=True)) == "guest"


def test_a_deleted_account_of_which_slack_says_no_more_is_a_guest(tmp_path: Path) -> None:
    assert kind(tmp_path, {"id": "UX", "team_id": "T1", "deleted": True}) == "guest"


def test_bots_are_bots(tmp_path: Path) -> None:
    assert kind(tmp_path, user("UX", is_bot=True)) == "bot"
    assert kind(tmp_path, user("UX", is_workflow_bot=True)) == "bot"
    assert kind(tmp_path, user("USLACKBOT")) == "bot"


def test_the_agents_own_account_is_self(tmp_path: Path) -> None:
    assert kind(tmp_path, user("UX", is_bot=True), accounts=["UX"]) == "self"


def test_an_account_of_another_workspace_is_external(tmp_path: Path) -> None:
    assert kind(tmp_path, user("UX", team_id="T9"), team="T1") == "external"
    assert kind(tmp_path, user("UX", is_stranger=True)) == "external"


def test_an_organisations_account_counts_where_its_workspaces_are_named(tmp_path: Path) -> None:
    """Accounts of Enterprise Grid may have no team_id but a list of workspaces; with neither they are not known."""
    entry = {k: v for k, v in user("WX").items() if k != "team_id"}
    assert kind(tmp_path, entry | {"enterprise_user": {"id": "WX", "teams": ["T1", "T2"]}}) == "member"
    assert kind(tmp_path, entry | {"enterprise_user": {"id": "WX", "teams": ["T2"]}}) == "external"
    assert kind(tmp_path, entry) == "external"


def test_the_namespace_is_the_workspaces(tmp_path: Path) -> None:
    assert read(tmp_path, workspace()).summary.namespace == NS


def test_without_a_team_id_no_workspace_is_known(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"users\.json: no account has a team_id"):
        read(tmp_path, changed("users.json", [{"id": "UALEX"}]))


def test_of_several_team_ids_one_must_be_named(tmp_path: Path) -> None:
    tree = changed("users.json", [user("UALEX"), user("UEXT", team_id="T9")])
    with pytest.raises(ExportError, match=r"users\.json: accounts have 2 different team_ids"):
        read(tmp_path, tree)
    assert read(tmp_path, tree, team="T1").summary.namespace == "slack:T1"
    with pytest.raises(ExportError, match="of the workspace that was named"):
        read(tmp_path, tree, team="T5")


@pytest.mark.parametrize(
    ("users", "what"),
    [
        ([{"team_id": "T1"}], "entry 1: id is no id"),
        ([user("UALEX"), user("U/../X")], "entry 2: id is no id"),
        ([user("UALEX"), user("UALEX", is_bot=True)], "entry 2: this id is there twice"),
        ([user("UALEX", team_id=5)], "entry 1: team_id is no id"),
    ],
)
def test_accounts_that_cannot_be_told_apart_are_refused(tmp_path: Path, users: list[Any], what: str) -> None:
    with pytest.raises(ExportError, match=what):
        read(tmp_path, changed("users.json", users), keep_going=True)
