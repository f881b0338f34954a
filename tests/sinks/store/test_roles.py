"""Whoever only reads can select and nothing else, and no text of a memory unless that is given."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from turngate.schemas.codec import Codec
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.migrating import opened
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.roles import read_only
from turngate.sinks.store.tables import TABLES
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.log import LogError

REFUSED = (
    "INSERT INTO positions VALUES ('t', 0, 0, 0, 0)",
    "UPDATE positions SET next = 0",
    "UPDATE memories SET gone = 'erased'",
    "DELETE FROM decisions",
    "TRUNCATE decisions",
    "DROP TABLE decisions",
    "CREATE TABLE mine (n int)",
    "ALTER TABLE decisions ADD COLUMN n int",
    "SELECT * FROM decisions_2026_01",
    "SELECT pg_read_file('postgresql.conf')",
)


@pytest.mark.parametrize("texts", [False, True])
async def test_a_reader_selects_and_does_nothing_else(postgres: str, unique: str, texts: bool) -> None:
    role = f"{unique}_reader"
    async with PostgresStore(PostgresSettings(postgres), Codec(), unique) as store:
        await store.have_months([1_769_904_000_000])  # January 2026
    for _ in range(2):  # which can be repeated
        with opened(postgres_engine(PostgresSettings(postgres), unique)) as connection:
            read_only(connection, role, texts=texts, schema=unique)
            connection.commit()
    with psycopg.connect(postgres, autocommit=True) as session:
        try:
            session.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(unique)))
            session.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
            for name, table in TABLES.tables.items():
                columns = [c.name for c in table.c if (name, c.name) != ("memories", "text")]
                wanted = sql.SQL(", ").join(map(sql.Identifier, columns))
                session.execute(sql.SQL("SELECT {} FROM {}").format(wanted, sql.Identifier(name)))
            for statement in REFUSED:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute(statement)
            if texts:
                session.execute("SELECT text FROM memories")
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute("SELECT text FROM memories")
        finally:
            session.execute("RESET ROLE")
            session.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            session.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.mark.parametrize(
    ("means", "can"),
    [
        ("ALTER ROLE {role} SUPERUSER", "write to the store"),
        ("GRANT {owner} TO {role}", "write to the store"),
        ("ALTER ROLE {role} NOINHERIT; GRANT {owner} TO {role}", "write to the store"),
        ("GRANT pg_write_all_data TO {role}", "write to the store"),
        ("GRANT UPDATE (gone) ON {schema}.memories TO PUBLIC", "write to the store"),
        ("ALTER TABLE {schema}.grants OWNER TO {role}", "write to the store"),
        ("GRANT pg_read_all_data TO {role}", "read memories' texts"),
        ("GRANT SELECT ON {schema}.memories_2026_01 TO {role}", None),
        ("GRANT SELECT ON {schema}.memories_2026_01 TO PUBLIC", "read memories' texts"),
    ],
)
async def test_a_role_that_can_do_more_all_the_same_is_refused(
    postgres: str, unique: str, means: str, can: str | None
) -> None:
    role = f"{unique}_more"
    async with PostgresStore(PostgresSettings(postgres), Codec(), unique) as store:
        await store.have_months([1_769_904_000_000])  # January 2026
    with psycopg.connect(postgres, autocommit=True) as session:
        session.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
        try:
            owner = session.execute("SELECT CURRENT_USER").fetchone()
            assert owner is not None
            of = {"role": role, "schema": unique, "owner": owner[0]}
            session.execute(sql.SQL(means).format(**{name: sql.Identifier(value) for name, value in of.items()}))
            with opened(postgres_engine(PostgresSettings(postgres), unique)) as connection:
                if can is None:  # what was given before is taken away
                    read_only(connection, role, schema=unique)
                    return
                with pytest.raises(LogError, match=f"_more can {can} by other means"):
                    read_only(connection, role, schema=unique)
                if "pg_read" in means:
                    read_only(connection, role, texts=True, schema=unique)
        finally:
            session.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(sql.Identifier(role)))
            session.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            session.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
