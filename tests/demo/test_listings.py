"""Who a simulated connector lists at a moment, worked out from joins and leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.connectors.slack_export.workspace import NS, UNSHARED, read, said, user
from turngate.demo.listings import Listings, all_public

ROOM = f"{NS}/C1"


def listings(
    root: Path, members: list[str], *entries: dict[str, Any], as_private: bool = False, **room: Any
) -> Listings:
    tree = {
        "users.json": [user("UALEX"), user("UMORGAN"), user("USAM", is_restricted=True)],
        "channels.json": [{"id": "C1", "name": "one", "members": members, **UNSHARED, **room}],
        "one/2026-01-05.json": list(entries),
    }
    with read(root, tree) as export:
        return Listings(list(export), export.scene.accounts, as_private)


def members(made: Listings, second: int) -> list[str]:
    listing = made.at(ROOM, second * 1000)
    assert listing is not None
    return [m["reader"].removeprefix(f"{NS}/") for m in listing[1]]


def joins(second: int, who: str) -> dict[str, Any]:
    return said(f"{second}.000000", who, subtype="channel_join")


def leaves(second: int, who: str) -> dict[str, Any]:
    return said(f"{second}.000000", who, subtype="channel_leave")


def test_somebody_is_there_from_the_join_to_the_leave(tmp_path: Path) -> None:
    made = listings(tmp_path, ["UALEX"], joins(10, "USAM"), leaves(20, "USAM"))
    assert members(made, 9) == ["UALEX"]
    assert members(made, 10) == members(made, 19) == ["UALEX", "USAM"]
    assert members(made, 20) == ["UALEX"]


def test_a_member_without_a_join_was_there_from_the_start(tmp_path: Path) -> None:
    made = listings(tmp_path, ["UALEX", "UMORGAN"], joins(10, "UMORGAN"))
    assert members(made, 0) == ["UALEX"]
    assert members(made, 30) == ["UALEX", "UMORGAN"]


def test_whoever_leaves_or_writes_first_was_there_before(tmp_path: Path) -> None:
    made = listings(tmp_path, [], leaves(10, "UALEX"), said("12.000000", "USAM"), joins(20, "USAM"))
    assert members(made, 0) == ["UALEX", "USAM"]
    assert members(made, 15) == ["USAM"]


def test_a_guest_is_listed_as_a_guest(tmp_path: Path) -> None:
    made = listings(tmp_path, [], said("12.000000", "USAM"))
    assert made.at(ROOM, 0) == (
        {"kind": "channel", "visibility": "workspace", "workspaces": [NS], "archived": None},
        [{"reader": f"{NS}/USAM", "kind": "guest", "workspaces": []}],
    )


def test_a_room_of_which_nobody_knows_who_reads_it_cannot_be_listed(tmp_path: Path) -> None:
    assert listings(tmp_path, [], said("12.000000"), is_private=True).at(ROOM, 0) is None
    assert listings(tmp_path, [], said("12.000000")).at(f"{NS}/C2", 0) is None


def test_public_channels_may_be_listed_as_private(tmp_path: Path) -> None:
    made = listings(tmp_path, ["UALEX"], said("12.000000"), as_private=True).at(ROOM, 0)
    assert made is not None
    assert made[0]["visibility"] == "members"


def test_a_workspace_is_all_public_where_only_members_read_only_public_rooms(tmp_path: Path) -> None:
    tree = {
        "users.json": [user("UALEX"), user("USAM", is_restricted=True)],
        "channels.json": [{"id": "C1", "name": "one", "members": ["UALEX"], **UNSHARED}],
        "one/2026-01-05.json": [said("12.000000")],
    }
    assert all_public(list(read(tmp_path, tree)))
    guest = tree | {"channels.json": [{"id": "C1", "name": "one", "members": ["USAM"], **UNSHARED}]}
    assert not all_public(list(read(tmp_path, guest)))
    assert not all_public(list(read(tmp_path, tree | {"dms.json": [{"id": "D1", "members": ["UALEX"]}]})))
