"""`turngate import slack-export` and `turngate demo`, wired to the libraries that do the work."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Turngate
from turngate.demo.run import SHIPPED


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """The export that the project ships, to be broken at will."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "export"))


def test_an_export_becomes_a_file_that_apply_reads(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    out = tmp_path / "events.jsonl"
    result = turngate("import", "slack-export", export, "--tenant", "harbor", "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.stat().st_mode & 0o077 == 0
    assert " messages, " in result.stderr
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {line["record"] for line in lines} >= {"MembershipPage", "MembershipChanged", "MessageObserved"}
    assert {line["value"]["tenant"] for line in lines} == {"harbor"}
    applied = turngate("apply", out)
    assert applied.exit_code == 0
    assert '"record": "RecordRefused"' not in applied.stdout


def test_a_dash_is_standard_output(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    turngate("import", "slack-export", export, "--out", tmp_path / "file")
    assert turngate("import", "slack-export", export, "--out", "-").stdout == (tmp_path / "file").read_text("utf-8")


def test_onto_a_log_comes_what_apply_would_have_put_there(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    turngate("import", "slack-export", export, "--out", tmp_path / "file")
    turngate("apply", tmp_path / "file", "--log", tmp_path / "applied.log")
    assert turngate("import", "slack-export", export, "--log", tmp_path / "imported.log").exit_code == 0
    for topic in ("observed-messages", "source-evidence"):
        shown = [
            turngate("tail", topic, "--log", tmp_path / name, "--from", "beginning", "--no-follow").stdout
            for name in ("applied.log", "imported.log")
        ]
        assert shown[0] == shown[1] != ""


def test_a_broken_file_is_named_and_nothing_is_written(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    broken = next(export.glob("general/*.json"))
    broken.write_text("[", "utf-8")
    result = turngate("import", "slack-export", export, "--out", tmp_path / "file")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"turngate: {broken.relative_to(export)}: ")
    assert not (tmp_path / "file").exists()


def test_the_rest_is_imported_only_when_asked_to_keep_going(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    broken = next(export.glob("general/*.json"))
    broken.write_text("[", "utf-8")
    result = turngate("import", "slack-export", export, "--out", tmp_path / "file", "--keep-going")
    assert result.exit_code == 0
    assert f"left out, broken: {broken.relative_to(export)}: " in result.stderr
    assert (tmp_path / "file").stat().st_size > 0


def test_two_places_at_once_are_refused(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    result = turngate("import", "slack-export", export, "--out", "-", "--log", tmp_path / "log")
    assert result.exit_code == 2
    assert "give one of them" in result.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (("--tenant", "Harbor"), "--tenant: not of the form that the contract says"),
        (("--tenant", ""), "--tenant: not of the form that the contract says"),
        (("--tenant", "7"), "--tenant: is a partition's number, not a tenant's"),
        (("--agent", ""), "--agent: not of the form that the contract says"),
        (("--agent", "m" * 513), "--agent: not of the form that the contract says"),
    ],
)
def test_a_name_that_would_make_every_record_invalid_is_refused(
    turngate: Turngate, export: Path, tmp_path: Path, name: tuple[str, str], said: str
) -> None:
    for where in ("--out", "--log"):
        result = turngate("import", "slack-export", export, *name, where, tmp_path / "place")
        assert (result.exit_code, result.stderr) == (2, f"turngate: {said}\n")
        assert not (tmp_path / "place").exists()


def test_what_stood_in_the_place_stays_until_the_whole_file_is_there(export: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "events.jsonl"
    out.parent.mkdir()
    out.write_text("as it was\n")
    limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); from turngate.cli.main import main; main()"
    )
    run = [sys.executable, "-c", limited, "import", "slack-export", export, "--out", out]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"turngate: {out}: File too large\n")
    assert [(path.name, path.read_text()) for path in out.parent.iterdir()] == [("events.jsonl", "as it was\n")]
    run[2] = "from turngate.cli.main import main; main()"
    assert subprocess.run(run, capture_output=True, check=False).returncode == 0
    assert [path.name for path in out.parent.iterdir()] == ["events.jsonl"]
    assert out.stat().st_size > 4096


def test_an_export_is_not_written_over_itself(turngate: Turngate, export: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "export"), "zip", export))
    before = archive.read_bytes()
    (tmp_path / "link").symlink_to(archive)
    for out in (archive, tmp_path / "link"):
        result = turngate("import", "slack-export", archive, "--out", out)
        assert (result.exit_code, result.stderr) == (
            2,
            f"turngate: --out {out}: is the export itself; name another file\n",
        )
    assert archive.read_bytes() == before


def test_an_export_that_is_not_there_is_exit_code_2(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("import", "slack-export", tmp_path / "absent", "--out", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("turngate: ")


def test_a_time_that_is_none_is_answered_with_what_to_write(turngate: Turngate, export: Path) -> None:
    result = turngate("import", "slack-export", export, "--out", "-", "--exported-at", "lately")
    assert result.stderr == "turngate: --exported-at lately: write a time such as 2026-01-31T12:00:00Z\n"


def test_the_demo_decides_and_sums_up(turngate: Turngate) -> None:
    result = turngate("demo")
    assert result.exit_code == 0
    assert "drafts decided" in result.stdout
    assert "delivered" in result.stdout
    assert "refused" in result.stdout


def test_the_demo_of_an_export_that_is_not_there_is_exit_code_2(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("demo", "--export", tmp_path / "absent")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("turngate: ")
