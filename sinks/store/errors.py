"""Decides what is said of a store that cannot be used."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from turngate.streams.log import LogError


class StoreUnavailable(LogError):
    """The store cannot be read or written now. The message says why and holds no password."""


def words(error: BaseException) -> str:
    """The first line, which names host and cause, and no password; of a value that is no use, no more than that."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith("22"):  # data exceptions, whose messages quote the value
        return f"a value was refused (SQLSTATE {state})"
    return (str(cause).splitlines() or [type(cause).__name__])[0]
