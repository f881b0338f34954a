"""`turngate token`: who may ask the gateway. A token is shown once and kept as a digest."""

from __future__ import annotations

import asyncio
import json
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Turngate
from turngate.gateway.token_file import TokenFile
from turngate.gateway.token_table import PostgresTokens
from turngate.gateway.tokens import Scope, TokensUnavailable, presented
from turngate.streams.kafka.settings import PostgresSettings

AGENT = ("--tenant", "acme", "--agent", "mesh", "--scope", "agent")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_made_listed_and_revoked(turngate: Turngate, file: Path) -> None:
    made = turngate("token", "create", *AGENT, "--tokens-file", file)
    token = made.stdout.strip()
    connector = ("--tenant", "acme", "--agent", "mesh", "--scope", "connector", "--namespace", "slack:T1")
    turngate("token", "create", *connector, "--days", 9, "--tokens-file", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = token.split("_", 2)[2]  # which may hold underscores itself
    assert secret not in file.read_text("utf-8") + made.stderr
    rows = [json.loads(line) for line in turngate("token", "list", "--json", "--tokens-file", file).stdout.splitlines()]
    assert [(r["scopes"], r["state"], r["namespaces"], r["expires"] is None) for r in rows] == [
        ("agent", "live", "", True),
        ("connector", "live", "slack:T1", False),
    ]
    tokens = TokenFile(file)
    found = presented(tokens, token, 0)
    assert found is not None
    assert (found.id, found.tenant, found.agent) == (rows[0]["id"], "acme", "mesh")
    assert turngate("token", "revoke", rows[0]["id"], "--tokens-file", file).exit_code == 0
    assert presented(tokens, token, 0) is None  # the same object: it is of no use at once
    assert "revoked" in turngate("token", "list", "--tokens-file", file).stdout
    assert turngate("token", "revoke", rows[0]["id"], "--tokens-file", file).exit_code == 1


def test_in_postgres_too(turngate: Turngate, postgres: str, unique: str) -> None:
    where = ("--postgres-dsn", postgres, "--postgres-sslmode", "disable")
    who = ("--tenant", unique, "--agent", "mesh")
    made = turngate("token", "create", *who, "--scope", "connector", "--namespace", "slack:T1", *where)
    settings = PostgresSettings.read(postgres, ssl_mode="disable")
    assert settings is not None
    tokens = PostgresTokens(settings)
    (row,) = (token for token in tokens.all() if token.tenant == unique)
    assert (row.agent, row.scopes, row.namespaces) == ("mesh", {Scope.CONNECTOR}, {"slack:T1"})

    async def followed() -> bool:
        """Whether the token is live, as a gateway has read the table."""
        following = asyncio.create_task(tokens.follow())
        with pytest.raises(TokensUnavailable):  # nothing was read yet
            presented(tokens, made.stdout.strip(), 0)
        while True:
            await asyncio.sleep(0.01)
            with suppress(TokensUnavailable):
                found = presented(tokens, made.stdout.strip(), 0)
                following.cancel()
                return found == row

    assert asyncio.run(followed())
    assert unique in turngate("token", "list", *where).stdout
    assert turngate("token", "revoke", row.id, *where).exit_code == 0
    assert turngate("token", "revoke", row.id, *where).exit_code == 1
    tokens = PostgresTokens(settings)
    assert not asyncio.run(followed())
    lost = turngate("token", "list", "--postgres-dsn", "postgresql://x:zebra@127.0.0.1:1/x")
    assert (lost.exit_code, "turngate: Postgres: " in lost.stderr, "zebra" in lost.stderr) == (2, True, False)


def test_a_token_ends_when_its_days_are_over(turngate: Turngate, file: Path) -> None:
    token = turngate("token", "create", *AGENT, "--days", 1, "--tokens-file", file).stdout.strip()
    (row,) = TokenFile(file).all()
    assert row.expires_at is not None
    assert presented(TokenFile(file), token, row.expires_at - 1) is not None
    assert presented(TokenFile(file), token, row.expires_at) is None


def test_another_secret_of_a_known_id_is_nobodys(turngate: Turngate, file: Path) -> None:
    first, second = (turngate("token", "create", *AGENT, "--tokens-file", file).stdout.strip() for _ in range(2))
    mixed = "_".join((*first.split("_", 2)[:2], second.split("_", 2)[2]))
    tokens = TokenFile(file)
    assert [presented(tokens, text, 0) is not None for text in (first, second, mixed)] == [True, True, False]
    assert all(presented(tokens, text, 0) is None for text in ("", "tg_", first[:-1], first + "A", "é" * 60))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tenant", "Acme", "--agent", "mesh", "--scope", "agent"), "--tenant: not of the form"),
        (("--tenant", "7", "--agent", "mesh", "--scope", "agent"), "--tenant: is a partition's number"),
        (("--tenant", "acme", "--scope", "agent"), "--agent: give it"),
        (("--tenant", "acme", "--agent", "mesh", "--scope", "operator"), "--agent: give it"),
        (("--tenant", "acme", "--agent", "mesh", "--scope", "root"), "--scope: one of"),
        (("--tenant", "acme", "--agent", "mesh", "--scope", "connector"), "--namespace: give it"),
        ((*AGENT, "--namespace", "slack:T1"), "--namespace: give it"),
    ],
)
def test_a_token_of_no_use_is_not_made(
    turngate: Turngate, file: Path, arguments: tuple[str, ...], message: str
) -> None:
    refused = turngate("token", "create", *arguments, "--tokens-file", file)
    assert (refused.exit_code, message in refused.stderr, file.exists()) == (2, True, False)


def test_a_file_that_is_no_use_is_named_and_not_quoted(turngate: Turngate, file: Path) -> None:
    assert "nobody may ask: give --tokens-file or --postgres-dsn" in turngate("token", "list").stderr
    file.write_text('{"tokens": [{"id": "zebra"}]}')
    file.chmod(0o600)
    refused = turngate("token", "list", "--tokens-file", file)
    assert (refused.exit_code, "zebra" in refused.stderr) == (2, False)
    assert f"{file}: tokens.0.created_at" in refused.stderr
    file.chmod(0o644)
    assert "chmod 600" in turngate("token", "list", "--tokens-file", file).stderr
