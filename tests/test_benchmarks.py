"""Every benchmark runs, at a size that says nothing about speed, so that none of them rots."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.bare import Bitmaps, Sets
from benchmarks.deciding import Case, Contest, lap_records
from benchmarks.history import History
from benchmarks.memory import Applied
from benchmarks.sample import Constant, sample
from benchmarks.world import Size, World
from turngate.schemas.catalog import APPLIED, DRAFTS
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MembershipChanged, MembershipPage, TurnDrafted
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.streams.fold import Fold
from turngate.streams.log import Commit, Message, Stretch

ROOT = Path(__file__).parents[1]
EPOCH = 1_767_225_600_000
SMALL = Size(6, destinations=2, sources=4, narrow=1)


def _world() -> World:
    return World(SMALL, now=EPOCH)


def _run(module: str, into: Path, *flags: str) -> Any:
    command = [sys.executable, "-m", f"benchmarks.{module}", *flags, "--json", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| members × sources" in done.stdout or "| contender" in done.stdout
    return json.loads(into.read_text("utf-8"))


def test_the_engines_benchmark_measures_every_size_and_case(tmp_path: Path) -> None:
    flags = ("--members", "5", "20", "--sources", "1", "8", "--rounds", "2", "--decisions", "20", "--stretches", "5")
    values = _run("engine", tmp_path / "engine.json", *flags)
    cells = {(c["members"], c["sources"], c["case"]): c for c in values["cells"]}
    assert cells.keys() == {(m, s, c.value) for m in (5, 20) for s in (1, 8) for c in Case}
    for cell in cells.values():
        assert all(rate > 0 for rate in cell["deciding"]["values"] + cell["rate"]["values"])
        assert cell["delivered"] > 0.5
    stages = values["alone"]["20"]["stages"]["8"]
    assert 0 < stages["decide"] < stages["fold"]
    assert stages["entries_count"] >= 1


def test_the_gateways_benchmark_asks_every_contender(tmp_path: Path) -> None:
    flags = ("--embedded", "--members", "5", "--drafts", "60", "--rounds", "1")
    values = _run("gateway", tmp_path / "gateway.json", *flags)
    for by in values["results"].values():
        for (run,) in by.values():
            assert len(run["latencies"]) == 48
            assert run["seconds"] > 0
            assert run["cpu"]["gateway"] >= 0


def test_the_engine_sets_and_bitmaps_agree_on_drafts_of_which_some_are_refused() -> None:
    contest = Contest(_world())
    for case in (Case.WARM, Case.CHANGING):
        laps = contest.run(case, sources=3, count=100)
        delivered = laps["engine"].delivered
        assert laps["sets"].delivered == laps["bitmaps"].delivered == delivered
        assert 0.5 < sum(delivered) / len(delivered) < 0.95


def test_contenders_that_do_not_agree_end_the_benchmark() -> None:
    contest = Contest(_world())
    stranger = MembershipChanged(
        tenant="acme", at=EPOCH, room="slack:T1/CD0", reader="slack:T1/UX", kind="member", change="joined"
    )
    contest._sets.apply(stranger)
    with pytest.raises(AssertionError, match="do not agree"):
        contest.run(Case.WARM, sources=3, count=50)


@pytest.mark.parametrize("contender", [Sets, Bitmaps])
def test_a_bare_contender_takes_memberships_as_they_change(contender: type[Sets] | type[Bitmaps]) -> None:
    world, bare = _world(), contender()
    for record in world.beginning():
        bare.apply(record)
    answers = []
    for record in lap_records(world, Case.CHANGING, sources=2, count=100):
        answers.append((record, bare.apply(record)))
    drafts = [answer for record, answer in answers if isinstance(record, TurnDrafted)]
    assert {True, False} == set(drafts)
    assert all(answer is None for record, answer in answers if isinstance(record, MembershipPage))


def test_no_two_sources_are_the_same_question() -> None:
    pages: dict[str, set[str]] = {}
    for record in _world().beginning():
        if isinstance(record, MembershipPage):
            pages.setdefault(record.room, set()).update(m.reader for m in record.members)
    audiences = list(map(frozenset, pages.values()))
    assert len(set(audiences)) == len(audiences) == 7


def test_the_constant_engine_writes_as_much_as_the_real_one() -> None:
    """The benchmark compares carrying with carrying and deciding, so what is carried must be the same."""
    codec, world = Codec(), _world()
    made = sample(world, 3)
    drafts = [world.draft(3) for _ in range(len(made.decided))]
    messages = [Message(DRAFTS, 0, n, d.at, b"acme", codec.encode(d)) for n, d in enumerate(drafts)]
    fold = Fold(0, Constant(made), codec)
    commit = fold.apply(Stretch(dict(fold.positions), {**fold.positions, DRAFTS: len(messages)}, messages))
    real = [out for one in made.decided for out in one.outputs]
    constant = [out for out in commit.outputs if out.topic != APPLIED]
    assert [(o.topic, o.value) for o in constant] == [(o.topic, o.value) for o in real]
    assert _state_bytes(commit) == _bytes(made.once) + sum(_bytes(one.entries) for one in made.decided)
    assert sum(isinstance(codec.decode(out.value), TurnDecided) for out in constant) == len(drafts)


def _state_bytes(commit: Commit) -> int:
    return _bytes(commit.entries)


def _bytes(entries: list[tuple[bytes, bytes | None]]) -> int:
    return sum(len(key) + len(value or b"") for key, value in entries)


@pytest.mark.kafka
def test_the_workers_benchmark_measures_every_contender(kafka: str, tmp_path: Path) -> None:
    flags = ("--members", "5", "--sources", "2", "--partitions", "1", "--rounds", "1", "--drafts", "3000", "--shadow")
    values = _run("worker", tmp_path / "worker.json", *flags, "--bootstrap-servers", kafka)
    assert values["results"].keys() == {"worker", "shadow", "constant", "bare", "faust"}
    for runs in values["results"].values():
        (run,) = runs
        assert run["drafts"] > 0
        assert run["seconds"] > 0
        assert run["cpu"] > 0


def test_looking_for_values_is_timed_beside_looking_for_none(tmp_path: Path) -> None:
    found = _run("matching", tmp_path / "out.json", "--values", "200")
    assert set(found) >= {"whole decision, 200 values", "whole decision, no values", "find alone", "links alone"}


def test_the_memory_benchmark_grows_a_history_and_comes_back_from_it(tmp_path: Path) -> None:
    into = tmp_path / "memory.json"
    flags = ("--messages", "200", "900", "--drafts", "10", "--depth", "12", "--leaves", "40")
    command = [sys.executable, "-m", "benchmarks.memory", *flags, "--json", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    values = json.loads(into.read_text("utf-8"))
    assert [g["delivered"] for g in values["grown"]] == [1.0, 1.0]
    assert values["restart"]["entries"] > 900
    assert values["restart"]["entry_bytes"] > 100_000
    named = {d["what"] for d in values["deep"]}
    assert {"a memory of 40 leaves", "derivations, 12 deep", "amendments, 12 deep"} <= named
    assert all(d["record_bytes"] > 0 and d["draft"] > 0 for d in values["deep"])


def test_a_draft_takes_as_many_calls_however_long_a_tenants_history_is() -> None:
    history, applied = History(8, now=EPOCH), Applied()
    applied.all(history.beginning())
    found = []
    for said in (400, 4_000):
        applied.all(history.more(said))
        calls = 0

        def count(_: FrameType, event: str, __: object) -> None:
            nonlocal calls
            calls += event == "call"

        drafts = [history.draft() for _ in range(50)]
        sys.setprofile(count)
        decided = [record for draft in drafts for record in applied.one(draft)[0]]
        sys.setprofile(None)
        assert sum(isinstance(r, TurnDecided) and r.verdict is Verdict.DELIVER for r in decided) == len(drafts)
        found.append(calls / len(drafts))
    assert found[1] < 1.05 * found[0], found


@pytest.mark.kafka
def test_a_worker_comes_back_from_the_checkpoint_that_the_memory_benchmark_left(kafka: str, tmp_path: Path) -> None:
    entries = tmp_path / "entries"
    sizes = ("--messages", "300", "--drafts", "3", "--depth", "2", "--leaves", "20", "--keep", str(entries))
    subprocess.run([sys.executable, "-m", "benchmarks.memory", *sizes], cwd=ROOT, timeout=240, check=True)
    command, found = [sys.executable, "-m", "benchmarks.restart", str(entries)], []
    for flags in (("--engine",), ("--engine", "--copies", "3"), ("--bootstrap-servers", kafka, "--copies", "3")):
        done = subprocess.run([*command, *flags], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(json.loads(done.stdout))
    assert found[0]["entries"] > 300
    assert found[2]["entries"] == found[1]["entries"] > 2.5 * found[0]["entries"]


def test_the_stores_benchmark_stores_all_that_was_decided(postgres: str, tmp_path: Path) -> None:
    flags = ("--quick", "--drafts", "100", "--members", "5", "--postgres-dsn", postgres)
    values = _run("store", tmp_path / "store.json", *flags)
    for result in values["results"]:
        assert result["records"] > 2  # a verdict, a trace, and of most what was let out
        assert result["rows"] > result["records"]
        measured = [name for name in result if name.endswith(("_cpu", "_time"))]
        assert len(measured) == 6
        assert all(value > 0 for name in measured for value in result[name])


@pytest.mark.kafka
def test_a_store_beside_a_worker_has_all_that_it_decided(kafka: str, postgres: str) -> None:
    flags = ("--drafts", "60", "--members", "5", "--bootstrap-servers", kafka, "--postgres-dsn", postgres)
    command = [sys.executable, "-m", "benchmarks.store_beside_worker", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("later all that came of them was stored (60 decisions)\n")
