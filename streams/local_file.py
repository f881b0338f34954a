"""Decides how an embedded log lies in a SQLite file, which files are refused, and who may write one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turngate.streams.log import LogError

#: "Turn" in ASCII, in the file's header (`PRAGMA application_id`): what makes a SQLite file a Turngate log.
APPLICATION = 0x5475726E
#: The version of the tables below (`PRAGMA user_version`). A file of a later layout is refused.
LAYOUT = 1


_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE lane (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL, UNIQUE (topic, partition));
CREATE TABLE record (id INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, key BLOB, value BLOB, headers TEXT);
CREATE TABLE state (partition INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (partition, key));
CREATE TABLE position (lane INTEGER PRIMARY KEY, position INTEGER NOT NULL);
CREATE TABLE engine (partition INTEGER PRIMARY KEY, version TEXT NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {LAYOUT};
COMMIT;
"""


@contextmanager
def clear_errors(path: Path | None) -> Iterator[None]:
    """Turn what SQLite says of a file into a `LogError` that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise LogError(f"{_name(path)}: the log cannot be used: {error}") from error


def open_writer(path: Path | None) -> tuple[sqlite3.Connection, sqlite3.Connection | None]:
    """A connection that may write, to a log that is made where there is none, and the lock that it holds.

    `None` is a log in memory, which needs no lock. Raises `LogError` for a file that is no Turngate log, one of a later
    layout, one that another process writes, and one that cannot be opened.
    """
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(_TABLES)
        return connection, None
    if not path.parent.is_dir():
        raise LogError(f"{path}: the folder {path.parent} does not exist; make it first")
    with clear_errors(path):
        _private(path)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            _is_log(connection, path)  # before the lock: a foreign file gets no lock beside it
            lock = _lock(path)
            try:
                # Every commit reaches the disk before it is acknowledged (WAL alone would leave that to chance).
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                if not _is_log(connection, path):
                    connection.executescript(_TABLES)
            except BaseException:
                lock.close()
                raise
        except BaseException:
            connection.close()
            raise
    return connection, lock


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads, while another process may be writing. Raises `LogError` as `open_writer` does."""
    if not path.exists():
        raise LogError(f"{path}: there is no log here; check the path")
    with clear_errors(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            if not _is_log(connection, path):
                raise LogError(_NOT_A_LOG.format(path=path))
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
                raise LogError(
                    f"{path}: a log that nobody is writing can be read only where its folder can be written to; "
                    "copy it to such a folder"
                ) from error
            raise
        except BaseException:
            connection.close()
            raise
    return connection


_NOT_A_LOG = "{path}: this file is no Turngate log; name another file, or one that does not exist yet"


def _is_log(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a log of this layout; False where nothing has been written to it yet."""
    try:
        application, layout, tables = connection.execute(
            "SELECT (SELECT * FROM pragma_application_id), (SELECT * FROM pragma_user_version),"
            " (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise LogError(_NOT_A_LOG.format(path=path)) from error
        raise
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if application == 0 and layout == 0 and tables == 0 and (pages > 0 or path.stat().st_size == 0):
        return False  # SQLite takes a file of a few bytes, whatever they are, for an empty one; it is not
    if application != APPLICATION:
        raise LogError(_NOT_A_LOG.format(path=path))
    if layout > LAYOUT:
        raise LogError(
            f"{path}: a newer Turngate wrote this log (layout {layout}, this version knows up to {LAYOUT}); "
            "upgrade Turngate to use it"
        )
    return True


def scrub(connection: sqlite3.Connection, path: Path | None) -> None:
    """Write the file anew, so that nothing is left in it of what was changed or removed, nor beside it.

    Needs as much free space again as the log has. Raises `LogError` where that is missing or somebody is reading.
    """
    with clear_errors(path):
        connection.execute("VACUUM")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise LogError(
            f"{path}: what was removed still lies in its -wal, as somebody is reading it; end that, and repeat"
        )


def _lock(path: Path) -> sqlite3.Connection:
    """Hold the log for as long as the connection lives, or its process: the system frees the lock of a killed one.

    It lies on a file beside the log, since a lock on the log itself would keep its readers out.
    """
    beside = path.with_name(path.name + ".lock")
    _private(beside)
    lock = sqlite3.connect(beside, isolation_level=None, timeout=0)
    try:
        lock.execute("PRAGMA journal_mode = MEMORY")  # nothing is ever written to it
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise LogError(
                f"{path}: another process is writing this log; stop that one first (reading is possible meanwhile)"
            ) from error
        raise
    return lock


def _private(path: Path) -> None:
    """Make the file, for its owner alone, where there is none: a log holds what was said in closed rooms.

    A file that is there already is left as it is, and unopened: closing it again would free SQLite's locks on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise LogError(f"{path}: the log cannot be made: {error.strerror}") from error


def _name(path: Path | None) -> str:
    return "in memory" if path is None else str(path)
