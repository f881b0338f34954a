"""A draft on a broker is decided, stored in Postgres by a process, and explained to somebody who may only read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.broker import Broker
from tests.cli.conftest import DRAFT, MESSAGE, POLICY, Turngate, listing, written
from tests.cli.processes import running
from tests.cli.test_on_kafka import worker
from tests.cli.test_operating import NOTE
from turngate.streams.clock import now_ms

pytestmark = pytest.mark.kafka


def test_from_a_draft_to_its_explanation(
    turngate: Turngate, own_broker: Broker, postgres: str, unique: str, tmp_path: Path
) -> None:
    at = ("--bootstrap-servers", own_broker.bootstrap)
    reader = f"{unique}_reader"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unique)))
    there = make_conninfo(postgres, dbname=unique)
    assert turngate("topics", "create", *at, "--partitions", 2).exit_code == 0
    filling_it = ("store", "fill", *at, "--postgres-dsn", there)
    with worker(own_broker.bootstrap), running(tmp_path, *filling_it) as filling:
        for number, line in enumerate((POLICY, listing(now_ms()), MESSAGE, NOTE, DRAFT)):
            assert turngate("send", written(tmp_path / str(number), line, at=now_ms()), *at).exit_code == 0

        def explained(by: str = there) -> dict[str, Any] | None:
            told = turngate("explain", "t1", "--tenant", "acme", "--json", "--postgres-dsn", by)
            found: dict[str, Any] = json.loads(told.stdout) if told.exit_code == 0 else {}
            return found if found.get("authorized") else None

        story = filling.wait(explained)
        filling.stop()
    assert [decided["verdict"] for decided in story["decisions"]] == ["deliver"]
    assert story["destination"]["audience"]["readers"] == ["slack:T1/UALEX"]
    assert [fed["permitted"] for fed in story["evidence"]] == [True]
    audited = turngate("audit", "verify", "--store", "--postgres-dsn", there)
    assert (audited.exit_code, audited.stdout) == (
        0,
        "1 traces of 1 tenants, which name 2 records; 0 chains broken\n",
    )
    assert "good morning" not in filling.said
    with psycopg.connect(there, autocommit=True) as admin:
        try:
            assert turngate("store", "read-only", reader, "--postgres-dsn", there).exit_code == 0
            admin.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(reader)))
            only = make_conninfo(there, user=reader)
            assert explained(only) == story
            seen = turngate("who-can-see", "revision:plan@1", "--tenant", "acme", "--postgres-dsn", only)
            assert "  may be heard by slack:T1/UALEX\n" in seen.stdout
        finally:
            admin.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(reader)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(reader)))
