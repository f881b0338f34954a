"""Decides who asks: a bearer token names a tenant, an agent, and what may be asked (R-EVI-10).

A token is `tg_ID_SECRET`. The id may be known; of the secret only a SHA-256 digest is kept, which is enough for 32
random bytes. Nothing here is in a `repr`, a log or an error but ids.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

_FORM = re.compile(r"tg_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_SECRET_BYTES = 32
#: Compared with where no token has the id, so that this takes as long.
_NOBODYS = hashlib.sha256(b"").digest()


class Scope(StrEnum):
    """What a token may be used for; one may have several."""

    #: Asks for context, drafts, reports tool results, writes memories: as one agent.
    AGENT = "agent"
    #: Brings in what happened in rooms of its namespaces, and who is in them.
    CONNECTOR = "connector"
    #: Sends what one agent was authorized to say, or carries out its actions, and says what became of that.
    EXECUTOR = "executor"
    #: Gives an operator's commands for the whole tenant.
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. `agent` is None for one that is an operator's alone; times in ms since the epoch."""

    id: str
    tenant: str
    agent: str | None
    scopes: frozenset[Scope]
    namespaces: frozenset[str]
    digest: bytes = field(repr=False)
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def live(self, now: int) -> bool:
        """Whether it may still be used."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def has(self, room: str) -> bool:
        """Whether a room, or a reader, lies in one of its namespaces."""
        return room.partition("/")[0] in self.namespaces


class TokensUnavailable(Exception):
    """It cannot be said now who has a token: nobody is let in."""


class Tokens(Protocol):
    """Where tokens lie."""

    def get(self, token_id: str) -> Token | None:
        """The token of this id; answered from memory. Raises `TokensUnavailable`."""


class TokenKeeper(Tokens, Protocol):
    """Where tokens are made and revoked too. These raise `turngate.streams.log.LogError` where that cannot be."""

    def all(self) -> list[Token]:
        """Every token, the oldest first."""

    def add(self, token: Token) -> None:
        """Keep a token."""

    def revoke(self, token_id: str, at: int) -> bool:
        """Revoke a token; whether there was one that was live."""


def fresh() -> tuple[str, str, bytes]:
    """A new token's id, the token itself, which is shown once, and the digest that is kept."""
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(_SECRET_BYTES)
    return token_id, f"tg_{token_id}_{secret}", _digest(secret)


def presented(tokens: Tokens, text: str, now: int) -> Token | None:
    """The live token that this text is, or None. Digests are compared in constant time. Raises `TokensUnavailable`."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    token = tokens.get(match[1])
    same = hmac.compare_digest(_digest(match[2]), _NOBODYS if token is None else token.digest)
    return token if token is not None and same and token.live(now) else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
