"""After an erasure no byte of the texts is in an embedded log's file, and all else of it is as it was (R-RET-3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.streams.telling import ALEX, C1, CODEC, D1, KIM, POLICY, World
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.catalog import INPUT_TOPICS
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.outputs import TurnDecided
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog
from turngate.streams.log import LogError, Message
from turngate.streams.purging import purge, without_texts
from turngate.streams.recorded import recorded_stretches

#: In every text that the erasure of Alex concerns, and in every other one.
GONE, KEPT = "zebra", "giraffe"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


@pytest.fixture
def world(path: Path) -> Iterator[World]:
    """Alex writes in two rooms, and what he wrote is read, remembered, shared and said; Kim writes, too."""
    with LocalLog(path) as log:
        made = World(log)
        document = POLICY
        for tenant in ("acme", "other"):
            made.send("PolicyPublished", tenant, version="1", document=document)
            made.listing(D1, ALEX, tenant=tenant)
        made.listing(C1, ALEX, KIM)
        made.message(D1, 1, ALEX, f"a {GONE} is mine")
        made.message(D1, 1, ALEX, f"a {GONE} is mine, edited", edited=True)
        made.message(D1, 1, ALEX, f"a {KEPT} of somebody else's", tenant="other")
        made.message(C1, 1, ALEX, f"hello from the {GONE}")
        made.message(C1, 2, KIM, f"and a {KEPT}")
        made.message(C1, 3, KIM, f"as {ALEX} said: {GONE}", quotes=[f"message:{C1}/1"])
        field = {"name": "animal", "value": KEPT, "class": "internal"}
        made.send("ToolReturned", room=C1, call="k1", server="wiki", operation="read", fields=[field])
        made.write("m", "m@1", f"the {GONE} is kept", [f"message:{D1}/1"])
        made.write("d", "d@1", f"the {GONE} is derived", ["revision:m@1"], op="derive")
        made.write("k", "k@1", f"the {KEPT} is kept", [f"message:{C1}/2"])
        made.send("SharingRequested", request="q1", room=D1, revision="d@1", audience={"workspace": "slack:T1"})
        made.draft("t1", D1, f"message:{D1}/1", f"as to your {GONE}")
        made.draft("t2", C1, f"message:{C1}/2", f"as to the {KEPT}")
        made.draft("t3", C1, f"message:{C1}/2", f"the {GONE} of the direct room", exposed=[f"message:{D1}/1"])
        yield made


def on_disk(path: Path) -> bytes:
    """All bytes of the log's files."""
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def everything(log: LocalLog) -> dict[tuple[str, int], Message]:
    return {(m.topic, m.offset): m for topic in log.topics() for m in log.scan(topic)}


def test_no_byte_of_an_authors_texts_is_left(world: World, path: Path) -> None:
    holding = [m for m in everything(world.log).values() if GONE.encode() in (m.value or b"")]
    assert {m.topic for m in holding} == {"observed-messages", "memory-writes", "turn-drafts", "grants", "outbound"}
    assert purge(world.log, *world.erase(reader=ALEX)) == len(holding)
    assert GONE.encode() not in on_disk(path)
    assert KEPT.encode() in on_disk(path)


def test_everything_else_is_as_it_was(world: World) -> None:
    before = everything(world.log)
    command, refs = world.erase(reader=ALEX)
    erased_at = everything(world.log)
    purge(world.log, command, refs)
    after = everything(world.log)
    assert after.keys() == erased_at.keys()
    for place, message in before.items():
        new = after[place]
        assert (new.timestamp, new.key, new.headers) == (message.timestamp, message.key, message.headers)
        if GONE.encode() not in (message.value or b""):
            assert new.value == message.value
        else:
            assert CODEC.decode(new.value) == without_texts(CODEC.decode(message.value))


def test_once_is_enough(world: World) -> None:
    erasure = world.erase(reader=ALEX)
    assert purge(world.log, *erasure) > 0
    assert purge(world.log, *erasure) == 0


@pytest.mark.parametrize(
    ("what", "gone", "kept"),
    [
        ({"room": D1}, ["a zebra is mine", "zebra is kept", "zebra is derived", "as to your", "of the direct"],
         ["hello from the zebra", "as to the giraffe", "giraffe is kept"]),
        ({"room": C1}, ["hello from the zebra", "and a giraffe", "giraffe is kept", "as to the giraffe"],
         ["a zebra is mine", "zebra is derived", "as to your"]),
        ({"memory": "m"}, ["zebra is kept", "zebra is derived"], ["a zebra is mine", "giraffe is kept", "as to your"]),
        ({"memory": "k"}, ["giraffe is kept"], ["and a giraffe", "zebra is kept"]),
        ({"reader": KIM}, ["and a giraffe", "giraffe is kept", "as to the giraffe"], ["a zebra is mine", "as to your"]),
    ],
)  # fmt: skip
def test_what_is_named_goes_and_what_is_not_stays(
    world: World, path: Path, what: dict[str, str], gone: list[str], kept: list[str]
) -> None:
    purge(world.log, *world.erase(**what))
    left = on_disk(path)
    assert [text for text in gone if text.encode() in left] == []
    assert [text for text in kept if text.encode() not in left] == []
    assert b"of somebody else's" in left  # of another tenant, by an account of the same id


def test_a_replay_decides_as_before(world: World) -> None:
    """Nothing depended on a text here, so all decisions come again, and the refs are deleted at the same place."""
    purge(world.log, *world.erase(reader=ALEX))
    world.draft("t4", D1, f"message:{D1}/1", "again")
    decided = [m.value for m in world.log.scan("turn-verdicts")]
    with LocalLog() as copy:
        for topic in INPUT_TOPICS:
            for m in world.log.scan(topic):
                copy.append(topic, m.key, m.value, timestamp=m.timestamp, headers=m.headers, offset=m.offset)
        replayed = list(LocalRuntime(copy, CODEC, keys=TEST_KEYS).replay(recorded_stretches(world.log, CODEC)))
    again = [CODEC.decode(m.value) for m in replayed if m.topic == "turn-verdicts"]
    first = [CODEC.decode(value) for value in decided]
    named = {"decision", "fingerprint"}  # they are digests of what was drafted too
    assert [r.model_dump(exclude=named) for r in again] == [r.model_dump(exclude=named) for r in first]
    last = [r for r in again if isinstance(r, TurnDecided)][-1]
    assert {reason.code for reason in last.reasons} >= {"source_deleted"}


def test_an_engine_goes_on_after_it(world: World, path: Path) -> None:
    purge(world.log, *world.erase(reader=ALEX))
    world.message(D1, 9, ALEX, "still here")
    digest = world.runtime.engine.state.digest()
    assert LocalRuntime(world.log, CODEC, keys=TEST_KEYS).engine.state.digest() == digest


def test_a_reader_keeps_former_pages_and_it_is_said(world: World, path: Path) -> None:
    command = world.erase(reader=ALEX)
    with LocalLog(path, read_only=True) as reader:
        reading = reader.checkpoint(0).entries  # a snapshot that lives until its last entry
        next(iter(reading))
        with pytest.raises(LogError, match=r"still lies in its -wal|locked"):
            purge(world.log, *command)
        list(reading)
    purge(world.log, *command)
    world.log.erase([])
    assert GONE.encode() not in on_disk(path)


def test_what_is_no_text_stays_in_a_draft() -> None:
    fields = {"tenant": "acme", "at": 1, "agent": "mesh", "turn": "t1", "room": D1, "exposed": ["tool:k1"]}
    param = {"name": "amount", "value": "12", "origin": "read", "evidence": "tool:k1"}
    draft = TurnDrafted.model_validate(
        fields | {"renderings": [{"text": "no", "request": "q"}], "action": {"operation": "o", "params": [param]}}
    )
    emptied = TurnDrafted.model_validate(
        fields
        | {"renderings": [{"text": "", "request": "q"}]}
        | {"action": {"operation": "o", "params": [param | {"value": ""}]}}
    )
    assert without_texts(draft) == emptied


def test_a_log_in_memory_forgets_too() -> None:
    with LocalLog() as log:
        world = World(log)
        world.send("PolicyPublished", version="1", document=POLICY)
        world.listing(D1, ALEX)
        world.message(D1, 1, ALEX, f"a {GONE}")
        assert purge(log, *world.erase(room=D1)) == 1
        (message,) = log.scan("observed-messages")
        assert GONE.encode() not in (message.value or b"")
