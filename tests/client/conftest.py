"""Decides how the client's suite reaches a gate: in process, over HTTP, and straight over Kafka."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.places import AGENTS, ALEX, BO, DIRECT, GENERAL, POLICY, InProcessPlace, LivePlace, Office, Place
from tests.gateway.conftest import Keyring, Running, embedded, gateway_on
from tests.kafka.cluster import CODEC, Cluster
from turngate.client import Gate, Turn, connect
from turngate.client.testing import Workplace, workplace
from turngate.gateway.tokens import Scope
from turngate.streams.kafka.settings import KafkaSettings

__all__ = ["workplace"]  # a fixture

Start = Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Place]]


class Worker:
    """Topics of the contract on a broker, and one worker that decides, unless it is killed."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self.cluster = cluster
        self._log = log
        self.start()

    def start(self) -> None:
        self._process = self.cluster.worker(self._log, "--decide", "--keys")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="package")
def worker(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker on the shared broker; tests have tenants of their own."""
    cluster = Cluster(KafkaSettings.read(kafka), f"t{uuid.uuid4().hex[:12]}-", 2)
    asyncio.run(cluster.make_topics())
    running = Worker(cluster, tmp_path_factory.mktemp("client") / "worker.log")
    try:
        yield running
    finally:
        running.kill()


class KafkaPlace(LivePlace):
    """A broker with a worker."""

    def __init__(self, feed: Any, tenant: str, cluster: Cluster) -> None:
        super().__init__(feed, tenant)
        self._cluster = cluster

    def gate(self, agent: str = "mesh", **more: Any) -> AbstractAsyncContextManager[Gate]:
        from turngate.client.kafka import connect

        address = self._cluster.settings.bootstrap_servers
        return connect(address, tenant=self.tenant, agent=agent, prefix=self._cluster.prefix, **more)


class HttpPlace(LivePlace):
    """A gateway on an embedded log."""

    def __init__(self, running: Running) -> None:
        super().__init__(running.feed, "acme")
        self._keyring = running.keyring
        self.url = running.url

    def token(self, agent: str) -> str:
        return self._keyring.make(Scope.AGENT, agent=agent)

    def gate(self, agent: str = "mesh", **more: Any) -> AbstractAsyncContextManager[Gate]:
        return connect(self.url, token=self.token(agent), **more)


@asynccontextmanager
async def _workplace() -> AsyncIterator[Place]:
    with Workplace(*AGENTS) as made:
        yield InProcessPlace(made)


@asynccontextmanager
async def gateway_place(folder: Path) -> AsyncIterator[HttpPlace]:
    async with embedded(folder / "log") as feed, gateway_on(feed, Keyring(folder / "tokens.json")) as running:
        ticking = asyncio.create_task(feed.tick())
        try:
            yield HttpPlace(running)
        finally:
            ticking.cancel()


@asynccontextmanager
async def _broker(cluster: Cluster, tenant: str) -> AsyncIterator[Place]:
    from turngate.streams.kafka.feed import KafkaFeed

    async with KafkaFeed(cluster.settings, CODEC, cluster.prefix) as feed:
        yield KafkaPlace(feed, tenant, cluster)


def _in_process(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Place]:
    return _workplace()


def _over_http(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Place]:
    return gateway_place(request.getfixturevalue("tmp_path"))


def _on_kafka(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Place]:
    return _broker(request.getfixturevalue("worker").cluster, request.getfixturevalue("unique"))


_IN_PROCESS = pytest.param(_in_process, id="in-process")
#: In real time.
_LIVE = [pytest.param(_over_http, id="http"), pytest.param(_on_kafka, id="kafka", marks=pytest.mark.kafka)]


@asynccontextmanager
async def _opened(place: AbstractAsyncContextManager[Place]) -> AsyncIterator[Office]:
    async with place as there:
        made = Office(there)
        await made.open()
        yield made


@pytest.fixture(params=[_IN_PROCESS, *_LIVE])
def any_place(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Place]:
    start: Start = request.param
    return start(request)


@pytest.fixture(params=_LIVE)
def live_place(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Place]:
    start: Start = request.param
    return start(request)


@pytest.fixture
async def office(any_place: AbstractAsyncContextManager[Place]) -> AsyncIterator[Office]:
    """A place where something happens, whichever way its gate is reached."""
    async with _opened(any_place) as made:
        yield made


@pytest.fixture
async def live_office(live_place: AbstractAsyncContextManager[Place]) -> AsyncIterator[Office]:
    """The same where time passes by itself."""
    async with _opened(live_place) as made:
        yield made


@pytest.fixture
async def staffed() -> AsyncIterator[Workplace]:
    """A workplace with the two rooms in it."""
    with Workplace(policy=POLICY) as made:
        made.room(DIRECT, ALEX, kind="direct")
        made.room(GENERAL, ALEX, BO)
        yield made


@pytest.fixture
async def turn(staffed: Workplace) -> AsyncIterator[Turn]:
    """A turn that answers Alex where Bo reads along."""
    asked = staffed.said(GENERAL, "when am I away?", by=ALEX)
    async with staffed.gate().turn(room=GENERAL, trigger=asked) as made:
        yield made
