"""The embedded log: what is appended is read back, in order, and a file that cannot be used is refused in words."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.streams.local_file import LAYOUT
from turngate.streams.local_log import Append, LocalLog
from turngate.streams.log import Commit, LogError, Message, Outgoing

TOPIC = "observed-messages"


@pytest.fixture(params=["file", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalLog]:
    with LocalLog(tmp_path / "test.log" if request.param == "file" else None) as opened:
        yield opened


def an_output(value: bytes) -> Outgoing:
    return Outgoing("turn-verdicts", b"acme", value, (("ce_id", b"1"),))


def test_records_are_read_back_as_they_were_appended(log: LocalLog) -> None:
    first = log.append(TOPIC, b"acme", b"one", timestamp=5, headers=(("a", b"\x00\xff"), ("a", b"")))
    second = log.append(TOPIC, None, None, timestamp=4)
    assert first == Message(TOPIC, 0, 0, 5, b"acme", b"one", (("a", b"\x00\xff"), ("a", b"")))
    assert second == Message(TOPIC, 0, 1, 4, None, None, ())
    assert log.read(TOPIC, 0, 0, 10) == [first, second]
    assert log.read(TOPIC, 0, 1, 10) == [second]
    assert log.read(TOPIC, 0, 0, 1) == [first]
    assert log.read(TOPIC, 0, 2, 10) == []
    assert log.end(TOPIC, 0) == 2


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=20),
            st.none() | st.binary(max_size=50),
            st.integers(0, 253_402_300_799_999),
            st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=8)), max_size=3).map(tuple),
        ),
        max_size=10,
    )
)
def test_any_bytes_and_headers_are_kept(records: list[tuple[bytes | None, bytes | None, int, tuple]]) -> None:
    with LocalLog() as log:
        log.append_many([Append(TOPIC, key, value, at, headers=headers) for key, value, at, headers in records])
        assert [(m.key, m.value, m.timestamp, m.headers) for m in log.scan(TOPIC)] == records


def test_a_log_in_a_file_is_there_again_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "test.log"
    with LocalLog(path, partitions=3) as log:
        log.append(TOPIC, b"acme", b"x", partition=2, timestamp=1)
    with LocalLog(path) as log:
        assert log.partitions == 3
        assert [m.value for m in log.scan(TOPIC, 2)] == [b"x"]
        assert log.append(TOPIC, b"acme", b"y", partition=2, timestamp=1).offset == 1
    assert not path.with_name("test.log-wal").exists()  # one file, when nobody has it open


def test_partitions_and_topics_are_apart() -> None:
    with LocalLog(partitions=2) as two:
        two.append(TOPIC, b"a", b"0", partition=0, timestamp=1)
        two.append(TOPIC, b"a", b"1", partition=1, timestamp=1)
        two.append("ticks", b"a", b"tick", partition=1, timestamp=1)
        assert [m.value for m in two.scan(TOPIC, 0)] == [b"0"]
        assert [m.value for m in two.scan(TOPIC, 1)] == [b"1"]
        assert two.end("ticks", 0) == 0
        assert two.topics() == [TOPIC, "ticks"]


def test_an_explicit_offset_leaves_a_gap_and_never_goes_back(log: LocalLog) -> None:
    log.append(TOPIC, b"a", b"x", timestamp=1, offset=7)
    assert log.end(TOPIC, 0) == 8
    assert [m.offset for m in log.read(TOPIC, 0, 0, 5)] == [7]
    assert log.append(TOPIC, b"a", b"y", timestamp=1).offset == 8
    with pytest.raises(LogError, match=r"observed-messages\[0\]: offset 3 is not free; the next one is 9"):
        log.append(TOPIC, b"a", b"z", timestamp=1, offset=3)


def test_nothing_is_appended_where_it_would_never_be_applied(tmp_path: Path) -> None:
    """Positions may lie beyond the last record, since a broker's control records have offsets of their own."""
    path = tmp_path / "test.log"
    with LocalLog(path) as log:
        log.commit(0, [Commit([], [], {TOPIC: 12}, "e")], 1)
        assert log.append(TOPIC, b"a", b"x", timestamp=1).offset == 12
        log.commit(0, [Commit([], [], {TOPIC: 20}, "e")], 1)
        assert log.positions(0)[TOPIC] == 20
    with LocalLog(path) as log, LocalLog(path, read_only=True) as reader:
        assert (log.end(TOPIC, 0), reader.end(TOPIC, 0)) == (20, 20)
        assert log.append(TOPIC, b"a", b"x", timestamp=1).offset == 20


def test_a_failed_batch_appends_nothing(log: LocalLog) -> None:
    with pytest.raises(LogError, match="no time from 1970"):
        log.append_many([Append(TOPIC, b"a", b"x", 1), Append(TOPIC, b"a", b"y", -1)])
    assert log.end(TOPIC, 0) == 0
    assert list(log.scan(TOPIC)) == []
    assert log.append(TOPIC, b"a", b"x", timestamp=1).offset == 0


def test_a_transaction_of_which_a_part_failed_is_not_written(log: LocalLog) -> None:
    def halfway() -> None:
        with log.transaction():
            log.append(TOPIC, b"a", b"x", timestamp=1)
            with contextlib.suppress(LogError):
                log.append("no-such-topic", b"a", b"y", timestamp=1)

    with pytest.raises(LogError, match="a part of this transaction has failed"):
        halfway()
    assert log.end(TOPIC, 0) == 0
    assert list(log.scan(TOPIC)) == []


def test_a_commit_holds_outputs_state_and_positions(log: LocalLog) -> None:
    first = Commit(
        [an_output(b"1")], [(b"k", b"v1"), (b"gone", b"v"), (b"old", b"o")], {TOPIC: 1, "ticks": 0}, "engine-1"
    )
    second = Commit([an_output(b"2")], [(b"k", b"v2"), (b"gone", None)], {TOPIC: 3, "ticks": 1}, "engine-2")
    outputs = log.commit(0, [first, second], 77)
    assert [(m.offset, m.timestamp, m.key, m.value, m.headers) for m in outputs] == [
        (0, 77, b"acme", b"1", (("ce_id", b"1"),)),
        (1, 77, b"acme", b"2", (("ce_id", b"1"),)),
    ]
    assert list(log.scan("turn-verdicts")) == outputs
    checkpoint = log.checkpoint(0)
    assert checkpoint.engine == "engine-2"
    assert dict(checkpoint.entries) == {b"k": b"v2", b"old": b"o"}
    assert (checkpoint.positions[TOPIC], checkpoint.positions["ticks"]) == (3, 1)
    log.commit(0, [Commit([], [(b"k", None), (b"old", None)], {TOPIC: 3, "ticks": 1}, "engine-2")], 78)
    assert list(log.checkpoint(0).entries) == []


def test_a_commit_that_fails_leaves_nothing(log: LocalLog) -> None:
    log.commit(0, [Commit([an_output(b"1")], [(b"k", b"v1")], {TOPIC: 1}, "e")], 1)
    bad = Commit([an_output(b"2")], [(b"k", b"v2")], {TOPIC: 2, "no-such-topic": 1}, "f")
    with pytest.raises(LogError):
        log.commit(0, [bad], 1)
    checkpoint = log.checkpoint(0)
    assert (checkpoint.engine, list(checkpoint.entries), checkpoint.positions[TOPIC]) == ("e", [(b"k", b"v1")], 1)
    assert log.end("turn-verdicts", 0) == 1


def test_a_checkpoint_is_of_one_moment(tmp_path: Path) -> None:
    with LocalLog(tmp_path / "test.log") as log:
        log.commit(0, [Commit([], [(b"%d" % n, b"old") for n in range(1000)], {TOPIC: 1}, "e")], 1)
        checkpoint = log.checkpoint(0)
        first = next(checkpoint.entries)
        log.commit(0, [Commit([], [(b"%d" % n, b"new") for n in range(1000)], {TOPIC: 2}, "e")], 1)
        assert {value for _, value in [first, *checkpoint.entries]} == {b"old"}
        assert checkpoint.positions[TOPIC] == 1


def test_large_values_are_records_like_others(log: LocalLog) -> None:
    large = bytes(range(256)) * 20_000
    log.append(TOPIC, b"a", large, timestamp=1)
    log.commit(0, [Commit([an_output(large)], [(b"k", large)], {}, "e")], 1)
    assert log.read(TOPIC, 0, 0, 1)[0].value == large
    assert list(log.checkpoint(0).entries) == [(b"k", large)]


def test_a_long_log_is_read_in_bounded_memory(tmp_path: Path) -> None:
    with LocalLog(tmp_path / "test.log") as log:
        log.append_many(Append(TOPIC, b"acme", b"v" * 500, n) for n in range(20_000))
        log.append_many(Append("tool-results", b"acme", b"v" * 1_000_000, n) for n in range(30))
        tracemalloc.start()
        try:
            assert sum(1 for _ in log.scan(TOPIC)) == 20_000
            small = tracemalloc.get_traced_memory()[1]
            assert sum(1 for _ in log.scan("tool-results")) == 30
            large = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert small < 2_000_000
    assert large < 12_000_000


def test_timestamps_come_from_the_caller_or_from_a_clock_passed_in() -> None:
    with LocalLog(clock=lambda: 1234) as log:
        assert log.append(TOPIC, b"a", b"x").timestamp == 1234
        assert log.append(TOPIC, b"a", b"x", timestamp=9).timestamp == 9
    with LocalLog() as log, pytest.raises(LogError, match="needs a log with a clock"):
        log.append(TOPIC, b"a", b"x")


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "test.log"
    program = (
        f"from pathlib import Path; from turngate.streams.local_log import LocalLog; LocalLog(Path({str(path)!r}))"
    )
    with LocalLog(path):
        with pytest.raises(LogError, match="another process is writing this log"):
            LocalLog(path)
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "another process is writing this log" in other.stderr
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_reader_reads_while_the_log_is_written(tmp_path: Path) -> None:
    path = tmp_path / "test.log"
    with LocalLog(path, partitions=2) as log, LocalLog(path, read_only=True) as reader:
        assert (reader.partitions, reader.end(TOPIC, 0)) == (2, 0)
        log.append(TOPIC, b"a", b"x", timestamp=1)
        log.commit(0, [Commit([], [(b"k", b"v")], {TOPIC: 1}, "e")], 1)
        with log.transaction():
            log.append(TOPIC, b"a", b"not yet", timestamp=1)
            assert [m.value for m in reader.scan(TOPIC)] == [b"x"]
        assert [m.value for m in reader.scan(TOPIC)] == [b"x", b"not yet"]
        assert (reader.end(TOPIC, 0), reader.positions(0)[TOPIC], reader.topics()) == (2, 1, [TOPIC])
        assert list(reader.checkpoint(0).entries) == [(b"k", b"v")]
        with pytest.raises(LogError, match="opened for reading only"):
            reader.append(TOPIC, b"a", b"x", timestamp=1)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds what was said in closed rooms."""
    with LocalLog(tmp_path / "test.log") as log:
        log.append(TOPIC, b"a", b"x", timestamp=1)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["test.log", "test.log-wal", "test.log-shm", "test.log.lock"], 0o600)


def make_text(path: Path) -> None:
    path.write_text("this is no database, and longer than the header of one would be\n" * 20)


def make_short(path: Path) -> None:
    path.write_bytes(b"x")


def make_foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE other (a)")
    db.close()


def make_newer(path: Path) -> None:
    LocalLog(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    db.close()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (make_text, "is no Turngate log"),
        (make_short, "is no Turngate log"),
        (make_foreign, "is no Turngate log"),
        (make_newer, rf"a newer Turngate wrote this log \(layout {LAYOUT + 1}, this version knows up to {LAYOUT}\)"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_log_of_ours_is_refused_and_left_alone(
    make, sentence: str, read_only: bool, tmp_path: Path
) -> None:
    path = tmp_path / "test.log"
    make(path)
    before = path.read_bytes()
    with pytest.raises(LogError, match=sentence) as refused:
        LocalLog(path, read_only=read_only)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


#: An account that may do nothing; permissions do not bind root.
NOBODY = 65534


@contextlib.contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """The folder belongs to this process, which is not root's meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_log_in_a_folder_that_cannot_be_written_to_is_refused_in_words() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to everybody else
        folder = Path(name)
        path = folder / "test.log"
        LocalLog(path).close()
        folder.chmod(0o555)
        with (
            unprivileged(folder),
            pytest.raises(LogError, match="can be read only where its folder can be written to"),
        ):
            LocalLog(path, read_only=True)
        folder.chmod(0o755)


def test_what_cannot_be_opened_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="there is no log here"):
        LocalLog(tmp_path / "none.log", read_only=True)
    with pytest.raises(LogError, match=r"the folder .* does not exist"):
        LocalLog(tmp_path / "no" / "folder.log")
    with pytest.raises(LogError, match="the log cannot be used"):
        LocalLog(tmp_path)
    with pytest.raises(LogError, match="a log has 1 to 10000 partitions, not 0"):
        LocalLog(partitions=0)
    LocalLog(tmp_path / "one.log").close()
    with pytest.raises(LogError, match="this log has 1 partitions, which cannot be made 2"):
        LocalLog(tmp_path / "one.log", partitions=2)
    with LocalLog() as log, pytest.raises(LogError, match=r"ticks\[1\]: there is no such place"):
        log.read("ticks", 1, 0, 1)
