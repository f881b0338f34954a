"""Which files are read; a broken one is named, and nothing is told of an export that has one, unless asked to go on."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from tests.connectors.slack_export.workspace import (
    archive,
    changed,
    content,
    day,
    events,
    folder,
    read,
    said,
    workspace,
)
from turngate.connectors.slack_export import ExportError, Limits, read_export

DAY = "general/2026-01-05.json"


def read_at(path: Path, **how: object) -> list[object]:
    with read_export(path, tenant="acme", agent="mesh", **how) as export:  # type: ignore[arg-type]
        return list(export)


def test_a_zip_as_slack_hands_it_out_tells_the_same_as_the_folder(tmp_path: Path) -> None:
    assert read_at(archive(tmp_path / "export.zip", workspace())) == events(tmp_path / "export", workspace())


def test_an_export_may_lie_in_the_only_folder_of_an_archive(tmp_path: Path) -> None:
    tree = {f"my export/{path}": value for path, value in workspace().items()}
    junk = {"__MACOSX/my export/users.json": b"\0", "my export/.DS_Store": b"\0"}
    assert read_at(archive(tmp_path / "export.zip", tree | junk)) == events(tmp_path / "plain", workspace())
    assert read_at(folder(tmp_path / "outer", tree)) == events(tmp_path / "plain", workspace())


def test_names_beyond_ascii_are_found_however_they_are_composed(tmp_path: Path) -> None:
    tree = workspace()
    tree["channels.json"][0]["name"] = "caf\u00e9"
    tree["cafe\u0301/2026-01-05.json"] = tree.pop(DAY)
    assert read(tmp_path, tree).summary.messages == 1
    assert read_at(archive(tmp_path / "export.zip", tree)) == events(tmp_path, tree)


def test_other_files_are_ignored_by_name_and_counted(tmp_path: Path) -> None:
    tree = workspace() | {
        "integration_logs.json": b"not even JSON",
        "canvases.json": b"[",
        "general/canvas.json": b"[",
        "FC:F1:plan/2026-01-05.json": b"[",
        "general/__uploads/F1/data.json": b"[",
    }
    summary = read(tmp_path, tree).summary
    assert summary.messages == 1
    assert dict(summary.skipped) == {
        "folder that no list of conversations names": 1,
        "file in a conversation's folder that is not named by a day": 1,
    }


@pytest.mark.parametrize(
    ("path", "broken", "what"),
    [
        (DAY, b'[{"a": 1},\n nonsense]', "line 2, column 2: no JSON"),
        (DAY, b"\xff\xfe", "byte 0: no UTF-8"),
        (DAY, b"", "line 1, column 1: no JSON"),
        (DAY, b"{}", "no list of entries"),
        (DAY, b'[{"type": "x"}, "text"]', "entry 2 is no object"),
        (DAY, b"[" * 100_000, "no JSON that can be read: nested too deeply"),
        (DAY, b"[" + b"9" * 5000 + b"]", "or a number too long"),
        ("channels.json", b"null", "no list of entries"),
        ("channels.json", [{"name": "general"}], "entry 1: id is no id"),
        ("channels.json", [{"id": "C1", "members": ["UALEX", 7]}], "entry 1: members is no list of ids"),
        ("dms.json", [[]], "entry 1 is no object"),
    ],
)
def test_a_broken_file_is_named_and_left_out_only_when_asked(
    tmp_path: Path, path: str, broken: object, what: str
) -> None:
    tree = changed(path, broken) | {"general/2026-01-06.json": [said("1767690000.000100")]}
    with pytest.raises(ExportError, match=what) as caught:
        read(tmp_path, tree)
    assert caught.value.file == path
    summary = read(tmp_path, tree, keep_going=True).summary
    assert [p.file for p in summary.problems] == [path]
    assert summary.messages == {DAY: 1, "channels.json": 0, "dms.json": 2}[path]


def test_a_broken_file_is_left_out_whole(tmp_path: Path) -> None:
    tree = day(said("1767600000.000100"), {"type": "message"})
    assert read(tmp_path, tree, keep_going=True).summary.messages == 0


def test_without_accounts_nothing_is_known(tmp_path: Path) -> None:
    tree = workspace()
    del tree["users.json"]
    with pytest.raises(ExportError, match=r"users\.json: is missing"):
        read(tmp_path, tree, keep_going=True)
    with pytest.raises(ExportError, match=r"users\.json: line 1"):
        read(tmp_path, tree | {"users.json": b"?"}, keep_going=True)


def test_an_organisations_export_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"org_users\.json: is the export of a whole organisation"):
        read(tmp_path, {"org_users.json": []})


def test_without_any_list_of_conversations_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"channels\.json: is missing, and so is every other"):
        read(tmp_path, {"users.json": workspace()["users.json"]})


def test_what_is_no_export_at_all_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is neither a folder nor a zip archive"):
        read_at(tmp_path / "nowhere")
    (tmp_path / "notes.zip").write_bytes(b"PK no archive")
    with pytest.raises(ExportError, match=r"notes\.zip: is no zip archive"):
        read_at(tmp_path / "notes.zip")


@pytest.mark.parametrize(
    "name", ["../users.json", "/etc/users.json", "general/../../x.json", "C:/x.json", "..\\x.json"]
)
def test_an_archive_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match="names a place outside the export"):
        read_at(archive(tmp_path / "export.zip", workspace() | {name: []}), keep_going=True)


def test_a_file_that_is_twice_in_an_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", workspace())
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("users.json", "[]")
    with pytest.raises(ExportError, match=r"users\.json: is there twice"):
        read_at(path)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_links_are_refused(tmp_path: Path, what: str) -> None:
    export = folder(tmp_path / "export", workspace())
    outside = folder(tmp_path / "outside", {"2026-01-06.json": [said("1767690000.000100")]})
    if what == "file":
        os.symlink(outside / "2026-01-06.json", export / "general" / "2026-01-06.json")
    else:
        os.symlink(outside, export / "other")
    with pytest.raises(ExportError, match="is a symbolic link"):
        read_at(export, keep_going=True)


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", workspace())
    link = zipfile.ZipInfo("general/2026-01-06.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(link, "/etc/passwd")
    with pytest.raises(ExportError, match=r"general/2026-01-06\.json: is a symbolic link"):
        read_at(path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    export = folder(tmp_path / "export", workspace())
    os.mkfifo(export / "dms.json")
    with pytest.raises(ExportError, match=r"dms\.json: is no regular file"):
        read_at(export)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A few kilobytes that unpack into 20 MB; and an archive that lies about the size."""
    limits = Limits(file=1_000_000)
    bomb = changed(DAY, b" " * 20_000_000)
    with pytest.raises(ExportError, match=r"05\.json: is larger than 1,000,000 bytes"):
        read_at(archive(tmp_path / "bomb.zip", bomb), limits=limits)
    with pytest.raises(ExportError, match="is larger"):
        read_at(folder(tmp_path / "bomb", bomb), limits=limits)
    assert len(read_at(archive(tmp_path / "good.zip", workspace()), limits=limits)) == 2


@pytest.mark.parametrize("value", [b"{}", b"[]", b"0", b'{"a":[]}', b'["a"]'])
@pytest.mark.parametrize("path", [DAY, "users.json", "channels.json"])
def test_a_file_of_too_many_values_is_not_parsed(tmp_path: Path, path: str, value: bytes) -> None:
    """Of 3 bytes each, empty objects come to some 25 times the size of the file."""
    limits = Limits(values=1_000)
    bomb = changed(path, b"[" + b",".join([value] * 1_001) + b"]")
    with pytest.raises(ExportError, match=f"{path}: has more than 1,000 values"):
        read_at(archive(tmp_path / "bomb.zip", bomb), limits=limits)
    with pytest.raises(ExportError, match="has more than 1,000 values"):
        read_at(folder(tmp_path / "bomb", bomb), limits=limits)
    assert len(read_at(archive(tmp_path / "good.zip", workspace()), limits=limits)) == 2


def test_an_archive_of_too_much_or_too_many_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", workspace())
    with pytest.raises(ExportError, match="has more than 100 bytes of JSON"):
        read_at(path, limits=Limits(total=100))
    with pytest.raises(ExportError, match="has more than 2 files"):
        read_at(path, limits=Limits(files=2))


def test_a_damaged_archive_names_the_file(tmp_path: Path) -> None:
    whole = io.BytesIO(archive(tmp_path / "export.zip", workspace()).read_bytes())
    data = bytearray(whole.getvalue())
    at = data.index(content(workspace()[DAY])[:0] + DAY.encode()) + len(DAY)
    data[at : at + 20] = bytes(20)
    (tmp_path / "damaged.zip").write_bytes(data)
    with pytest.raises(ExportError, match=r"general/2026-01-05\.json: is damaged inside the archive"):
        read_at(tmp_path / "damaged.zip")


def test_progress_is_told_in_bytes_and_ends_at_what_was_read(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    read(tmp_path, workspace(), on_progress=lambda done, total: told.append((done, total)))
    size = sum(len(content(value)) for value in workspace().values())
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_no_error_quotes_what_a_file_says(tmp_path: Path) -> None:
    for tree in (
        day("Alex flies to Oslo"),
        day({"type": "message", "ts": "Alex", "text": "Oslo"}),
        changed(DAY, b"Oslo"),
    ):
        with pytest.raises(ExportError) as caught:
            read(tmp_path, tree)
        assert "Alex" not in str(caught.value)
        assert "Oslo" not in str(caught.value)
