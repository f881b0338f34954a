"""`turngate export`: from an embedded log into a directory, again and again."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import DAY, Turngate, written
from turngate.streams.archive import Archive
from turngate.streams.local_log import LocalLog


def test_a_log_is_exported_once(turngate: Turngate, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    assert turngate("apply", written(tmp_path / "day", *DAY), "--log", log).exit_code == 0
    with LocalLog(log, read_only=True) as there:
        count = sum(there.end(topic, 0) for topic in there.topics())
        outbound = list(there.scan("outbound"))
    first = turngate("export", out, "--log", log)
    assert (first.exit_code, first.stdout, first.stderr) == (0, f"{count} records written\n", "")
    assert turngate("export", out, "--log", log).stdout == "0 records written\n"
    assert list(Archive(out).scan("outbound")) == outbound
    assert len(outbound) == 1


def test_what_is_no_log_or_no_export_is_one_sentence(turngate: Turngate, tmp_path: Path) -> None:
    result = turngate("export", tmp_path / "out", "--log", tmp_path / "none")
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    (tmp_path / "mine").write_text("mine")
    assert turngate("apply", written(tmp_path / "day", *DAY), "--log", tmp_path / "log").exit_code == 0
    result = turngate("export", tmp_path, "--log", tmp_path / "log")
    assert (result.exit_code, result.stderr) == (2, f"turngate: {tmp_path}: is neither empty nor an export\n")
