"""Decides how the tests run Apache Kafka: one KRaft node on loopback that can be killed and started again."""

from __future__ import annotations

import base64
import itertools
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.jvm import JAVA, DiedError, Server, broker_jars, free_port

_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # A node that was killed is taken back only after its session: 9 seconds if these two are left out.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "log.message.timestamp.type": "LogAppendTime",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "num.network.threads": "2",
    "num.io.threads": "4",
}

_LOG4J = """\
status = error
appender.file.type = File
appender.file.name = F
appender.file.fileName = {folder}/broker.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}} %m%n
rootLogger.level = warn
rootLogger.appenderRef.f.ref = F
"""


def quiet(bootstrap: str) -> dict[str, Any]:
    """Settings of librdkafka's clients, which outlive a test and would report on stderr that its broker is gone."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": lambda _: None}


class Broker:
    """One Kafka node with its data in `folder`. Its address stays the same over restarts.

    `properties` are added to, and stand before, those of a test node. `listeners` are further ones, a security protocol
    by the listener's name, whose addresses are in `addresses`; `format_options` go to Kafka's storage tool. Raises
    `Unavailable` where there are no jars.
    """

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        *,
        listeners: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {}), "CONTROLLER": "PLAINTEXT"}
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in protocols}
        self.bootstrap = self.addresses["PLAINTEXT"]
        self._format_options = tuple(format_options)
        self._folder = folder
        self._properties = folder / "server.properties"
        addresses = {
            "controller.quorum.voters": f"1@{self.addresses['CONTROLLER']}",
            "listener.security.protocol.map": ",".join(f"{name}:{p}" for name, p in protocols.items()),
            "listeners": ",".join(f"{name}://{address}" for name, address in self.addresses.items()),
            "advertised.listeners": ",".join(
                f"{name}://{address}" for name, address in self.addresses.items() if name != "CONTROLLER"
            ),
            "log.dirs": str(folder / "data"),
        }
        lines = (f"{k}={v}\n" for k, v in (_PROPERTIES | addresses | dict(properties or {})).items())
        self._properties.write_text("".join(lines), "utf-8")
        (folder / "log4j2.properties").write_text(_LOG4J.format(folder=folder), "utf-8")
        logging = f"-Dlog4j2.configurationFile={folder}/log4j2.properties"
        self._java = (*JAVA, logging, "-cp", f"{broker_jars()}/*")
        self._starts = itertools.count(1)
        self._probe = ""
        self._admin: AdminClient | None = None
        command = (*self._java, "kafka.Kafka", str(self._properties))
        self._server = Server(command, folder / "output", self._can_create_a_topic, log=folder / "broker.log")

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._server.pid

    @property
    def running(self) -> bool:
        """Whether the node's process lives."""
        return self._server.running

    def start(self) -> None:
        """Start on the data that is there, or on none, and wait until a topic can be created."""
        if not (self._folder / "data").exists():
            self._format()
        self._probe = f"turngate-ready-{next(self._starts)}"
        self._admin = AdminClient(quiet(self.bootstrap) | {"reconnect.backoff.max.ms": 200})
        self._server.start()
        self._admin.delete_topics([self._probe])[self._probe].result(10)
        self._admin = None

    def stop(self) -> None:
        """SIGTERM; returns when the process has ended."""
        self._server.stop()

    def kill(self) -> None:
        """SIGKILL; returns when the process has ended."""
        self._server.kill()

    def restart(self) -> None:
        """Start again on the same data and ports, after `stop` or `kill`."""
        self.start()

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # One word, since an id may begin with a dash.
        tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._properties))
        done = subprocess.run(
            [*self._java, *tool, *self._format_options], capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise DiedError("the data folder cannot be formatted: " + (done.stdout + done.stderr)[-2000:])

    def _can_create_a_topic(self) -> bool:
        """A port that listens is not enough: the node takes its place in the cluster after that."""
        assert self._admin is not None
        try:
            self._admin.create_topics([NewTopic(self._probe, 1, 1)], request_timeout=2)[self._probe].result(3)
        except KafkaException as error:
            # It exists where an earlier answer came too late for us.
            return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        except TimeoutError:
            return False
        return True
