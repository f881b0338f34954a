"""Decides which options the commands share, so that a log and a broker are named alike everywhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from turngate.cli.errors import Impossible, extra

if TYPE_CHECKING:
    from turngate.processors.keys import Keys
    from turngate.schemas.codec import Codec
    from turngate.streams.kafka.settings import KafkaSettings, PostgresSettings, RegistrySettings

_BROKER, _REGISTRY, _POSTGRES = "Broker", "Schema registry", "Postgres"


def _variable(flag: str) -> str:
    return "TURNGATE_" + flag.removeprefix("--").replace("-", "_").upper()


def _option(flag: str, panel: str, text: str, metavar: str) -> Any:
    return Annotated[
        str | None, typer.Option(flag, metavar=metavar, help=f"{text} [{_variable(flag)}]", rich_help_panel=panel)
    ]


_FILE = "FILE.pem"
_BROKER_OPTIONS = {
    "bootstrap_servers": _option("--bootstrap-servers", _BROKER, "Where a broker answers.", "HOST:PORT,…"),
    "security": _option(
        "--security-protocol", _BROKER, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; else as the rest suggests.", "NAME"
    ),
    "ca_file": _option("--ca-file", _BROKER, "The authority that signed the broker's certificate.", _FILE),
    "client_cert": _option("--client-cert", _BROKER, "This client's certificate.", _FILE),
    "client_key": _option(
        "--client-key", _BROKER, "Its key; a password only from TURNGATE_CLIENT_KEY_PASSWORD.", _FILE
    ),
    "sasl_mechanism": _option(
        "--sasl-mechanism", _BROKER, "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (the default).", "NAME"
    ),
    "sasl_user": _option("--sasl-user", _BROKER, "SASL user; its password only from TURNGATE_SASL_PASSWORD.", "NAME"),
}
_REGISTRY_OPTIONS = {
    "registry_url": _option(
        "--registry-url", _REGISTRY, "A Confluent-compatible registry; without one records carry their schema.", "URL"
    ),
    "registry_ca_file": _option("--registry-ca-file", _REGISTRY, "The authority of its certificate.", _FILE),
    "registry_client_cert": _option("--registry-client-cert", _REGISTRY, "This client's certificate.", _FILE),
    "registry_client_key": _option("--registry-client-key", _REGISTRY, "Its key.", _FILE),
    "registry_user": _option("--registry-user", _REGISTRY, "User; password from TURNGATE_REGISTRY_PASSWORD.", "NAME"),
}
_POSTGRES_OPTIONS = {
    "postgres_dsn": _option("--postgres-dsn", _POSTGRES, "The audit database.", "DSN"),
    "postgres_sslmode": _option("--postgres-sslmode", _POSTGRES, "require, verify-ca, verify-full, …", "MODE"),
    "postgres_ca_file": _option("--postgres-ca-file", _POSTGRES, "The authority of its certificate.", _FILE),
}
_LOG_OPTION = {
    "log": Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="An embedded log instead of a broker.", rich_help_panel="Log"),
    ]
}
#: Of `apply` too, which connects to nothing.
KeysFile = Annotated[
    Path | None,
    typer.Option(
        "--keys-file", metavar="FILE", help="The keys of share codes (`turngate keys new`). [TURNGATE_KEYS_FILE]"
    ),
]
#: Of the commands that feed an embedded log.
Assess = Annotated[
    bool, typer.Option("--assess", help="Label memory writes by the built-in rules, as `turngate assess` does.")
]


#: Of `turngate mcp`, where it stands before the tools of one turn.
_OF_A_TURN = ("--room", "--turn", "--thread", "--trigger", "--request", "--exposed")
#: Settings that are no options, since a command line can be seen by everyone on the machine.
_SECRETS = (
    "KEYS",
    "ASSESSOR_TOKEN",
    "SLACK",
    "TOKEN",
    "CLIENT_KEY_PASSWORD",
    "SASL_PASSWORD",
    "REGISTRY_PASSWORD",
    "REGISTRY_CLIENT_KEY_PASSWORD",
)


def variables() -> frozenset[str]:
    """Every environment variable that is a setting."""
    options = (_BROKER_OPTIONS | _REGISTRY_OPTIONS | _POSTGRES_OPTIONS).values()
    flags = [get_args(option)[1].default for option in options]
    others = (
        "--keys-file",
        "--operator",
        "--assessor-endpoint",
        "--assessor-ca-file",
        "--slack-file",
        "--slack-api",
        "--tokens-file",
        "--url",
        *_OF_A_TURN,
    )
    named = [_variable(flag) for flag in (*flags, *others)]
    return frozenset([*named, *(f"TURNGATE_{name}" for name in _SECRETS)])


@dataclass(frozen=True, slots=True)
class Connection:
    """What the shared options of a command said; nothing has been opened or checked yet."""

    values: dict[str, Any]

    def log_file(self) -> Path | None:
        """The embedded log that was asked for, None where it is a broker. Raises `Impossible` where it is neither."""
        log: Path | None = self.values.get("log")
        if log is None:
            return None
        if self.values.get("bootstrap_servers") is not None:
            raise Impossible("--log names an embedded log and --bootstrap-servers a broker: give one of them")
        return log

    def kafka(self) -> KafkaSettings:
        """The broker's settings. Raises `turngate.streams.log.LogError` where they do not work."""
        with extra("kafka"):
            from turngate.streams.kafka.settings import KafkaSettings
        return KafkaSettings.read(**{k: self.values[k] for k in _BROKER_OPTIONS})

    def registry(self) -> RegistrySettings | None:
        """The registry's settings, None where none is named. Raises `turngate.streams.log.LogError`."""
        with extra("kafka"):
            from turngate.streams.kafka.settings import RegistrySettings
        return RegistrySettings.read(**{k.removeprefix("registry_"): self.values[k] for k in _REGISTRY_OPTIONS})

    def codec(self) -> Codec:
        """The codec of the registry that was named, which is asked for its ids here; of Avro's framing without one.

        Blocks: not for an event loop. Raises `turngate.streams.log.LogError` where the registry is no use.
        """
        from turngate.schemas.codec import Codec

        settings = self.registry()
        if settings is None:
            return Codec()
        from turngate.streams.kafka.registry import RegistryIds

        return Codec(RegistryIds(settings))

    def keys(self) -> Keys:
        """The keys of share codes; none where none are named. Raises `turngate.streams.log.LogError`."""
        from turngate.streams.keys import read_keys

        return read_keys(self.values["keys_file"])

    def postgres(self) -> PostgresSettings | None:
        """Postgres' settings, None where no database is named. Raises `turngate.streams.log.LogError`."""
        with extra("kafka"):
            from turngate.streams.kafka.settings import PostgresSettings
        return PostgresSettings.read(
            self.values["postgres_dsn"],
            ssl_mode=self.values["postgres_sslmode"],
            ca_file=self.values["postgres_ca_file"],
        )


def connects(
    *, broker: bool = True, log: bool = False, registry: bool = True, postgres: bool = False, keys: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a broker; it gets them as one argument, `connection`.

    Without `broker` it gets none of these, nor a registry's. `log`: an embedded log may be named instead. `registry`,
    `postgres`, `keys`: the options of these as well.
    """
    options = dict(_LOG_OPTION) if log else {}
    options |= (_BROKER_OPTIONS | (_REGISTRY_OPTIONS if registry else {})) if broker else {}
    options |= (_POSTGRES_OPTIONS if postgres else {}) | ({"keys_file": KeysFile} if keys else {})

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = [
            p.replace(annotation=hints[p.name])
            for p in inspect.signature(command).parameters.values()
            if p.name != "connection"
        ]
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
            for name, option in options.items()
        ]

        @functools.wraps(command)
        def called(*args: Any, **given: Any) -> None:
            values = {name: given.pop(name) for name in options}
            command(*args, **given, connection=Connection(values))

        called.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
        return called

    return wrap
