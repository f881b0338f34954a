"""Decides what the tests of what a store is asked share: one story, in both databases."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Connection

from tests.sinks.store.stores import pour
from tests.sinks.store.story import tell
from tests.streams.telling import CODEC, World
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.migrating import opened
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.sqlite import SqliteStore
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.local_log import LocalLog


@pytest.fixture(scope="session")
def told_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLog]:
    """The log of the story."""
    with LocalLog(tmp_path_factory.mktemp("log") / "a.log") as log:
        tell(World(log))
        yield log


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def told_store(
    request: pytest.FixtureRequest, told_log: LocalLog, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            path = tmp_path_factory.mktemp("store") / "store"
            file = stack.enter_context(SqliteStore(path, CODEC))
            file.fill(told_log)
            engine = file.engine
        else:
            settings, schema = PostgresSettings(request.getfixturevalue("postgres")), f"t{uuid.uuid4().hex[:12]}"
            asyncio.run(_filled(settings, schema, told_log))
            engine = postgres_engine(settings, schema)
        yield stack.enter_context(opened(engine))


@pytest.fixture
def store(told_store: Connection) -> Iterator[Connection]:
    """The story's store; whatever a test changes in it is undone."""
    yield told_store
    told_store.rollback()


async def _filled(settings: PostgresSettings, schema: str, log: LocalLog) -> None:
    async with PostgresStore(settings, CODEC, schema) as made:
        await pour(made, log)
