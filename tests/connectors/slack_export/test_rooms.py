"""Who can read a conversation, as far as an export establishes it; what it does not say stays unknown (R-ROOM-7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connectors.slack_export.workspace import NS, UNSHARED, changed, events, fields, read, said, user, workspace
from turngate.connectors.slack_export import ExportError


def listed(root: Path, file: str, entry: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The listing of C9, which is entered in one of the indexes."""
    tree = workspace() | {file: [*workspace().get(file, []), {"id": "C9", "members": ["UALEX", "UMORGAN"], **entry}]}
    return next(f for f in fields(root, tree, "MembershipPage", **how) if f["room"] == f"{NS}/C9")


def test_a_public_channel_that_is_said_not_to_be_shared_is_read_by_its_workspace(tmp_path: Path) -> None:
    info = listed(tmp_path, "channels.json", {"name": "nine", **UNSHARED})["info"]
    assert (info["kind"], info["visibility"], info["workspaces"]) == ("channel", "workspace", [NS])


def test_a_missing_sharing_flag_is_not_false(tmp_path: Path) -> None:
    for flag in UNSHARED:
        entry = {k: v for k, v in UNSHARED.items() if k != flag}
        assert listed(tmp_path, "channels.json", {"name": "nine", **entry})["info"]["visibility"] is None


def test_an_operator_may_declare_that_nothing_is_shared(tmp_path: Path) -> None:
    info = listed(tmp_path, "channels.json", {"name": "nine"}, not_shared=True)["info"]
    assert info["visibility"] == "workspace"


@pytest.mark.parametrize(
    "sign",
    [
        {"is_shared": True},
        {"is_ext_shared": True},
        {"is_pending_ext_shared": True},
        {"is_org_shared": True},
        {"is_ext_shared": "yes"},
        {"shared_team_ids": ["T1", "T9"]},
        {"connected_team_ids": ["T9"]},
        {"pending_shared": ["T9"]},
        {"pending_connected_team_ids": "T9"},
    ],
)
@pytest.mark.parametrize("file", ["channels.json", "groups.json", "mpims.json", "dms.json"])
def test_any_sign_of_sharing_opens_a_conversation(tmp_path: Path, file: str, sign: dict[str, Any]) -> None:
    entry = {**UNSHARED, "shared_team_ids": ["T1"], **sign}
    assert listed(tmp_path, file, entry, not_shared=True)["info"]["visibility"] == "open"


def test_lists_that_name_only_this_workspace_are_no_sign_of_sharing(tmp_path: Path) -> None:
    entry = {**UNSHARED, "shared_team_ids": ["T1"], "pending_shared": [], "connected_team_ids": []}
    assert listed(tmp_path, "channels.json", entry)["info"]["visibility"] == "workspace"


def test_a_private_channel_is_read_by_its_members(tmp_path: Path) -> None:
    listing = listed(tmp_path, "groups.json", {"name": "nine", **UNSHARED})
    assert (listing["info"]["kind"], listing["info"]["visibility"]) == ("channel", "members")
    assert [m["reader"] for m in listing["members"]] == [f"{NS}/UALEX", f"{NS}/UMORGAN"]


def test_direct_messages_between_accounts_of_the_workspace_need_no_flags(tmp_path: Path) -> None:
    """Both sides of a direct message are named, and are accounts of this workspace: nobody else can read it."""
    direct = listed(tmp_path / "direct", "dms.json", {})["info"]
    assert (direct["kind"], direct["visibility"]) == ("direct", "members")
    group = listed(tmp_path / "group", "mpims.json", {})["info"]
    assert (group["kind"], group["visibility"]) == ("group", "members")


def test_a_direct_message_with_an_account_that_is_not_listed_is_not_established(tmp_path: Path) -> None:
    assert listed(tmp_path, "dms.json", {"members": ["UALEX", "UWHO"]})["info"]["visibility"] is None


def test_a_direct_message_with_an_account_of_another_workspace_is_open(tmp_path: Path) -> None:
    tree = workspace() | {"dms.json": [{"id": "D1", "members": ["UALEX", "UEXT"]}]}
    tree["users.json"].append(user("UEXT", team_id="T9"))
    pages = fields(tmp_path, tree, "MembershipPage", team="T1")
    listing = next(p for p in pages if p["room"] == f"{NS}/D1")
    assert listing["info"]["visibility"] == "open"
    assert listing["members"][1] == {"reader": "slack:T9/UEXT", "kind": "external", "workspaces": []}


@pytest.mark.parametrize(("file", "private"), [("channels.json", True), ("groups.json", False), ("dms.json", "no")])
def test_an_entry_that_contradicts_its_file_establishes_nothing(tmp_path: Path, file: str, private: Any) -> None:
    assert listed(tmp_path, file, {**UNSHARED, "is_private": private})["info"]["visibility"] is None


def test_a_member_of_another_workspace_contradicts_a_channel_that_is_not_shared(tmp_path: Path) -> None:
    tree = workspace()
    tree["users.json"].append(user("UEXT", team_id="T9"))
    tree["channels.json"][0]["members"].append("UEXT")
    (listing,) = fields(tmp_path, tree, "MembershipPage", team="T1")
    assert listing["info"]["visibility"] is None


def test_strangers_who_wrote_there_outweigh_the_operators_declaration(tmp_path: Path) -> None:
    tree = workspace()
    tree["channels.json"] = [{"id": "C1", "name": "general", "members": ["UALEX"]}]
    assert fields(tmp_path, tree, "MembershipPage", not_shared=True)[0]["info"]["visibility"] == "workspace"
    tree["general/2026-01-06.json"] = [said("1767690000.000100", "UEXT", user_team="T9")]
    assert fields(tmp_path, tree, "MembershipPage", not_shared=True)[0]["info"]["visibility"] is None


def test_a_conversation_without_a_member_list_has_no_listing(tmp_path: Path) -> None:
    tree = changed("channels.json", [{"id": "C1", "name": "general", "members": None, **UNSHARED}])
    assert fields(tmp_path, tree, "MembershipPage") == []
    assert sum(read(tmp_path, tree).summary.skipped.values()) == 1


def test_archived_is_said_only_where_the_export_says_it(tmp_path: Path) -> None:
    assert listed(tmp_path, "channels.json", {"is_archived": True})["info"]["archived"] is True
    assert listed(tmp_path, "channels.json", {"is_archived": False})["info"]["archived"] is False
    assert listed(tmp_path, "channels.json", {})["info"]["archived"] is None


def test_the_member_list_is_a_listing_of_the_day_of_the_export(tmp_path: Path) -> None:
    """Not of any time before: it starts after the last message, by more than any message may wait to be settled."""
    *_, message, listing = events(tmp_path, workspace())
    assert (message.record, listing.record) == ("MessageObserved", "MembershipPage")
    assert listing.fields["started_at"] == listing.at == 1767657600000  # 2026-01-06T00:00:00Z
    late = changed("general/2026-01-05.json", [said("1767657000.000100")])  # ten minutes before midnight
    assert events(tmp_path, late)[-1].at == 1767744000000  # 2026-01-07T00:00:00Z


def test_the_day_of_the_export_may_be_named(tmp_path: Path) -> None:
    assert events(tmp_path, workspace(), exported_at=1767700000000)[-1].fields["started_at"] == 1767700000000
    with pytest.raises(ExportError, match="before the export's last message"):
        read(tmp_path, workspace(), exported_at=1767500000000)


def test_an_export_without_messages_dates_no_listing(tmp_path: Path) -> None:
    assert events(tmp_path, changed("general/2026-01-05.json", [])) == []


def test_a_large_room_is_listed_in_pages(tmp_path: Path) -> None:
    tree = workspace()
    tree["users.json"] = [user(f"U{n}") for n in range(2500)]
    tree["channels.json"][0]["members"] = [f"U{n}" for n in range(2500)]
    pages = fields(tmp_path, tree, "MembershipPage")
    assert [(p["page"], p["last"], len(p["members"]), p["info"] is None) for p in pages] == [
        (0, False, 1000, False),
        (1, False, 1000, True),
        (2, True, 500, True),
    ]
    assert len({(p["refresh"], p["started_at"]) for p in pages}) == 1


def test_a_conversation_that_two_indexes_list_is_believed_in_neither(tmp_path: Path) -> None:
    tree = workspace() | {"groups.json": workspace()["channels.json"]}
    with pytest.raises(ExportError, match=r"groups\.json: lists C1, which channels\.json lists too"):
        read(tmp_path, tree)
    (listing,) = fields(tmp_path, tree, "MembershipPage", keep_going=True)
    assert listing["info"]["visibility"] is None


def test_a_folder_that_two_conversations_claim_is_nobodys(tmp_path: Path) -> None:
    tree = workspace() | {"groups.json": [{"id": "G1", "name": "general", "members": [], **UNSHARED}]}
    with pytest.raises(ExportError, match="general: 2 conversations have this folder"):
        read(tmp_path, tree)
    assert fields(tmp_path, tree, "MessageObserved", keep_going=True) == []
