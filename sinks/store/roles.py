"""Decides what somebody may do who only reads the store in Postgres: select, and by default no text of a memory."""

from __future__ import annotations

from psycopg import sql
from sqlalchemy import Connection, text

from turngate.sinks.store.connecting import SCHEMA
from turngate.sinks.store.migrating import VERSION_TABLE
from turngate.sinks.store.tables import MEMORIES, TABLES


def read_only(connection: Connection, role: str, *, texts: bool = False, schema: str = SCHEMA) -> None:
    """Make the role where there is none, unable to log in, and give it what it may have, and nothing else of the store.

    `texts`: it may read the memories' texts too. A partition by its own name is nothing that it may read.
    """
    who, where = sql.Identifier(role), sql.Identifier(schema)
    if connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}) is None:
        _run(connection, sql.SQL("CREATE ROLE {} NOLOGIN").format(who))
    _run(connection, sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM {}").format(where, who))
    _run(connection, sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}").format(where, who))
    _run(connection, sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(where, who))
    for name, table in TABLES.tables.items():
        of = sql.Identifier(schema, name)
        if table is MEMORIES and not texts:
            columns = sql.SQL(", ").join(sql.Identifier(c.name) for c in table.c if c is not MEMORIES.c.text)
            _run(connection, sql.SQL("GRANT SELECT ({}) ON {} TO {}").format(columns, of, who))
        else:
            _run(connection, sql.SQL("GRANT SELECT ON {} TO {}").format(of, who))
    _run(connection, sql.SQL("GRANT SELECT ON {} TO {}").format(sql.Identifier(schema, VERSION_TABLE), who))


def _run(connection: Connection, statement: sql.Composed) -> None:
    connection.exec_driver_sql(statement.as_string(), execution_options={"no_parameters": True})
