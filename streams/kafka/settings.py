"""Decides how Turngate reaches a broker, a schema registry and Postgres, and what of that may be said aloud.

Every value comes from the caller (a flag of a command) or else from the environment. No secret is in a `repr`, a
message or a URL.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from turngate.streams.kafka.environment import NO_TLS, Environment, SettingsError, TlsFiles, readable


class Security(StrEnum):
    """Kafka's security protocols."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypted(self) -> bool:
        """Whether the connection is TLS."""
        return self in (Security.SSL, Security.SASL_SSL)

    @property
    def authenticated(self) -> bool:
        """Whether the client names a user and proves it by SASL."""
        return self in (Security.SASL_PLAINTEXT, Security.SASL_SSL)


class Mechanism(StrEnum):
    """SASL mechanisms by user and password."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class SslMode(StrEnum):
    """Postgres' `sslmode`: the modes that say what they do. (`allow` and `prefer` may end up without TLS silently.)"""

    DISABLE = "disable"
    REQUIRE = "require"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A Kafka cluster. A `security` that is not given follows from the rest, and sends no password unencrypted."""

    bootstrap_servers: str
    security: Security = Security.PLAINTEXT
    tls: TlsFiles = NO_TLS
    sasl_mechanism: Mechanism | None = None
    sasl_user: str | None = None
    sasl_password: str | None = field(default=None, repr=False)

    @classmethod
    def read(
        cls,
        bootstrap_servers: str | None = None,
        *,
        security: str | None = None,
        ca_file: str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        client_key_password: str | None = None,
        sasl_mechanism: str | None = None,
        sasl_user: str | None = None,
        sasl_password: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> Self:
        """From these values, else `TURNGATE_BOOTSTRAP_SERVERS`, `TURNGATE_SECURITY_PROTOCOL`, and so on by name.

        Raises `SettingsError` where they are not enough or contradict one another.
        """
        env = Environment("TURNGATE", environment)
        servers = env.text("BOOTSTRAP_SERVERS", bootstrap_servers)
        if servers is None:
            raise SettingsError("no broker: give --bootstrap-servers or TURNGATE_BOOTSTRAP_SERVERS (host:port,…)")
        tls = env.tls(ca_file, client_cert, client_key, client_key_password)
        user, password = env.text("SASL_USER", sasl_user), env.text("SASL_PASSWORD", sasl_password)
        mechanism = env.one_of(Mechanism, "SASL_MECHANISM", sasl_mechanism)
        protocol = env.one_of(Security, "SECURITY_PROTOCOL", security)
        if protocol is None and (user is not None or mechanism is not None):
            protocol = Security.SASL_SSL
        elif protocol is None:
            protocol = Security.SSL if tls.given else Security.PLAINTEXT
        if protocol.authenticated and mechanism is None:
            mechanism = Mechanism.SCRAM_SHA_512
        made = cls(servers, protocol, tls, mechanism, user, password)
        made.check()
        return made

    def check(self) -> None:
        """Raises `SettingsError` where the settings contradict one another or name a file that is not there."""
        for server in self.bootstrap_servers.split(","):
            host, colon, port = server.strip().rpartition(":")
            if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
                raise SettingsError("TURNGATE_BOOTSTRAP_SERVERS: must be host:port, or several with commas between")
        if self.security.authenticated and (self.sasl_user is None or self.sasl_password is None):
            raise SettingsError(f"{self.security} needs TURNGATE_SASL_USER and TURNGATE_SASL_PASSWORD")
        if not self.security.authenticated and (self.sasl_user is not None or self.sasl_mechanism is not None):
            raise SettingsError(f"TURNGATE_SASL_USER is set, but TURNGATE_SECURITY_PROTOCOL is {self.security}")
        if not self.security.encrypted and self.tls.given:
            raise SettingsError(f"TLS files are set, but TURNGATE_SECURITY_PROTOCOL is {self.security}")
        self.tls.check("TURNGATE")

    @property
    def servers(self) -> list[str]:
        """The bootstrap servers, one by one."""
        return [server.strip() for server in self.bootstrap_servers.split(",")]

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context, or None for an unencrypted connection. Raises `SettingsError` for unusable files."""
        return self.tls.context("TURNGATE") if self.security.encrypted else None

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments for every client of aiokafka: consumer, producer and admin client."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "security_protocol": self.security.value,
            "ssl_context": self.ssl_context(),
        }
        if self.security.authenticated:
            options |= {
                "sasl_mechanism": None if self.sasl_mechanism is None else self.sasl_mechanism.value,
                "sasl_plain_username": self.sasl_user,
                "sasl_plain_password": self.sasl_password,
            }
        return options

    def faust_credentials(self) -> Any:
        """What `faust.App(broker_credentials=…)` takes: None for an open and unencrypted broker."""
        from faust.auth import SASLCredentials, SSLCredentials  # noqa: PLC0415  settings are read without Faust too

        if self.security.authenticated:
            return SASLCredentials(
                username=self.sasl_user,
                password=self.sasl_password,
                mechanism=None if self.sasl_mechanism is None else self.sasl_mechanism.value,
                ssl_context=self.ssl_context(),
            )
        return SSLCredentials(self.ssl_context()) if self.security.encrypted else None


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """A Confluent-compatible schema registry: its base URL, and how it is trusted and how it trusts us."""

    url: str
    tls: TlsFiles = NO_TLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def read(
        cls,
        url: str | None = None,
        *,
        ca_file: str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        client_key_password: str | None = None,
        user: str | None = None,
        password: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> Self | None:
        """From these values, else `TURNGATE_REGISTRY_URL`, `TURNGATE_REGISTRY_CA_FILE` and so on.

        None where no URL is given: records are then written in Avro's single-object encoding (contract section 7).
        Raises `SettingsError` where the values are not enough or contradict one another.
        """
        env = Environment("TURNGATE_REGISTRY", environment)
        address = env.text("URL", url)
        tls = env.tls(ca_file, client_cert, client_key, client_key_password)
        names = env.text("USER", user), env.text("PASSWORD", password)
        if address is None:
            if tls.given or names != (None, None):
                raise SettingsError("settings of a schema registry without TURNGATE_REGISTRY_URL")
            return None
        made = cls(address.rstrip("/"), tls, *names)
        made.check()
        return made

    def check(self) -> None:
        """Raises `SettingsError` where the settings contradict one another or name a file that is not there."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("TURNGATE_REGISTRY_URL: must be an http:// or https:// URL")
        if parts.username is not None or parts.password is not None:
            raise SettingsError(
                "TURNGATE_REGISTRY_URL: must not carry a password; set TURNGATE_REGISTRY_USER and _PASSWORD"
            )
        if (self.user is None) != (self.password is None):
            raise SettingsError("TURNGATE_REGISTRY_USER and TURNGATE_REGISTRY_PASSWORD must be set together")
        if parts.scheme == "http" and self.tls.given:
            raise SettingsError("TLS files are set for the schema registry, but its URL is http://")
        if parts.scheme == "http" and self.user is not None and not loopback(parts.hostname):
            raise SettingsError("TURNGATE_REGISTRY_PASSWORD would be sent unencrypted: use an https:// URL")
        self.tls.check("TURNGATE_REGISTRY")

    def client_config(self) -> dict[str, Any]:
        """Configuration for `confluent_kafka.schema_registry.SchemaRegistryClient`. Raises `SettingsError`."""
        config: dict[str, Any] = {"url": self.url}
        if self.url.startswith("https:"):
            self.tls.context("TURNGATE_REGISTRY")  # whatever is wrong with a file is said here, by name
            files = {
                "ssl.ca.location": self.tls.ca,
                "ssl.certificate.location": self.tls.certificate,
                "ssl.key.location": self.tls.key,
                "ssl.key.password": self.tls.key_password,
            }
            config |= {k: str(v) for k, v in files.items() if v is not None}
        if self.user is not None:
            config["basic.auth.user.info"] = f"{self.user}:{self.password}"
        return config


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """A Postgres database. The DSN may carry a password, so it is not shown."""

    dsn: str = field(repr=False)
    ssl_mode: SslMode | None = None
    ca_file: Path | None = None

    @classmethod
    def read(
        cls,
        dsn: str | None = None,
        *,
        ssl_mode: str | None = None,
        ca_file: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> Self | None:
        """From these values, else `TURNGATE_POSTGRES_DSN`, `_SSLMODE` and `_CA_FILE`; None where there is no DSN.

        With a CA file and no mode the mode is `verify-full`. Raises `SettingsError` where they contradict.
        """
        env = Environment("TURNGATE_POSTGRES", environment)
        address, mode = env.text("DSN", dsn), env.one_of(SslMode, "SSLMODE", ssl_mode)
        authority = env.path("CA_FILE", ca_file)
        if address is None:
            if mode is not None or authority is not None:
                raise SettingsError("settings of Postgres without TURNGATE_POSTGRES_DSN")
            return None
        if authority is not None and mode is None:
            mode = SslMode.VERIFY_FULL
        if authority is not None and mode in (SslMode.DISABLE, SslMode.REQUIRE):
            raise SettingsError(f"TURNGATE_POSTGRES_CA_FILE is set, but TURNGATE_POSTGRES_SSLMODE={mode} ignores it")
        if authority is None and mode in (SslMode.VERIFY_CA, SslMode.VERIFY_FULL) and "sslrootcert" not in address:
            raise SettingsError(f"TURNGATE_POSTGRES_SSLMODE={mode} needs TURNGATE_POSTGRES_CA_FILE")
        readable("TURNGATE_POSTGRES_CA_FILE", authority)
        return cls(address, mode, authority)

    def conninfo(self) -> str:
        """What `psycopg.connect` takes; holds the password. Raises `SettingsError` for a DSN that is none."""
        from psycopg import ProgrammingError  # noqa: PLC0415  settings are read without the extra `postgres` too
        from psycopg.conninfo import make_conninfo  # noqa: PLC0415

        extra = {"sslmode": self.ssl_mode, "sslrootcert": self.ca_file}
        try:
            return make_conninfo(self.dsn, **{k: str(v) for k, v in extra.items() if v is not None})
        except ProgrammingError:  # its message quotes the DSN
            raise SettingsError(
                "TURNGATE_POSTGRES_DSN: must be postgresql://user@host/database or key=value pairs"
            ) from None


def loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    return host in ("localhost", "::1") or host.startswith("127.")
