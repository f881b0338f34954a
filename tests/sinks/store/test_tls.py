"""The store is reached over TLS where that is asked for, and only where the database is the one that it says it is."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import trustme
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import text

from tests.postgres_tls import fronted
from turngate.schemas.codec import Codec
from turngate.sinks.store.connecting import postgres_engine
from turngate.sinks.store.errors import StoreUnavailable
from turngate.sinks.store.migrating import opened
from turngate.sinks.store.postgres import PostgresStore
from turngate.streams.kafka.settings import PostgresSettings

PASSWORD = "by-secret"


@dataclass
class Databases:
    """One database behind three fronts, by what each shows; files with the authority of all, and with another one."""

    dsn: dict[str, str]
    ca: str
    other: str

    def settings(self, shows: str, mode: str | None, authority: str | None) -> PostgresSettings:
        files = {None: None, "ca": self.ca, "other": self.other}
        made = PostgresSettings.read(self.dsn[shows], ssl_mode=mode, ca_file=files[authority], environment={})
        assert made is not None
        return made


@pytest.fixture(scope="module")
def databases(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    folder: Path = tmp_path_factory.mktemp("tls")
    authority, stranger = trustme.CA(), trustme.CA()
    for name, ca in (("ca", authority), ("other", stranger)):
        ca.cert_pem.write_to_path(str(folder / name))
    with ExitStack() as stack:
        dsn = {}
        for shows, name in (("its name", "127.0.0.1"), ("another name", "db.example"), ("nothing", None)):
            context = None if name is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            if context is not None:
                authority.issue_cert(str(name)).configure_cert(context)
            at = {"host": "127.0.0.1", "port": stack.enter_context(fronted(postgres, context)), "password": PASSWORD}
            dsn[shows] = make_conninfo(**{**conninfo_to_dict(postgres), **at})
        yield Databases(dsn, str(folder / "ca"), str(folder / "other"))


@pytest.mark.parametrize(
    ("shows", "mode", "authority"),
    [
        ("its name", None, "ca"),  # with an authority the name is looked at, unless the mode says otherwise
        ("its name", "verify-full", "ca"),
        ("another name", "verify-ca", "ca"),
        ("another name", "require", None),
    ],
)
async def test_it_is_filled_and_asked_over_tls(
    databases: Databases, unique: str, shows: str, mode: str | None, authority: str | None
) -> None:
    settings = databases.settings(shows, mode, authority)
    async with PostgresStore(settings, Codec(), unique) as store:
        assert await store.begin({("audit", 0): 3}) == {("audit", 0): 3}
    with opened(postgres_engine(settings, unique)) as asking:
        assert asking.scalar(text("SELECT next FROM positions")) == 3
        driver = asking.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        assert driver.pgconn.ssl_in_use


@pytest.mark.parametrize(
    ("shows", "mode", "authority", "says"),
    [
        ("its name", None, "other", "certificate verify failed"),
        ("its name", "verify-ca", "other", "certificate verify failed"),
        ("another name", None, "ca", 'server certificate for "db.example" does not match host name "127.0.0.1"'),
        ("nothing", None, "ca", "server does not support SSL, but SSL was required"),
        ("nothing", "require", None, "server does not support SSL, but SSL was required"),
    ],
)
async def test_a_database_that_is_not_shown_to_be_the_one_is_refused_in_one_sentence(
    databases: Databases, unique: str, shows: str, mode: str | None, authority: str | None, says: str
) -> None:
    settings = databases.settings(shows, mode, authority)
    with pytest.raises(StoreUnavailable, match=says) as filling:
        async with PostgresStore(settings, Codec(), unique):
            pass
    with pytest.raises(StoreUnavailable, match=says) as asking, opened(postgres_engine(settings, unique)):
        pass
    for refused in (filling, asking):
        assert PASSWORD not in str(refused.value)
        assert "\n" not in str(refused.value)
