"""How the Kafka runtime answers the contract suite: a worker process on a live broker, killed without warning."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aiokafka import TopicPartition

from tests.kafka.cluster import Cluster, Sent
from tests.kafka.exactness import assert_exact
from tests.streams.world import Input
from turngate.processors.engine import Engine
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.log import Message


class KafkaHarness:
    """Topics of its own with one partition and simulated time; the worker keeps its place in the group over restarts.

    At the end everything is replayed on the embedded log, and must come to the same bytes.
    """

    def __init__(self, bootstrap: str, unique: str, folder: Path) -> None:
        self._cluster = Cluster(KafkaSettings.read(bootstrap), f"{unique}-", 1, create_time=True)
        self._log = folder / "worker.log"
        self._ends: dict[TopicPartition, int] = {}
        asyncio.run(self._cluster.make_topics())
        self._worker = self._started()

    def send(self, inputs: Sequence[Input]) -> None:
        sent = [Sent(i.topic, 0, i.key, i.value, i.timestamp) for i in inputs]
        self._ends |= asyncio.run(self._cluster.send(sent, one_by_one=True))

    def until_applied(self) -> None:
        asyncio.run(self._cluster.until_applied(self._ends))

    def outputs(self, topic: str) -> list[Message]:
        return asyncio.run(self._cluster.read(topic))[TopicPartition(topic, 0)]

    def restart(self) -> None:
        self._end()
        self._worker = self._started()

    def crash(self) -> None:
        self._worker.kill()
        self._worker.wait()
        self._worker = self._started()

    def close(self) -> None:
        try:
            self.until_applied()
            self._end()
            asyncio.run(assert_exact(self._cluster, Engine.restore, self._ends))
        finally:
            self._worker.kill()
            self._worker.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        return self._cluster.worker(self._log, "--decide", "--instance", "worker")

    def _end(self) -> None:
        """SIGTERM. A process that has not come so far as to catch it ends at once, and has done nothing yet."""
        self._worker.terminate()
        assert self._worker.wait(20) in (0, -signal.SIGTERM), self._log.read_text()
