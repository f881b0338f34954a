"""An exported directory holds every record as it lay on its topic, whenever the export was interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import fastavro
import pytest

from tests.streams.history import history
from tests.streams.world import CODEC, Input, a_delivered_turn, draft, message
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.streams.archive import SCHEMAS, Archive
from turngate.streams.exporting import export
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog
from turngate.streams.log import LogError, Message

TOPICS = (*INPUT_TOPICS, *OUTPUT_TOPICS)


def fed(log: LocalLog, *inputs: Input) -> None:
    runtime = LocalRuntime(log, CODEC)
    for i in inputs:
        runtime.feed(i.topic, i.key, i.value, i.timestamp, i.headers)
    runtime.flush()


@pytest.fixture
def log() -> Iterator[LocalLog]:
    with LocalLog() as made:
        fed(made, *history(40))
        made.append("observed-messages", b"acme", b"no record", timestamp=1)
        made.append("observed-messages", None, None, timestamp=2, headers=(("of", b"\x00\xff"),), offset=1_000)
        yield made


def every(records: LocalLog | Archive) -> dict[str, list[Message]]:
    return {topic: list(records.scan(topic)) for topic in TOPICS}


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_every_record_is_there_as_it_lay_on_its_topic(log: LocalLog, tmp_path: Path) -> None:
    assert export(log, tmp_path / "x", CODEC) == sum(map(len, every(log).values()))
    archive = Archive(tmp_path / "x")
    assert every(archive) == every(log)
    assert {t: archive.end(t, 0) for t in TOPICS} == {t: log.end(t, 0) for t in TOPICS}
    third = list(islice(log.scan("turn-verdicts"), 3, 7))
    assert list(archive.scan("turn-verdicts", 0, 3, 7)) == third
    assert len(third) == 4


def test_any_avro_tool_can_read_it(log: LocalLog, tmp_path: Path) -> None:
    export(log, tmp_path / "x", CODEC)
    for path in sorted((tmp_path / "x" / "turn-verdicts" / "0").iterdir()):
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            schemas = json.loads(reader.metadata[SCHEMAS])
            for told in reader:
                named = schemas[told["value"][:10].hex()]
                assert named["record"] == told["record"] == CODEC.decode(told["value"]).__class__.__name__
                assert named["schema"]["name"] == f"turngate.v1.{told['record']}"


def test_a_later_export_adds_what_has_come_since(log: LocalLog, tmp_path: Path) -> None:
    export(log, tmp_path / "x", CODEC)
    before = files(tmp_path / "x")
    assert export(log, tmp_path / "x", CODEC) == 0
    assert files(tmp_path / "x") == before
    fed(log, message(900_000, "slack:T1/C1", 9), draft(901_000, "slack:T1/C1", "last", ()))
    assert export(log, tmp_path / "x", CODEC) > 3
    assert files(tmp_path / "x") > before
    assert every(Archive(tmp_path / "x")) == every(log)


@pytest.mark.parametrize("at", [0, 1, 30, 150])
def test_an_interrupted_export_is_gone_on_with(log: LocalLog, tmp_path: Path, at: int) -> None:
    class Stop(Exception):
        pass

    told: list[int] = []

    def stop(done: int, total: int) -> None:
        assert done <= total
        told.append(done)
        if len(told) > at:
            raise Stop

    with pytest.raises(Stop):
        export(log, tmp_path / "x", CODEC, stop, part_bytes=500)
    export(log, tmp_path / "x", CODEC, part_bytes=500)
    assert every(Archive(tmp_path / "x")) == every(log)
    assert not list((tmp_path / "x").rglob("*.part"))


def test_a_file_that_is_gone_from_the_middle_is_missed(log: LocalLog, tmp_path: Path) -> None:
    export(log, tmp_path / "x", CODEC, part_bytes=500)
    kept = sorted((tmp_path / "x" / "observed-messages" / "0").iterdir())
    assert len(kept) > 2
    kept[1].unlink()
    with pytest.raises(LogError, match=r"the file from \d+ to \d+ is missing"):
        Archive(tmp_path / "x")


def test_a_damaged_file_is_said(log: LocalLog, tmp_path: Path) -> None:
    export(log, tmp_path / "x", CODEC)
    (path,) = (tmp_path / "x" / "ticks" / "0").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LogError, match="is damaged"):
        list(Archive(tmp_path / "x").scan("ticks"))


def test_no_other_directory_is_written_or_read(log: LocalLog, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(LogError, match="neither empty nor an export"):
        export(log, tmp_path, CODEC)
    with pytest.raises(LogError, match="is no export"):
        Archive(tmp_path)
    export(log, tmp_path / "x", CODEC)
    with LocalLog() as other:
        fed(other, *a_delivered_turn())
        with pytest.raises(LogError, match=r"was exported up to \d+, and there is 0 to \d+ now"):
            export(other, tmp_path / "x", CODEC)
    with LocalLog(partitions=2) as two, pytest.raises(LogError, match="another number of partitions"):
        export(two, tmp_path / "x", CODEC)


def test_what_it_holds_is_for_its_owner_alone(log: LocalLog, tmp_path: Path) -> None:
    export(log, tmp_path / "x", CODEC)
    assert (tmp_path / "x").stat().st_mode & 0o077 == 0
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "x").rglob("*") if path.is_file()} == {0}
