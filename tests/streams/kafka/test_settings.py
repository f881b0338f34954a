"""Settings come from the caller or the environment, say what is wrong with them by name, and keep their secrets."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from faust.auth import SASLCredentials, SSLCredentials
from psycopg.conninfo import conninfo_to_dict

from turngate.streams.kafka.environment import SettingsError
from turngate.streams.kafka.settings import KafkaSettings, Mechanism, PostgresSettings, RegistrySettings, Security
from turngate.streams.log import LogError


@dataclass
class Pems:
    ca: str
    cert: str
    key: str
    other_key: str


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Pems:
    folder = tmp_path_factory.mktemp("pems")
    authority = trustme.CA()
    one, two = authority.issue_cert("client"), authority.issue_cert("other")
    made = {"ca": authority.cert_pem, "cert": one.cert_chain_pems[0]}
    made |= {"key": one.private_key_pem, "other_key": two.private_key_pem}
    for name, pem in made.items():
        pem.write_to_path(str(folder / name))
    return Pems(**{name: str(folder / name) for name in made})


def test_a_value_of_the_caller_stands_before_the_environment() -> None:
    environment = {"TURNGATE_BOOTSTRAP_SERVERS": "theirs:9092", "TURNGATE_SASL_USER": ""}
    assert KafkaSettings.read("ours:9092", environment=environment).bootstrap_servers == "ours:9092"
    assert KafkaSettings.read(environment=environment).bootstrap_servers == "theirs:9092"


def test_an_empty_variable_counts_as_none() -> None:
    names = (
        "CA_FILE",
        "CLIENT_CERT",
        "CLIENT_KEY",
        "SASL_USER",
        "SASL_PASSWORD",
        "SASL_MECHANISM",
        "SECURITY_PROTOCOL",
    )
    made = KafkaSettings.read("kafka:9092", environment={f"TURNGATE_{name}": "" for name in names})
    assert made.security is Security.PLAINTEXT
    assert made.client_options() == {
        "bootstrap_servers": ["kafka:9092"],
        "security_protocol": "PLAINTEXT",
        "ssl_context": None,
    }
    assert made.faust_credentials() is None


def test_every_broker_setting_is_read_from_the_environment(pems: Pems) -> None:
    environment = {
        "TURNGATE_BOOTSTRAP_SERVERS": "a:9092, b:9093",
        "TURNGATE_SECURITY_PROTOCOL": "sasl_ssl",
        "TURNGATE_CA_FILE": pems.ca,
        "TURNGATE_CLIENT_CERT": pems.cert,
        "TURNGATE_CLIENT_KEY": pems.key,
        "TURNGATE_SASL_MECHANISM": "scram-sha-256",
        "TURNGATE_SASL_USER": "turngate",
        "TURNGATE_SASL_PASSWORD": "hidden",
    }
    options = KafkaSettings.read(environment=environment).client_options()
    context = options.pop("ssl_context")
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert options == {
        "bootstrap_servers": ["a:9092", "b:9093"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "turngate",
        "sasl_plain_password": "hidden",
    }


def test_a_password_goes_over_tls_unless_somebody_says_otherwise() -> None:
    made = KafkaSettings.read("kafka:9092", sasl_user="u", sasl_password="p", environment={})
    assert made.security is Security.SASL_SSL
    assert made.sasl_mechanism is Mechanism.SCRAM_SHA_512
    asked = KafkaSettings.read(
        "kafka:9092", security="SASL_PLAINTEXT", sasl_user="u", sasl_password="p", environment={}
    )
    assert asked.security is Security.SASL_PLAINTEXT


def test_a_ca_file_alone_means_tls(pems: Pems) -> None:
    made = KafkaSettings.read("kafka:9093", ca_file=pems.ca, environment={})
    assert made.security is Security.SSL
    assert isinstance(made.faust_credentials(), SSLCredentials)


def test_faust_gets_the_same_credentials(pems: Pems) -> None:
    made = KafkaSettings.read("kafka:9093", ca_file=pems.ca, sasl_user="u", sasl_password="p", environment={})
    credentials = made.faust_credentials()
    assert isinstance(credentials, SASLCredentials)
    assert (credentials.username, credentials.password) == ("u", "p")
    assert credentials.mechanism.value == "SCRAM-SHA-512"
    assert isinstance(credentials.ssl_context, ssl.SSLContext)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no broker: give --bootstrap-servers or TURNGATE_BOOTSTRAP_SERVERS"),
        ({"bootstrap_servers": "kafka"}, "TURNGATE_BOOTSTRAP_SERVERS: must be host:port"),
        ({"bootstrap_servers": "kafka:port"}, "TURNGATE_BOOTSTRAP_SERVERS: must be host:port"),
        ({"bootstrap_servers": "a:1,"}, "TURNGATE_BOOTSTRAP_SERVERS: must be host:port"),
        ({"security": "TLS"}, "TURNGATE_SECURITY_PROTOCOL: must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"sasl_mechanism": "GSSAPI"}, "TURNGATE_SASL_MECHANISM: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl_user": "u"}, "SASL_SSL needs TURNGATE_SASL_USER and TURNGATE_SASL_PASSWORD"),
        ({"security": "SSL", "sasl_user": "u"}, "TURNGATE_SASL_USER is set, but TURNGATE_SECURITY_PROTOCOL is SSL"),
        ({"security": "PLAINTEXT", "ca_file": "x"}, "TLS files are set, but TURNGATE_SECURITY_PROTOCOL is PLAINTEXT"),
        ({"ca_file": "/nowhere/ca.pem"}, "TURNGATE_CA_FILE: /nowhere/ca.pem: no such file"),
        ({"client_key": "/nowhere/key.pem"}, "TURNGATE_CLIENT_KEY is set without TURNGATE_CLIENT_CERT"),
    ],
)
def test_what_is_wrong_with_a_broker_setting_is_said_by_name(given: dict[str, str], said: str) -> None:
    servers = {} if not given else {"bootstrap_servers": "kafka:9092"}
    with pytest.raises(SettingsError) as refused:
        KafkaSettings.read(**(servers | given), environment={})
    assert said in str(refused.value)
    assert isinstance(refused.value, LogError)


def test_a_folder_or_a_text_is_no_ca_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    with pytest.raises(SettingsError, match=r"TURNGATE_CA_FILE: .*: Is a directory"):
        KafkaSettings.read("kafka:9093", ca_file=str(tmp_path), environment={})
    made = KafkaSettings.read("kafka:9093", ca_file=str(tmp_path / "ca.pem"), environment={})
    with pytest.raises(SettingsError, match=r"TURNGATE_CA_FILE: .*ca.pem: is no PEM file with certificates"):
        made.client_options()


def test_a_key_of_another_certificate_is_refused(pems: Pems) -> None:
    made = KafkaSettings.read("kafka:9093", client_cert=pems.cert, client_key=pems.other_key, environment={})
    with pytest.raises(SettingsError, match=r"TURNGATE_CLIENT_CERT: .*cert and .*other_key: not a PEM certificate and"):
        made.client_options()


def test_no_secret_is_shown() -> None:
    kafka = KafkaSettings.read("k:1", sasl_user="u", sasl_password="hidden", environment={})
    registry = RegistrySettings.read("https://r", user="u", password="hidden", environment={})
    postgres = PostgresSettings.read("postgresql://u:hidden@db/x", environment={})
    assert "hidden" not in f"{kafka!r} {kafka} {registry!r} {registry} {postgres!r} {postgres}"


def test_without_a_url_there_is_no_registry_and_without_a_dsn_no_database() -> None:
    assert RegistrySettings.read(environment={}) is None
    assert PostgresSettings.read(environment={}) is None


def test_the_registrys_client_gets_files_and_password(pems: Pems) -> None:
    environment = {
        "TURNGATE_REGISTRY_URL": "https://registry:8443/",
        "TURNGATE_REGISTRY_CA_FILE": pems.ca,
        "TURNGATE_REGISTRY_USER": "u",
        "TURNGATE_REGISTRY_PASSWORD": "p",
    }
    made = RegistrySettings.read(environment=environment)
    assert made is not None
    assert made.client_config() == {
        "url": "https://registry:8443",
        "ssl.ca.location": pems.ca,
        "basic.auth.user.info": "u:p",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "registry:8081"}, "TURNGATE_REGISTRY_URL: must be an http:// or https:// URL"),
        ({"url": "https://u:hidden@registry"}, "TURNGATE_REGISTRY_URL: must not carry a password"),
        ({"url": "https://registry", "user": "u"}, "must be set together"),
        ({"url": "http://registry", "user": "u", "password": "hidden"}, "would be sent unencrypted"),
        ({"url": "http://registry", "ca_file": "x"}, "its URL is http://"),
        ({"url": "https://registry", "ca_file": "/nowhere"}, "TURNGATE_REGISTRY_CA_FILE: /nowhere: no such file"),
        ({"user": "u", "password": "hidden"}, "without TURNGATE_REGISTRY_URL"),
    ],
)
def test_what_is_wrong_with_a_registry_setting_is_said_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        RegistrySettings.read(**given, environment={})
    assert said in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_a_ca_file_makes_postgres_verify_the_servers_name(pems: Pems) -> None:
    made = PostgresSettings.read("postgresql://u:hidden@db/x", ca_file=pems.ca, environment={})
    assert made is not None
    parsed = conninfo_to_dict(made.conninfo())
    assert (parsed["sslmode"], parsed["sslrootcert"]) == ("verify-full", pems.ca)
    assert (parsed["host"], parsed["dbname"], parsed["password"]) == ("db", "x", "hidden")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"dsn": "host=db", "ssl_mode": "prefer"},
            "TURNGATE_POSTGRES_SSLMODE: must be one of disable, require, verify-",
        ),
        ({"dsn": "host=db", "ssl_mode": "verify-full"}, "verify-full needs TURNGATE_POSTGRES_CA_FILE"),
        ({"dsn": "host=db", "ssl_mode": "require", "ca_file": "x"}, "TURNGATE_POSTGRES_SSLMODE=require ignores it"),
        ({"dsn": "host=db", "ca_file": "/nowhere"}, "TURNGATE_POSTGRES_CA_FILE: /nowhere: no such file"),
        ({"ssl_mode": "require"}, "without TURNGATE_POSTGRES_DSN"),
    ],
)
def test_what_is_wrong_with_a_postgres_setting_is_said_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        PostgresSettings.read(**given, environment={})
    assert said in str(refused.value)


def test_a_dsn_that_is_none_is_refused_without_being_quoted() -> None:
    made = PostgresSettings.read("postgresql://u:hidden@db:port:5/x?nonsense", environment={})
    assert made is not None
    with pytest.raises(SettingsError, match="TURNGATE_POSTGRES_DSN: must be postgresql://") as refused:
        made.conninfo()
    assert "hidden" not in str(refused.value)
