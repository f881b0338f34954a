"""Which texts of memories the store holds: none that was refused, erased, about health, or never became a revision."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from tests.sinks.store.stores import pour
from tests.streams.telling import ALEX, C1, D1, EPOCH, KIM, POLICY, World
from turngate.schemas.codec import Codec
from turngate.sinks.store.batch import Audiences, Batch
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.pruning import prune
from turngate.sinks.store.sqlite import SqliteStore
from turngate.sinks.store.tables import MEMORIES
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.local_log import LocalLog

CODEC = Codec()
GONE, KEPT = "zebra", "giraffe"
#: What must be there in the end, by revision: a text, or why there is none.
EXPECTED = {
    "k@1": KEPT,
    "later@1": KEPT,
    "m@1": "erased",
    "d@1": "erased",
    "other@1": "erased",
    "ill@1": "health",
    "mixed@1": "refused",
    "k@2": GONE,
}
#: What becomes of a write that was only repeated: nobody refuses it, and it is no revision (R-EVI-8).
SETTLED = EXPECTED | {"k@2": "refused"}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LocalLog]:
    with LocalLog(tmp_path / "a.log") as log:
        world = World(log)
        world.send("PolicyPublished", version="1", document=POLICY)
        world.listing(D1, ALEX)
        world.listing(C1, ALEX, KIM)
        mine, theirs = world.message(D1, 1, ALEX, GONE), world.message(C1, 2, KIM, KEPT)
        world.write("m", "m@1", GONE, [mine])
        world.write("d", "d@1", GONE, ["revision:m@1"], op="derive")
        world.write("k", "k@1", KEPT, [theirs])
        world.write("mixed", "mixed@1", GONE, [mine, theirs])  # a dream of two audiences (R-EVI-9)
        named = {"write": "w-ill", "memory": "ill", "revision": "ill@1", "op": "create", "by": "dream", "kind": "note"}
        world.send("MemoryWrite", **named, text=GONE, health=True, sources=[mine])
        world.erase(reader=ALEX)
        world.write("other", "other@1", GONE, [theirs])
        world.erase(memory="other")
        world.write("later", "later@1", KEPT, [theirs])
        world.send(
            "MemoryWrite", **(named | {"write": "w-k@1", "memory": "k", "revision": "k@2"}), text=GONE, sources=[theirs]
        )
        yield log


def a_day_later(log: LocalLog) -> None:
    """Somebody writes again, so that it is known that everything before was answered."""
    world = World(log)
    world.at = EPOCH + 2 * 86_400_000
    world.write("late", "late@1", KEPT, [])


def test_a_file_holds_no_text_that_had_to_go(log: LocalLog, tmp_path: Path) -> None:  # R-RET-3, R-MEM-6
    with SqliteStore(tmp_path / "store", CODEC) as store:
        store.fill(log)
        assert texts(store.engine) == EXPECTED
        a_day_later(log)
        store.fill(log)
        assert texts(store.engine) == SETTLED | {"late@1": KEPT}
        store.scrub()
    left = b"".join(path.read_bytes() for path in tmp_path.glob("store*"))
    assert GONE.encode() not in left
    assert KEPT.encode() in left


async def test_nor_does_postgres(log: LocalLog, postgres: str, unique: str) -> None:
    engine = postgres_engine(PostgresSettings(postgres), unique)
    async with PostgresStore(PostgresSettings(postgres), CODEC, unique) as store:
        await pour(store, log)
        await prune(store, EPOCH)
        assert texts(engine) == EXPECTED
        a_day_later(log)
        await pour(store, log)
        await prune(store, EPOCH)
        assert texts(engine) == SETTLED | {"late@1": KEPT}


@pytest.mark.parametrize("order", [0, 9, 18])
def test_in_whatever_order_the_topics_are_read(log: LocalLog, tmp_path: Path, order: int) -> None:
    topics = ["memory-writes", "operator-commands", "memory-revisions", "room-lifecycle"]
    with SqliteStore(tmp_path / "store", CODEC) as store:
        for topic in list(itertools.permutations(topics))[order]:
            for start in range(log.end(topic, 0)):
                batch = Batch(CODEC, Audiences())
                batch.begin((topic, 0), start)
                for message in log.scan(topic, 0, start, start + 1):
                    batch.add(message)
                store.write(batch)
        assert texts(store.engine) == EXPECTED


def texts(engine: Engine) -> dict[str, str]:
    """What there is of each revision: its text, or why it has none."""
    with engine.connect() as connection:
        rows = connection.execute(select(MEMORIES.c.revision, MEMORIES.c.text, MEMORIES.c.gone)).all()
    return {revision: text or gone for revision, text, gone in rows}
