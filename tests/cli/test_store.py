"""`turngate store` on an embedded log and in Postgres."""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.cli.conftest import Turngate, listing, written
from tests.cli.test_operating import MESSAGE, NOTE, POLICY, WHO
from turngate.streams.clock import now_ms


@pytest.fixture
def log(turngate: Turngate, tmp_path: Path) -> Path:
    """A log with a message and a memory made of it, of now."""
    lines = written(tmp_path / "lines", POLICY, listing(now_ms()), MESSAGE, NOTE, at=now_ms())
    assert turngate("send", lines, "--log", tmp_path / "kept.log").exit_code == 0
    return tmp_path / "kept.log"


@pytest.fixture
def database(postgres: str, unique: str) -> Iterator[str]:
    """A database of this test's own."""
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unique)))
        yield make_conninfo(postgres, dbname=unique)
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(unique)))


def test_a_log_is_stored_beside_itself_once_and_for_its_owner_alone(turngate: Turngate, log: Path) -> None:
    first, again = (turngate("store", "fill", "--log", log) for _ in range(2))
    assert (first.exit_code, first.stdout) == (0, "6 records stored\n")
    assert (again.exit_code, again.stdout) == (0, "0 records stored\n")
    store = log.with_name("kept.log.store")
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT text, gone FROM memories").fetchall() == [("the plan", None)]


def test_an_erasure_reaches_the_store_and_leaves_nothing_in_its_file(turngate: Turngate, log: Path) -> None:  # R-RET-3
    assert turngate("store", "fill", "--log", log).exit_code == 0
    files = list(log.parent.glob("kept.log*"))
    assert any(b"the plan" in file.read_bytes() for file in files if ".store" in file.name)
    assert turngate("forget", "--reader", "slack:T1/UALEX", *WHO, "--log", log).exit_code == 0
    assert not any(b"the plan" in file.read_bytes() for file in log.parent.glob("kept.log*"))
    with sqlite3.connect(log.with_name("kept.log.store")) as db:
        assert db.execute("SELECT text, gone FROM memories").fetchall() == [(None, "erased")]


def test_a_file_that_is_no_store_is_left_as_it_is(turngate: Turngate, log: Path) -> None:
    store = log.with_name("kept.log.store")
    store.write_text("somebody's notes")
    result = turngate("store", "fill", "--log", log)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"turngate: {store}: the store cannot be used: file is not a database")
    assert store.read_text() == "somebody's notes"


def test_tables_are_made_and_a_role_may_read_them(turngate: Turngate, database: str, unique: str) -> None:
    at = ("--postgres-dsn", database)
    role = f"{unique}_auditors"
    none = turngate("store", "read-only", role, *at)
    assert none.exit_code == 2
    assert "there is no store of this version: `turngate store fill` makes and fills it" in none.stderr
    assert turngate("store", "migrate", *at).stdout == "the store's tables are of this version\n"
    assert turngate("store", "migrate", *at).exit_code == 0
    given = turngate("store", "read-only", role, *at)
    assert (given.exit_code, given.stdout) == (0, f"{role} may read the store, but no text of a memory\n")
    with psycopg.connect(database, autocommit=True) as session:
        try:
            session.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
            assert session.execute("SELECT count(*) FROM turngate.decisions").fetchone() == (0,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute("SELECT text FROM turngate.memories")
        finally:
            session.execute("RESET ROLE")
            session.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            session.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_the_queries_of_the_documentation_run(turngate: Turngate, database: str) -> None:
    assert turngate("store", "migrate", "--postgres-dsn", database).exit_code == 0
    page = (Path(__file__).parents[2] / "docs" / "store.md").read_text("utf-8")
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(queries) >= 3
    with psycopg.connect(database) as session:
        for query in queries:
            assert session.execute(query).fetchall() == []


def test_what_cannot_be_done_is_one_line_without_the_password(turngate: Turngate) -> None:
    nowhere = "postgresql://u:geheim@127.0.0.1:1/x"
    for result in (
        turngate("store", "fill", "--postgres-dsn", nowhere, "--bootstrap-servers", "127.0.0.1:1"),
        turngate("store", "migrate", "--postgres-dsn", nowhere),
        turngate("store", "read-only", "r", "--postgres-dsn", nowhere),
    ):
        assert result.exit_code == 2
        assert "127.0.0.1" in result.stderr
        assert "geheim" not in result.stderr
    assert "no database: give --postgres-dsn" in turngate("store", "migrate").stderr
