"""Decides how tokens lie in Postgres, for gateways on several machines: one table with digests, no secrets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import kwargs_row

from turngate.gateway.tokens import Scope, Token, TokensUnavailable
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.log import LogError

#: Seconds between two looks at the table: a token that is revoked is of use for no longer.
EVERY = 1.0
#: Seconds after which nobody has a token any more where the table cannot be read: one may have been revoked.
STALE = 10.0
#: Seconds in which the database must have answered.
_PATIENCE = 5
#: Whoever makes the table first holds this lock; of two at once, one would fail.
_LOCK = 0x5475726F
_TABLE = """\
CREATE TABLE IF NOT EXISTS turngate_token (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, agent TEXT, scopes TEXT[] NOT NULL, namespaces TEXT[] NOT NULL,
    digest BYTEA NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, revoked_at BIGINT
)"""
_READ = """\
SELECT id, tenant, agent, scopes, namespaces, digest, created_at, expires_at, revoked_at
FROM turngate_token ORDER BY created_at, id"""
_ADD = "INSERT INTO turngate_token VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
_REVOKE = """\
UPDATE turngate_token SET revoked_at = %(at)s
WHERE id = %(id)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(at)s)"""

log = logging.getLogger(__name__)


class PostgresTokens:
    """The tokens of a table, which is made where it is missing. Raises `LogError` where the database is no use."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._tokens: dict[str, Token] = {}
        self._read_at: float | None = None

    def all(self) -> list[Token]:
        """Every token, the oldest first."""
        with self._connected() as connection, connection.cursor(row_factory=kwargs_row(_token)) as cursor:
            return cursor.execute(_READ).fetchall()

    def add(self, token: Token) -> None:
        """Keep a token."""
        row = (
            token.id,
            token.tenant,
            token.agent,
            sorted(token.scopes),
            sorted(token.namespaces),
            token.digest,
            token.created_at,
            token.expires_at,
            token.revoked_at,
        )
        with self._connected() as connection:
            connection.execute(_ADD, row)

    def revoke(self, token_id: str, at: int) -> bool:
        """Revoke a token; whether there was one that was live."""
        with self._connected() as connection:
            return connection.execute(_REVOKE, {"id": token_id, "at": at}).rowcount == 1

    def get(self, token_id: str) -> Token | None:
        """See `Tokens`; as it was a second ago at most."""
        if self._read_at is None or time.monotonic() > self._read_at + STALE:
            raise TokensUnavailable
        return self._tokens.get(token_id)

    async def follow(self) -> None:
        """Look at the table again and again, until cancelled. What was read last counts for `STALE` seconds."""
        while True:
            began = time.monotonic()
            try:
                self._tokens = {token.id: token for token in await asyncio.to_thread(self.all)}
                self._read_at = began
            except LogError as error:
                log.error("tokens cannot be read: %s", error)
            await asyncio.sleep(EVERY)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """One transaction."""
        try:
            with psycopg.connect(self._settings.conninfo(), connect_timeout=_PATIENCE) as connection:
                connection.execute(f"SET LOCAL statement_timeout = {_PATIENCE * 1000}")
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                connection.execute(_TABLE)
                yield connection
        except psycopg.Error as error:
            # the first line names host and cause, and no password
            raise LogError(f"Postgres: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None


def _token(scopes: list[str], namespaces: list[str], digest: bytes, **more: Any) -> Token:
    return Token(scopes=frozenset(map(Scope, scopes)), namespaces=frozenset(namespaces), digest=bytes(digest), **more)
