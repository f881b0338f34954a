"""A draft on a broker is decided, stored in Postgres by a process, and explained to somebody who may only read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.broker import Broker
from tests.cli.conftest import DRAFT, INSTALLED, MESSAGE, POLICY, Turngate, listing, written
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
    command = [INSTALLED, "store", "fill", *at, "--postgres-dsn", there]
    said = tmp_path / "said"
    with worker(own_broker.bootstrap), said.open("wb") as out:
        filling = subprocess.Popen(command, stderr=out, env=os.environ)
        try:
            for number, line in enumerate((POLICY, listing(now_ms()), MESSAGE, NOTE, DRAFT)):
                lines = written(tmp_path / str(number), line, at=now_ms())
                assert turngate("send", lines, *at).exit_code == 0
            explained = ("explain", "t1", "--tenant", "acme", "--json", "--postgres-dsn")
            deadline = time.monotonic() + 60
            while (told := turngate(*explained, there)).exit_code != 0 or not json.loads(told.stdout)["authorized"]:
                assert time.monotonic() < deadline, said.read_text()
                assert filling.poll() is None, said.read_text()
            filling.send_signal(signal.SIGTERM)
            assert filling.wait(30) == 0
        finally:
            filling.kill()
    story = json.loads(told.stdout)
    assert [decided["verdict"] for decided in story["decisions"]] == ["deliver"]
    assert story["destination"]["audience"]["readers"] == ["slack:T1/UALEX"]
    assert [fed["permitted"] for fed in story["evidence"]] == [True]
    audited = turngate("audit", "verify", "--store", "--postgres-dsn", there)
    assert (audited.exit_code, audited.stdout) == (
        0,
        "1 traces of 1 tenants, which name 2 records; 0 chains broken\n",
    )
    assert "good morning" not in said.read_text()
    with psycopg.connect(there, autocommit=True) as admin:
        try:
            assert turngate("store", "read-only", reader, "--postgres-dsn", there).exit_code == 0
            admin.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(reader)))
            only = make_conninfo(there, user=reader)
            assert json.loads(turngate(*explained, only).stdout) == story
            seen = turngate("who-can-see", "revision:plan@1", "--tenant", "acme", "--postgres-dsn", only)
            assert "  may be heard by slack:T1/UALEX\n" in seen.stdout
        finally:
            admin.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(reader)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(reader)))
