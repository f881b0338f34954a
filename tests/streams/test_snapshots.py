"""A replay begins at a snapshot as it begins at the beginning, and then needs nothing that lies before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from tests.streams.history import history
from tests.streams.test_verifying import CODEC, RESTORE, copy, live
from turngate.processors.engine import Engine
from turngate.processors.errors import StateVersionError
from turngate.schemas.catalog import DRAFTS, OUTPUT_TOPICS
from turngate.streams.comparing import COMPARED
from turngate.streams.local_log import LocalLog
from turngate.streams.log import LogError
from turngate.streams.snapshots import newest, read_snapshot, snapshot_of
from turngate.streams.verifying import Verifying


@pytest.fixture(scope="module")
def history_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalLog, Path]]:
    """A history of which a snapshot was taken in the middle, and one at its end."""
    inputs, folder = list(history(60)), tmp_path_factory.mktemp("history")
    with LocalLog(folder / "log") as log:
        live(log, inputs[:80], together=3)
        snapshot_of(log, 0, folder / "kept")
        live(log, inputs[80:], together=3)
        snapshot_of(log, 0, folder / "kept")
        yield log, folder / "kept"


@pytest.fixture
def lived(history_with: tuple[LocalLog, Path], tmp_path: Path) -> LocalLog:
    """The history, its snapshots being in a folder of the test's own."""
    log, kept = history_with
    copytree(kept, tmp_path / "kept")
    return log


def test_what_comes_after_it_is_decided_as_it_was(lived: LocalLog, tmp_path: Path) -> None:
    whole = Verifying(lived, RESTORE, CODEC)
    assert [d for step in whole.steps() for d in step.differences] == []
    path = newest(tmp_path / "kept", 0, 59)
    assert path is not None
    begin = read_snapshot(path)
    start = begin.positions[DRAFTS]
    assert 10 < start < 50
    verifying = Verifying(lived, RESTORE, CODEC, start=start, begin=begin)
    assert [d for step in verifying.steps() for d in step.differences] == []
    assert verifying.decisions == sum(lived.end(t, 0) - begin.outputs[t] for t in COMPARED) > 30
    assert verifying.replay.engine.state.digest() == whole.replay.engine.state.digest()


def test_nothing_before_it_is_read(lived: LocalLog, tmp_path: Path) -> None:
    path = newest(tmp_path / "kept", 0, 59)
    assert path is not None
    begin = read_snapshot(path)
    starts = begin.positions | begin.outputs
    with copy(lived, lambda m: m if m.offset >= starts[m.topic] else None) as log:
        verifying = Verifying(log, RESTORE, CODEC, start=50, begin=begin)
        assert [d for step in verifying.steps() for d in step.differences] == []
        assert verifying.decisions > 10
        with pytest.raises(LogError, match="the recorded stretch starts at"):
            list(Verifying(log, RESTORE, CODEC).steps())


def test_the_ends_of_outputs_may_lie_before_it(lived: LocalLog, tmp_path: Path) -> None:
    """A worker goes on between the questions for the ends and for the state."""
    path = newest(tmp_path / "kept", 0, 59)
    assert path is not None
    begin = read_snapshot(path)
    for topic in OUTPUT_TOPICS:
        begin.outputs[topic] = max(0, begin.outputs[topic] - 3)
    verifying = Verifying(lived, RESTORE, CODEC, start=begin.positions[DRAFTS], begin=begin)
    assert [d for step in verifying.steps() for d in step.differences] == []


def test_one_after_the_first_draft_is_none_to_begin_at(lived: LocalLog, tmp_path: Path) -> None:
    assert newest(tmp_path / "kept", 0, 3) is None
    assert newest(tmp_path / "kept", 1, 99) is None
    last = newest(tmp_path / "kept", 0)
    assert last is not None
    assert last.name == f"0-{60:020}.json"
    with pytest.raises(LogError, match="the snapshot is of turn-drafts at 60, which is after 7"):
        Verifying(lived, RESTORE, CODEC, start=7, begin=read_snapshot(last))


def test_one_of_a_newer_engine_is_refused(lived: LocalLog, tmp_path: Path) -> None:
    path = newest(tmp_path / "kept", 0)
    assert path is not None
    path.write_text(path.read_text("utf-8").replace(f'"engine": "{Engine.version}"', '"engine": "999"'), "utf-8")
    with pytest.raises(StateVersionError, match="the state was written by engine 999"):
        Verifying(lived, RESTORE, CODEC, start=60, begin=read_snapshot(path))


def test_one_that_is_not_whole_is_none(lived: LocalLog, tmp_path: Path) -> None:
    path = newest(tmp_path / "kept", 0)
    assert path is not None
    path.unlink()  # the JSON file, which is written last
    again = newest(tmp_path / "kept", 0)
    assert again is not None
    assert again.name < path.name
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(LogError, match="is no snapshot"):
        read_snapshot(tmp_path / "other.json")
    assert {p.stat().st_mode & 0o077 for p in (tmp_path / "kept").iterdir()} == {0}


def test_of_an_empty_log_there_is_none(tmp_path: Path) -> None:
    with LocalLog() as log, pytest.raises(LogError, match="partition 0: nothing was applied yet"):
        snapshot_of(log, 0, tmp_path)
    assert list(tmp_path.iterdir()) == []
