"""Rows end `retention.log` after their records, each tenant's by its newest policy (R-RET-2), and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, select, text

from tests.sinks.store.stores import pour
from tests.streams.telling import ALEX, C1, EPOCH, KIM, World
from turngate.schemas.codec import Codec
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.pruning import prune
from turngate.sinks.store.sqlite import SqliteStore
from turngate.sinks.store.tables import AUDIENCES, DECISIONS, LEAVES
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.local_log import LocalLog

CODEC = Codec()
DAY = 86_400_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LocalLog]:
    """Two tenants say the same in January and in March; one keeps the log for 30 days, the other for years."""
    with LocalLog(tmp_path / "a.log") as log:
        world = World(log)
        for month, days in enumerate((0, 65)):
            world.at = EPOCH + days * DAY
            for tenant, kept in (("acme", "30d"), ("bolt", "7y")):
                agents = {"mesh": {"accounts": ["slack:T1/UBOT"]}}
                document = {"version": month + 1, "agents": agents, "retention": {"log": kept}}
                world.send("PolicyPublished", tenant, version=str(month + 1), document=json.dumps(document))
                world.listing(C1, *[ALEX, KIM][: 2 - month], tenant=tenant)
                said = world.message(C1, month, ALEX, "hello", tenant=tenant)
                renderings = [{"text": "hello"}]
                world.send("TurnDrafted", tenant, turn=f"t{month}", room=C1, trigger=said, renderings=renderings)
        yield log


def left(engine: Engine) -> dict[str, list[str]]:
    with engine.connect() as connection:
        turns = connection.execute(select(DECISIONS.c.tenant, DECISIONS.c.turn)).all()
        leaves = connection.execute(select(LEAVES.c.tenant, LEAVES.c.ref)).all()
        audiences = connection.execute(select(AUDIENCES.c.tenant, AUDIENCES.c.readers)).all()
    return {
        tenant: sorted(
            [turn for of, turn in turns if of == tenant]
            + [ref.rpartition("/")[2] for of, ref in leaves if of == tenant]
            + [f"{len(readers)} readers" for of, readers in audiences if of == tenant]
        )
        for tenant in ("acme", "bolt")
    }


ALL = ["0", "1", "1 readers", "2 readers", "t0", "t1"]
LATER = ["1", "1 readers", "t1"]


def test_in_a_file_by_the_logs_own_time(log: LocalLog, tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store", CODEC) as store:
        store.fill(log)
        assert left(store.engine) == {"acme": LATER, "bolt": ALL}


async def test_in_postgres_and_a_month_that_has_ended_goes_as_a_whole(
    log: LocalLog, postgres: str, unique: str
) -> None:
    engine = postgres_engine(PostgresSettings(postgres), unique)
    async with PostgresStore(PostgresSettings(postgres), CODEC, unique) as store:
        await pour(store, log)
        await prune(store, EPOCH + 29 * DAY)
        assert left(engine) == {"acme": ALL, "bolt": ALL}
        await prune(store, EPOCH + 66 * DAY)
        assert left(engine) == {"acme": LATER, "bolt": ALL}
        months = ("decisions_2026_01", "decisions_2026_03", "grants_2026_01", "grants_2026_03")
        assert _there(engine, *months) == [True, True, False, True]  # nobody has granted anything in January
        await prune(store, EPOCH + 8 * 365 * DAY)
        assert left(engine) == {"acme": [], "bolt": []}
        assert _there(engine, *months) == [False] * 4
        await pour(store, log)  # nothing comes back
        assert left(engine) == {"acme": [], "bolt": []}


def _there(engine: Engine, *names: str) -> list[bool]:
    with engine.connect() as connection:
        return [connection.scalar(text("SELECT to_regclass(:name)"), {"name": name}) is not None for name in names]
