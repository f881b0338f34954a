"""On a broker with an authorizer the printed ACLs let each role do its part, and nothing else (R-EVI-10)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner

from tests.broker import Broker, quiet
from tests.cli.conftest import DRAFT, INSTALLED, MESSAGE, POLICY, Line, listing
from tests.cli.conftest import written as written_lines
from tests.conftest import missing
from tests.gateway.conftest import Keyring, gateway_on
from tests.jvm import JAVA, Unavailable, broker_jars, jar
from turngate.cli.main import app
from turngate.connectors.assessor.rules import assess_by_rules
from turngate.connectors.assessor.service import Assessor
from turngate.schemas.authority import READERS, WRITERS, Role
from turngate.schemas.codec import Codec
from turngate.streams.clock import now_ms
from turngate.streams.kafka.clients import plain_consumer, transactional_producer
from turngate.streams.kafka.feed import KafkaFeed
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC, create_topics

pytestmark = pytest.mark.kafka

EVERY_TOPIC = (*READERS, STATE_TOPIC)
#: Of a role nobody has named.
STRANGER = "stranger"
MAY_READ = {role: {t for t in READERS if role in READERS[t]} for role in Role}
MAY_WRITE = {role: {t for t in WRITERS if role in WRITERS[t]} for role in Role}
MAY_READ[Role.WORKER].add(STATE_TOPIC)
MAY_READ[Role.OPERATOR].add(STATE_TOPIC)
MAY_WRITE[Role.WORKER].add(STATE_TOPIC)


def record(topic: str) -> dict[str, bytes | None]:
    """Something to write; to the state what its owner writes to prove that it is (see owner.py)."""
    return {"key": b"t", "value": None} if topic == STATE_TOPIC else {"key": b"acme", "value": b"no record"}


def password(user: str) -> str:
    return f"{user}-secret"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that refuses what no ACL allows, with a user for each role and one for none, the printed ACLs, and the
    contract's topics."""
    folder = tmp_path_factory.mktemp("guarded")
    users = " ".join(f'user_{user}="{password(user)}"' for user in (*Role, STRANGER))
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # the listener without passwords, which is the broker's own and ours
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.named.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
    }
    try:
        tool = jar("org.apache.kafka", "kafka-tools", "4.4.0")
        broker = Broker(folder / "kafka", properties, listeners={"NAMED": "SASL_PLAINTEXT"})
    except Unavailable as reason:
        missing("no Kafka broker, or not its tool", reason)
    with broker:
        commands = printed(broker)
        bindings = {command: bound(command) for command in commands}
        admin = AdminClient(quiet(broker.bootstrap))
        # Each run of the tool starts a Java, so it carries out one role's; they are what we take the others for.
        workers = [command for command in commands if "User:worker" in command]
        run(tool, workers)
        assert known(admin) == {binding for command in workers for binding in bindings[command]}
        for done in admin.create_acls([b for c in commands if c not in workers for b in bindings[c]]).values():
            done.result(10)
        asyncio.run(create_topics(KafkaSettings.read(broker.bootstrap, environment={}), 1, 1))
        yield broker


def printed(broker: Broker) -> list[str]:
    """What `turngate topics acl` prints for a principal of each role."""
    named = [word for role in Role for word in (f"--{role}", f"User:{role}")]
    result = CliRunner().invoke(app, ["topics", "acl", "--bootstrap-servers", broker.bootstrap, *named])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def run(tool: Path, commands: list[str]) -> None:
    """Carry out printed commands by Kafka's own tool."""
    java = [*JAVA, "-cp", f"{tool}/*:{broker_jars()}/*", "org.apache.kafka.tools.AclCommand"]
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "kafka-acls.sh"
        done = subprocess.run([*java, *arguments], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def bound(command: str) -> list[AclBinding]:
    """What a printed command allows."""
    words = iter(shlex.split(command)[1:])
    said: dict[str, list[str]] = {}
    for word in words:
        said.setdefault(word, []).extend([] if word == "--add" else [next(words)])
    prefixed = said.get("--resource-pattern-type") == ["prefixed"]
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    (operation,), (principal,) = said["--operation"], said["--allow-principal"]
    does = {"Read": AclOperation.READ, "Write": AclOperation.WRITE, "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS}
    kinds = {
        "--topic": ResourceType.TOPIC,
        "--group": ResourceType.GROUP,
        "--transactional-id": ResourceType.TRANSACTIONAL_ID,
    }
    return [
        AclBinding(kinds[kind], name, pattern, principal, "*", does[operation], AclPermissionType.ALLOW)
        for kind in kinds
        for name in said.get(kind, [])
    ]


def known(admin: AdminClient) -> set[AclBinding]:
    """Every ACL of the broker."""
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return set(admin.describe_acls(everything).result(10))


def settings(broker: Broker, user: str) -> KafkaSettings:
    """How a user reaches the broker."""
    return KafkaSettings.read(
        broker.addresses["NAMED"],
        security="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_user=user,
        sasl_password=password(user),
        environment={},
    )


def client(broker: Broker, user: str) -> dict[str, Any]:
    """The same for librdkafka."""
    return {
        "bootstrap.servers": broker.addresses["NAMED"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password(user),
        "log_level": 0,
    }


@pytest.fixture(scope="module")
def topics(guarded: Broker) -> Broker:
    """The broker with a record on each topic."""
    producer = Producer(quiet(guarded.bootstrap))
    for topic in EVERY_TOPIC:
        producer.produce(topic, **record(topic))
    assert producer.flush(30) == 0
    return guarded


def written(broker: Broker, user: str) -> set[str]:
    """The topics on which a user's record was acknowledged; every other one was refused for lack of authority."""
    came: dict[str, int | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        came[str(message.topic())] = None if error is None else error.code()

    producer = Producer(client(broker, user) | {"error_cb": lambda _: None})
    for topic in EVERY_TOPIC:
        producer.produce(topic, **record(topic), on_delivery=delivered)
    assert producer.flush(60) == 0
    assert came.keys() == set(EVERY_TOPIC)
    assert set(came.values()) <= {None, KafkaError.TOPIC_AUTHORIZATION_FAILED}
    return {topic for topic, code in came.items() if code is None}


async def read(broker: Broker, user: str) -> set[str]:
    """The topics whose first record a user got; the broker showed or gave no other."""
    got = set()
    async with plain_consumer(settings(broker, user), committed=False) as consumer:
        for topic in await consumer.topics() & set(EVERY_TOPIC):
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            consumer.seek(place, 0)
            with contextlib.suppress(TopicAuthorizationFailedError):
                await asyncio.wait_for(consumer.getone(place), 30)
                got.add(topic)
    return got


@pytest.mark.parametrize("role", list(Role))
def test_a_role_writes_its_topics_and_is_refused_on_every_other(topics: Broker, role: Role) -> None:
    assert written(topics, role) == MAY_WRITE[role]


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_reads_its_topics_and_is_refused_on_every_other(topics: Broker, role: Role) -> None:
    assert await read(topics, role) == MAY_READ[role]


async def test_who_is_named_for_no_role_does_nothing(topics: Broker) -> None:
    assert written(topics, STRANGER) == await read(topics, STRANGER) == set()


def turngate(broker: Broker, user: str, *arguments: object, **more: Any) -> str:
    """What a command prints for a user; it must succeed."""
    login = {
        "TURNGATE_BOOTSTRAP_SERVERS": broker.addresses["NAMED"],
        "TURNGATE_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "TURNGATE_SASL_MECHANISM": "PLAIN",
        "TURNGATE_SASL_USER": user,
        "TURNGATE_SASL_PASSWORD": password(user),
    }
    result = CliRunner().invoke(app, [str(a) for a in arguments], env=login, **more)
    assert result.exit_code == 0, f"{user}: {result.output}"
    return result.stdout


@contextlib.contextmanager
def worker(broker: Broker) -> Iterator[None]:
    """A worker with the worker's own user."""
    flags = ("--security-protocol", "SASL_PLAINTEXT", "--sasl-mechanism", "PLAIN", "--sasl-user", Role.WORKER)
    command = (INSTALLED, "worker", "--bootstrap-servers", broker.addresses["NAMED"], *flags)
    login = os.environ | {"TURNGATE_SASL_PASSWORD": password(Role.WORKER)}
    with subprocess.Popen(command, env=login, stderr=subprocess.PIPE) as process:
        try:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_every_role_does_its_part(guarded: Broker, tmp_path: Path) -> None:
    began = now_ms()
    draft: Line = ("TurnDrafted", DRAFT[1] | {"turn": f"t{began}"})
    sent: tuple[tuple[Role, Line], ...] = (
        (Role.OPERATOR, POLICY),
        (Role.CONNECTOR, listing(began)),
        (Role.CONNECTOR, MESSAGE),
        (Role.AGENT, draft),
    )
    assert "ok   topics" in turngate(guarded, Role.OPERATOR, "doctor")
    with worker(guarded):
        for role, line in sent:
            turngate(guarded, role, "send", written_lines(tmp_path / "records", line, at=began))
        deadline = time.monotonic() + 30
        while "verdict=deliver" not in tail(guarded, Role.AGENT, "turn-verdicts"):
            assert time.monotonic() < deadline, "nothing was delivered within 30 s"
        who = ("--tenant", "acme", "--operator", "alex")
        assert turngate(guarded, Role.OPERATOR, "pause", "mesh", *who) == "mesh is paused everywhere\n"
    assert " TurnAuthorized " in tail(guarded, Role.SINK, "outbound")
    assert " EvidenceRecorded " in tail(guarded, Role.AUDITOR, "source-evidence")


def tail(broker: Broker, user: str, topic: str) -> str:
    return turngate(broker, user, "tail", topic, "--from", "beginning", "--no-follow")


async def test_an_assessor_reads_what_it_needs_in_its_group(guarded: Broker) -> None:
    stop = asyncio.Event()
    assessor = Assessor(settings(guarded, Role.ASSESSOR), Codec(), assess_by_rules)
    running = asyncio.create_task(assessor.run(stop))
    begun = asyncio.create_task(assessor.ready.wait())
    await asyncio.wait([begun, running], timeout=60, return_when=asyncio.FIRST_COMPLETED)
    assert assessor.ready.is_set()
    stop.set()
    await asyncio.wait_for(running, 30)


async def test_a_gateway_writes_for_an_agent_and_reads_what_it_needs(guarded: Broker, tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "tokens.json")
    async with KafkaFeed(settings(guarded, Role.GATEWAY), Codec()) as feed, gateway_on(feed, keyring) as running:
        body = {"room": "slack:T1/D1", "call": "c1", "server": "wiki", "operation": "read"}
        answer = await running.agent().post("/v1/tool-results", json=body)
    assert (answer.status_code, answer.json()) == (200, {"recorded": "tool:c1"})


async def test_nobody_but_a_worker_joins_its_group_or_fences_it(topics: Broker) -> None:
    for role in set(Role) - {Role.WORKER}:
        producer = transactional_producer(settings(topics, role), Names().transactional_id(0))
        with pytest.raises(TransactionalIdAuthorizationFailed):
            await producer.start()
        await producer.stop()
        with pytest.raises(GroupAuthorizationFailedError):
            await committed(settings(topics, role), Names().group_id(Role.WORKER), "policies")
        for topic in sorted(MAY_READ[role])[:1]:
            assert await committed(settings(topics, role), f"{Names().group_id(role)}-of-mine", topic) is None


async def committed(how: KafkaSettings, name: str, topic: str) -> object:
    """What a group has committed; asking is refused where the group is not one's own."""
    consumer = AIOKafkaConsumer(group_id=name, enable_auto_commit=False, **how.client_options())
    await consumer.start()
    try:
        return await consumer.committed(TopicPartition(topic, 0))
    finally:
        await consumer.stop()
