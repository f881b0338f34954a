"""Export, snapshot and replay of what a live worker decided, on the broker and from the exported directory."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.broker import Broker, quiet
from tests.cli.conftest import DRAFT, MESSAGE, POLICY, Turngate, listing, written
from tests.cli.test_on_kafka import tailed, worker
from tests.registry import Registry
from turngate.streams.archive import Archive
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka


def test_what_a_worker_decided_is_decided_again(
    turngate: Turngate, own_broker: Broker, own_registry: Registry, tmp_path: Path
) -> None:
    at = ("--bootstrap-servers", own_broker.bootstrap)
    both = (*at, "--registry-url", own_registry.url)
    assert turngate("topics", "create", *both, "--partitions", 2).exit_code == 0
    assert turngate("snapshot", tmp_path / "kept", *at).stderr.endswith("so there is no state\n")

    def told(number: int, *lines: tuple[str, dict[str, object]]) -> None:
        assert turngate("send", written(tmp_path / str(number), *lines, at=now_ms()), *both).exit_code == 0

    def decided(count: int) -> list[dict[str, object]]:
        deadline = time.monotonic() + 40
        while len(found := tailed(turngate, own_broker.bootstrap, "turn-verdicts", *both[2:])) < count:
            assert time.monotonic() < deadline, "the worker decided nothing within 40 s"
        return found

    began = now_ms()
    nobody = tmp_path / "nobody.yaml"
    nobody.write_text("version: 2\n", "utf-8")
    shadowing = (*both[2:], "--instance", "one", "--shadow", str(nobody))
    with worker(own_broker.bootstrap, *shadowing):
        told(0, POLICY, listing(began), MESSAGE)
        told(1, DRAFT)
        (first,) = decided(1)
        partition = str(first["partition"])
        taken = turngate("snapshot", tmp_path / "kept", *at, "--partition", partition)
        assert (taken.exit_code, taken.stderr) == (0, "")
    with worker(own_broker.bootstrap, *shadowing):  # that one was killed
        told(2, (DRAFT[0], DRAFT[1] | {"turn": "t2"}), (DRAFT[0], DRAFT[1] | {"turn": "t3", "room": "slack:T1/C9"}))
        decided(3)

    whole = turngate("replay", *both, "--partition", partition)
    assert (whole.exit_code, whole.stderr) == (0, "")
    count = int(whole.stdout.removesuffix(" decisions, 0 differ\n"))
    assert count >= 5
    shadow = [d["value"] for d in tailed(turngate, own_broker.bootstrap, "shadow-verdicts", *both[2:])]
    would_be = turngate("replay", *both, "--partition", partition, "--policy", nobody, "--json").stdout.splitlines()
    assert len(shadow) >= 3
    assert [plain(value) for value in shadow] == [json.loads(line) for line in would_be[:-1]]

    later = ("--partition", partition, "--from", 1)
    since = turngate("replay", *both, *later, "--snapshots", tmp_path / "kept")
    assert since.stdout == turngate("replay", *both, *later).stdout
    assert 2 <= int(since.stdout.removesuffix(" decisions, 0 differ\n")) < count

    assert turngate("export", tmp_path / "x", *both).exit_code == 0
    archive = Archive(tmp_path / "x")
    assert sum(archive.end("turn-drafts", p) > 0 for p in (0, 1)) == 1
    alone = turngate("replay", "--exported", tmp_path / "x", "--partition", partition)  # without registry and broker
    assert (alone.exit_code, alone.stdout) == (0, whole.stdout)
    refused = turngate("report", "--tenant", "acme", "--json", *both)
    assert (refused.exit_code, refused.stderr) == (0, "")
    assert json.loads(refused.stdout)["decided"] >= 2  # the worker may have been killed while t3 was held
    assert turngate("report", "--tenant", "acme", "--json", "--exported", tmp_path / "x").stdout == refused.stdout
    without = turngate("replay", *at, "--partition", partition)
    assert (without.exit_code, "is no stretch" in without.stderr) == (2, True)

    assert turngate("send", written(tmp_path / "more", POLICY), *both).exit_code == 0
    assert turngate("replay", *both, "--partition", partition).stdout == whole.stdout  # nobody has applied it
    chained = turngate("audit", "verify", *both)  # as the worker wrote it, over its end and another one's beginning
    assert (chained.exit_code, chained.stderr) == (0, "")
    assert "; 0 chains broken" in chained.stdout
    assert turngate("audit", "verify", "--exported", tmp_path / "x").stdout == chained.stdout
    forged(own_broker.bootstrap, int(partition))
    broken = turngate("audit", "verify", *both)
    assert (broken.exit_code, f"turn-verdicts[{partition}]@" in broken.stdout) == (1, True)
    result = turngate("replay", *both, "--partition", partition, "--json")
    assert result.exit_code == 1
    difference, summary = map(json.loads, result.stdout.splitlines())
    assert (difference["topic"], difference["why"]) == ("turn-verdicts", "names no record that it came of")
    assert (difference["recorded"]["bytes"], difference["again"]) == (b"deliver".hex(), None)
    assert (summary["decisions"], summary["differ"]) == (count + 1, 1)


def plain(value: dict[str, Any]) -> dict[str, object]:
    """What a worker says of another policy, as a replay tells it."""
    outcomes = {
        name: value[name] | {"reasons": [_reason(r) for r in value[name]["reasons"]]} for name in ("was", "now")
    }
    return {name: value[name] for name in ("tenant", "room", "turn")} | outcomes


def _reason(reason: dict[str, object]) -> dict[str, object]:
    assert reason["detail"] is None
    return {name: reason[name] for name in ("code", "ref")}


def forged(bootstrap: str, partition: int) -> None:
    """Somebody with write access to `turn-verdicts` says something there."""
    producer = Producer(quiet(bootstrap))
    producer.produce("turn-verdicts", key=b"acme", value=b"deliver", partition=partition)
    assert producer.flush(20) == 0
