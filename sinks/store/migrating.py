"""Decides how a database gets the store's tables, and those of a later version (Alembic)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from turngate.sinks.store.errors import StoreUnavailable, words
from turngate.streams.log import LogError

#: Where Alembic notes which version of the tables there is.
VERSION_TABLE = "store_version"


def _scripts() -> tuple[Config, ScriptDirectory]:
    config = Config()
    config.set_main_option("script_location", "turngate.sinks.store:migrations")
    config.set_main_option("version_locations", "turngate.sinks.store:migrations")
    config.set_main_option("path_separator", "newline")
    return config, ScriptDirectory.from_config(config)


def migrate(connection: Connection) -> None:
    """Bring the tables up to this version, in the connection's transaction; harmless when repeated.

    Raises `LogError` where a newer Turngate has made them.
    """
    config, scripts = _scripts()

    def upgrade(found: str | tuple[str, ...], _: MigrationContext) -> list[RevisionStep]:
        return list(scripts._upgrade_revs("head", found))  # type: ignore[arg-type]

    try:
        with EnvironmentContext(config, scripts, fn=upgrade) as environment:
            environment.configure(connection=connection, version_table=VERSION_TABLE)
            environment.run_migrations()
    except CommandError:
        raise LogError("a newer Turngate has made the store's tables: upgrade this one") from None


def current(connection: Connection) -> bool:
    """Whether the tables are there and of this version. Raises `LogError` as `migrate`."""
    _, scripts = _scripts()
    found = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
        raise LogError("a newer Turngate has made the store's tables: upgrade this one")
    return found == scripts.get_current_head()


@contextmanager
def opened(engine: Engine) -> Iterator[Connection]:
    """A connection to a store that is there. Raises `LogError` where it is not, or not of this version."""
    try:
        with engine.connect() as connection:
            if not current(connection):
                raise LogError("there is no store of this version: `turngate store fill` makes and fills it")
            yield connection
    except SQLAlchemyError as error:
        raise StoreUnavailable(f"the store cannot be read: {words(error)}") from None
