"""`turngate assess` beside a worker: memories are restricted as an endpoint's labels say, or where it says none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker import Broker
from tests.cli.conftest import MESSAGE, Line, Turngate, listing, written
from tests.cli.processes import Running, running
from tests.cli.test_on_kafka import tailed, worker
from tests.connectors.assessor.server import Answer, labelled, serving
from tests.connectors.assessor.writes import ENABLED, a_write
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka


@contextmanager
def process(bootstrap: str, url: str, folder: Path) -> Iterator[Running]:
    """`turngate assess`, once it has begun, until SIGTERM."""
    with running(folder, "assess", "--endpoint", url, "--bootstrap-servers", bootstrap) as assessing:
        assessing.until(" assessing")
        yield assessing
        assessing.stop()


def test_memories_are_restricted_as_their_labels_say(
    turngate: Turngate, own_broker: Broker, tmp_path: Path
) -> None:  # R-SEN-2
    at = ("--bootstrap-servers", own_broker.bootstrap)
    assert turngate("topics", "create", *at, "--partitions", 1).exit_code == 0
    held = threading.Event()

    def answer(fields: dict[str, object]) -> Answer:
        match fields["memory"]:
            case "slow":
                held.wait(30)
            case "broken":
                return 500, {}, b"the zebra is out"
            case "malformed":
                return labelled("harmless")
        return labelled("sensitive" if fields["memory"] == "private" else "ordinary")

    memories = ("plain", "private", "broken", "malformed", "slow")
    policy = ("PolicyPublished", {"version": "1", "document": ENABLED})
    text = "the zebra is out"
    began = now_ms()
    source = {"sources": ["message:slack:T1/D1/1"], "room": "slack:T1/D1", "text": text}
    writes: list[Line] = [
        ("MemoryWrite", a_write(write=f"w-{m}", memory=m, revision=f"{m}@1").model_dump(mode="json") | source)
        for m in memories
    ]
    with serving(answer) as server, worker(own_broker.bootstrap):
        for number, line in enumerate((policy, listing(began), MESSAGE)):
            assert turngate("send", written(tmp_path / str(number), line, at=began), *at).exit_code == 0
        with process(own_broker.bootstrap, server.url, tmp_path) as assessing:
            for write in writes:
                write[1].update(tenant="acme", at=began)
            assert turngate("send", written(tmp_path / "writes", *writes, at=began), *at).exit_code == 0

            def labelled_all() -> dict[str, dict[str, list[str]]] | None:
                found = revisions(turngate, own_broker.bootstrap)
                return found if len(found) == len(memories) else None

            recorded = assessing.wait(labelled_all)
            held.set()
    assert {m: tuple(recorded[m]["restrictions"]) for m in memories} == {
        "plain": (),
        **dict.fromkeys(("private", "broken", "malformed", "slow"), ("slack:T1/D1",)),
    }
    assert [recorded[m]["notes"] for m in ("private", "broken", "malformed")] == [
        ["sensitive"],
        ["uncertain"],
        ["uncertain"],
    ]
    assert all(fields.keys() == {"write", "memory", "text", "kind"} for fields in server.came)
    assert text not in assessing.said


def revisions(turngate: Turngate, bootstrap: str) -> dict[str, dict[str, list[str]]]:
    lines = (line for line in tailed(turngate, bootstrap, "memory-revisions") if line["record"] == "RevisionRecorded")
    values = [json.loads(json.dumps(line["value"])) for line in lines]
    return {value["memory"]: value for value in values}
