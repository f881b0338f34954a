"""A broker that wants TLS and a password gets both; whoever lacks one is told so in bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.broker import Broker
from tests.conftest import missing
from tests.jvm import Unavailable
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import check_topics, create_topics
from turngate.streams.log import LogError

pytestmark = pytest.mark.kafka

_MODULES = "org.apache.kafka.common.security"


@dataclass
class Guarded:
    """A broker with a listener for TLS with client certificates, and one for TLS with passwords."""

    broker: Broker
    ca: str
    other_ca: str
    cert: str
    key: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    authority, stranger = trustme.CA(), trustme.CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("turngate-worker")
    key = load_pem_private_key(server.private_key_pem.bytes(), None)  # Kafka reads keys in PKCS 8 only
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "server.pem").write_bytes(pkcs8 + server.cert_chain_pems[0].bytes())
    for name, pem in (("ca", authority.cert_pem), ("other_ca", stranger.cert_pem)):
        pem.write_to_path(str(folder / name))
    client.cert_chain_pems[0].write_to_path(str(folder / "cert"))
    client.private_key_pem.write_to_path(str(folder / "key"))
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca"),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.named.plain.sasl.jaas.config": (
            f'{_MODULES}.plain.PlainLoginModule required user_alex="by-plain";'
        ),
        "listener.name.named.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    }
    try:
        broker = Broker(
            folder / "kafka",
            properties,
            listeners={"MUTUAL": "SSL", "NAMED": "SASL_SSL"},
            format_options=("--add-scram", "SCRAM-SHA-512=[name=alex,password=by-scram]"),
        )
    except Unavailable as reason:
        missing("no Kafka broker", reason)
    with broker:
        yield Guarded(broker, *(str(folder / name) for name in ("ca", "other_ca", "cert", "key")))


async def test_a_password_over_tls(guarded: Guarded) -> None:
    environment = {"TURNGATE_SASL_USER": "alex", "TURNGATE_SASL_PASSWORD": "by-scram", "TURNGATE_CA_FILE": guarded.ca}
    settings = KafkaSettings.read(guarded.broker.addresses["NAMED"], environment=environment)
    await create_topics(settings, 1, 1)
    assert len(await check_topics(settings)) > 20


async def test_the_plain_mechanism_over_tls(guarded: Guarded) -> None:
    environment = {"TURNGATE_SASL_MECHANISM": "PLAIN", "TURNGATE_SASL_USER": "alex", "TURNGATE_CA_FILE": guarded.ca}
    settings = KafkaSettings.read(guarded.broker.addresses["NAMED"], sasl_password="by-plain", environment=environment)
    await create_topics(settings, 1, 1)


async def test_a_client_certificate(guarded: Guarded) -> None:
    settings = KafkaSettings.read(
        guarded.broker.addresses["MUTUAL"],
        ca_file=guarded.ca,
        client_cert=guarded.cert,
        client_key=guarded.key,
        environment={},
    )
    await create_topics(settings, 1, 1)


@pytest.mark.parametrize(
    ("listener", "given"),
    [
        ("NAMED", {"sasl_user": "alex", "sasl_password": "wrong"}),
        ("NAMED", {"sasl_user": "alex", "sasl_password": "by-scram", "ca_file": "other_ca"}),
        ("NAMED", {}),
        ("NAMED", {"security": "PLAINTEXT", "ca_file": ""}),
        ("MUTUAL", {}),
    ],
    ids=["wrong password", "another authority", "no password", "no TLS", "no client certificate"],
)
async def test_who_lacks_something_gets_one_sentence(guarded: Guarded, listener: str, given: dict[str, str]) -> None:
    files = {"ca_file": guarded.ca} | {k: getattr(guarded, v, v) for k, v in given.items()}
    settings = KafkaSettings.read(guarded.broker.addresses[listener], **files, environment={})
    begun = time.monotonic()
    with pytest.raises(LogError) as refused:
        await check_topics(settings, patience=4)
    assert time.monotonic() - begun < 10
    assert str(settings.bootstrap_servers) in str(refused.value)
    assert "\n" not in str(refused.value)
