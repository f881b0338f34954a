"""Decides how tokens lie in a file: a JSON document of mode 600 with digests, no secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turngate.gateway.tokens import Scope, Token, TokensUnavailable
from turngate.schemas.shapes import Id, Millis, Namespace, Tenant
from turngate.streams.kafka.environment import SettingsError
from turngate.streams.private import private_text, write_private

_WHAT = "tokens file"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    tenant: Tenant
    agent: Id | None = None
    scopes: frozenset[Scope] = Field(min_length=1)
    namespaces: frozenset[Namespace] = frozenset()
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]
    created_at: Millis
    expires_at: Millis | None = None
    revoked_at: Millis | None = None


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: tuple[_Row, ...] = ()


class TokenFile:
    """The tokens of a file, as it is when each is asked for: one that is revoked is of no use at once.

    Raises `SettingsError` for a file that is missing, that others may read, or that holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def all(self) -> list[Token]:
        """Every token, the oldest first."""
        return read_tokens(self._path)

    def add(self, token: Token) -> None:
        """Keep a token; the file is made where there is none."""
        write_tokens(self._path, [*(self.all() if self._path.exists() else ()), token])

    def revoke(self, token_id: str, at: int) -> bool:
        """Revoke a token; whether there was one that was live."""
        tokens = self.all()
        found = any(token.id == token_id and token.live(at) for token in tokens)
        if found:
            write_tokens(self._path, [replace(t, revoked_at=at) if t.id == token_id else t for t in tokens])
        return found

    def get(self, token_id: str) -> Token | None:
        """See `Tokens`."""
        try:
            self._follow()
        except SettingsError:
            raise TokensUnavailable from None
        return self._tokens.get(token_id)

    def _follow(self) -> None:
        """Read the file again where it was written since; it is always written as another one."""
        try:
            at = self._path.stat()
        except OSError as error:
            raise SettingsError(f"{_WHAT} {self._path}: {error.strerror}") from None
        if self._read_at != (at.st_mtime_ns, at.st_ino):
            self._tokens = {token.id: token for token in read_tokens(self._path)}
            self._read_at = at.st_mtime_ns, at.st_ino


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file. Raises `SettingsError`, which quotes nothing that the file holds."""
    text = private_text(_WHAT, path, group=True)
    try:
        rows = _Document.model_validate_json(text).tokens
    except ValidationError as error:
        places = {".".join(str(part) for part in e["loc"]) or "document" for e in error.errors(include_input=False)}
        raise SettingsError(f"{_WHAT} {path}: {', '.join(sorted(places))}: not as `turngate token` writes it") from None
    return [
        Token(
            row.id,
            row.tenant,
            row.agent,
            row.scopes,
            row.namespaces,
            bytes.fromhex(row.sha256),
            row.created_at,
            row.expires_at,
            row.revoked_at,
        )
        for row in rows
    ]


def write_tokens(path: Path, tokens: Iterable[Token]) -> None:
    """Write all of them, or leave the file as it was. Raises `SettingsError` where it cannot be written."""
    rows = tuple(
        _Row(
            id=token.id,
            tenant=token.tenant,
            agent=token.agent,
            scopes=token.scopes,
            namespaces=token.namespaces,
            sha256=token.digest.hex(),
            created_at=token.created_at,
            expires_at=token.expires_at,
            revoked_at=token.revoked_at,
        )
        for token in tokens
    )
    write_private(_WHAT, path, _Document(tokens=rows).model_dump_json(indent=2) + os.linesep)
