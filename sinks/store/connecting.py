"""Decides how the store in Postgres is reached: in a schema of its own."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from turngate.streams.kafka.settings import PostgresSettings

#: The schema of the store's tables in Postgres: whatever else is in the database is not touched.
SCHEMA = "turngate"
#: Seconds in which a database must have answered a connection.
PATIENCE = 10


def _sets(schema: str) -> sql.Composed:
    return sql.SQL("SET search_path TO {}").format(sql.Identifier(schema))


def postgres_engine(settings: PostgresSettings, schema: str = SCHEMA) -> Engine:
    """Connections for somebody who asks or migrates; each is made when asked for."""

    def connect() -> psycopg.Connection[Any]:
        connection = psycopg.connect(settings.conninfo(), connect_timeout=PATIENCE)
        connection.execute(_sets(schema))
        connection.commit()
        return connection

    return create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)


def postgres_async_engine(settings: PostgresSettings, schema: str = SCHEMA) -> AsyncEngine:
    """The same for whoever fills the store."""

    async def connect() -> psycopg.AsyncConnection[Any]:
        connection = await psycopg.AsyncConnection.connect(settings.conninfo(), connect_timeout=PATIENCE)
        await connection.execute(_sets(schema))
        await connection.commit()
        return connection

    return create_async_engine("postgresql+psycopg://", async_creator=connect, poolclass=NullPool)
