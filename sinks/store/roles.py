"""Decides what somebody may do who only reads the store in Postgres: select, and by default no text of a memory."""

from __future__ import annotations

from psycopg import sql
from sqlalchemy import Connection, text

from turngate.sinks.store.connecting import SCHEMA
from turngate.sinks.store.migrating import VERSION_TABLE
from turngate.sinks.store.tables import MEMORIES, TABLES
from turngate.streams.log import LogError

#: What the role can do to any table of the store, or could if it took on a role that it is a member of.
_WRITES = """
    SELECT bool_or(pg_has_role(r.oid, c.relowner, 'MEMBER') OR has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE')
                   OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE'))
    FROM pg_roles r, pg_class c
    WHERE r.rolname = :role AND c.relkind IN ('r', 'p') AND c.relnamespace = CAST(:of AS regnamespace)
"""
_READS_TEXTS = """
    SELECT bool_or(has_column_privilege(r.oid, a.attrelid, a.attnum, 'SELECT'))
    FROM pg_roles r, pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    WHERE r.rolname = :role AND a.attname = 'text' AND CAST(:of AS regclass) IN (c.oid, i.inhparent)
"""


def read_only(connection: Connection, role: str, *, texts: bool = False, schema: str = SCHEMA) -> None:
    """Make the role where there is none, unable to log in, and give it what it may have, and nothing else of the store.

    `texts`: it may read the memories' texts too. A partition by its own name is nothing that it may read. Raises
    `LogError` for a role that can do more all the same: a superuser, the owner, a member of a role that can, or what
    everybody was given. Then nothing is to be committed.
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
    _refuse_more(connection, role, schema, texts=texts)


def _refuse_more(connection: Connection, role: str, schema: str, *, texts: bool) -> None:
    asked = [("write to the store", _WRITES, sql.Identifier(schema))]
    if not texts:
        asked.append(("read memories' texts", _READS_TEXTS, sql.Identifier(schema, MEMORIES.name)))
    for what, question, of in asked:
        if connection.scalar(text(question), {"role": role, "of": of.as_string()}):
            raise LogError(
                f"{role} can {what} by other means: it is a superuser, the owner, a member of a role that can, or "
                "everybody can; name another role. Nothing was changed"
            )


def _run(connection: Connection, statement: sql.Composed) -> None:
    connection.exec_driver_sql(statement.as_string(), execution_options={"no_parameters": True})
