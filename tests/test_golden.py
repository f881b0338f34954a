"""The golden streams: `turngate apply`, as it is installed, prints the records that must come of them, in order.

On the embedded log, and through the worker on a broker.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.catalog import OUTPUT_TOPICS
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import DecisionTraced, SharingOffered
from turngate.streams.auditing import audit
from turngate.streams.local_log import LocalLog
from turngate.streams.private import write_private

#: A log, and what the checker said of what came to lie on it.
Kept = tuple[Path, subprocess.CompletedProcess[str]]

FOLDER = Path(__file__).parent / "golden"
#: The command beside the interpreter that runs the tests.
TURNGATE = Path(sys.executable).with_name("turngate")


def checked(command: str) -> subprocess.CompletedProcess[str]:
    """All streams as one file, compared by the checker that lies beside them."""
    return subprocess.run(
        [sys.executable, str(FOLDER / "check.py"), f"{TURNGATE} {command}"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TURNGATE_TEST_TIME": "1"},
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The log of all streams, and what the checker said of what came of them."""
    folder = tmp_path_factory.mktemp("golden")
    secrets = {name: {t: secret.hex() for t, secret in of.items()} for name, of in TEST_KEYS.secrets.items()}
    write_private("keys file", folder / "keys.json", json.dumps({"current": TEST_KEYS.current, "keys": secrets}))
    return folder / "log", checked(f"apply {{events}} --log {folder / 'log'} --keys-file {folder / 'keys.json'}")


def test_every_stream_gives_what_is_expected_all_in_one_file(kept: Kept) -> None:
    _, done = kept
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "120 passed, 0 failed"


def test_the_same_engine_makes_the_same_bytes_and_leaves_the_same_state(kept: Kept) -> None:  # R-RUN-3
    """Also of what the checker leaves free. Where this changes on purpose, `Engine.version` grows (CONTRIBUTING.md)."""
    made, state = hashlib.sha256(), hashlib.sha256()
    with LocalLog(kept[0], read_only=True) as log:
        for topic in OUTPUT_TOPICS:
            for message in log.scan(topic):
                made.update(repr((topic, message.key, message.value, message.headers)).encode())
        for entry in sorted(log.checkpoint(0).entries):
            state.update(repr(entry).encode())
    known = json.loads((FOLDER / "bytes.json").read_text("utf-8"))
    assert known[Engine.version] == {"records": made.hexdigest(), "state": state.hexdigest()}


def test_every_stream_leaves_a_whole_chain(kept: Kept) -> None:  # R-RET-2
    with LocalLog(kept[0], read_only=True) as log:
        found = audit(log, Codec(), 0)
    assert found.breaks == []
    assert len(found.chains.heads) == 120
    assert found.chains.traces > 10_000


def test_no_trace_of_any_stream_holds_a_text_a_value_or_a_code(kept: Kept) -> None:  # R-RET-2, R-GRT-10
    texts: dict[str, set[str]] = {}
    traces: dict[str, list[str]] = {}
    with LocalLog(kept[0], read_only=True) as log:
        for topic in ("audit", "observed-messages", "tool-results", "memory-writes", "turn-drafts", "grants"):
            for message in log.scan(topic):
                try:
                    record = Codec().decode(message.value)
                except Undecodable:
                    continue  # which is a dead letter, and no decision
                if isinstance(record, DecisionTraced):
                    traces.setdefault(record.tenant, []).append(record.model_dump_json())
                else:
                    texts.setdefault(record.tenant, set()).update(told(record))
    for tenant, of in traces.items():
        everything = "".join(of)
        assert [text for text in texts[tenant] if text in everything] == [], tenant
    assert sum(map(len, texts.values())) > 1_000


def told(record: Record) -> Iterator[str]:
    """The texts, values and codes in a record that are too long to stand in an id or a digest by chance."""
    said: list[str | None] = [getattr(record, name, None) for name in ("text", "error", "note")]
    said += [record.code] if isinstance(record, SharingOffered) else []
    said += [rendering.text for rendering in getattr(record, "renderings", ())]
    said += [field.value for field in getattr(record, "fields", ())]
    said += [param.value for param in getattr(getattr(record, "action", None), "params", ())]
    yield from (text for text in said if isinstance(text, str) and len(text) > 5)


@pytest.mark.kafka
def test_every_stream_gives_what_is_expected_through_the_worker_on_a_broker(kafka: str) -> None:
    done = checked(f"apply --kafka --bootstrap-servers {kafka} {{events}}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "120 passed, 0 failed"
