"""The gateway before a broker: any number of them give the same answers, whatever dies, and the log's as on a file."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import (
    ROOM,
    TRIGGER,
    Keyring,
    Running,
    begin,
    day,
    draft,
    embedded,
    gateway_on,
    on_log,
    request,
)
from tests.gateway.crowd import Crowd, unlimited
from tests.kafka.cluster import Cluster
from turngate.gateway.tokens import Scope
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import TurnAuthorized
from turngate.streams.feed import Feed
from turngate.streams.kafka.feed import KafkaFeed
from turngate.streams.kafka.settings import KafkaSettings

pytestmark = pytest.mark.kafka

#: What differs from run to run: times, how far a partition has come, and digests of what holds these.
VOLATILE = {"at", "as_of", "valid_until", "listed_at", "previous", "decided", "authorized"}


class Workers:
    """A worker with the product's engine, which can be killed."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self._cluster = cluster
        self._log = log
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return self._cluster.worker(self._log, "--decide", "--instance", "worker")

    def kill(self) -> None:
        """Kill it without warning, and start another one in its place."""
        self.stop()
        self._process = self._started()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
async def cluster(kafka: str, unique: str) -> Cluster:
    made = Cluster(KafkaSettings.read(kafka), f"{unique}-", 2)
    await made.make_topics()
    return made


@pytest.fixture
def workers(cluster: Cluster, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(cluster, tmp_path / "worker.log")
    yield made
    made.stop()


@asynccontextmanager
async def broker(cluster: Cluster) -> AsyncIterator[KafkaFeed]:
    async with KafkaFeed(cluster.settings, Codec(), cluster.prefix) as feed:
        yield feed


async def conversation(running: Running) -> list[tuple[int, dict[str, Any]]]:
    """What an agent asks in one turn and after it, one request after the other, and what it is answered."""
    agent = running.agent()
    note = {"write": "w1", "memory": "plan", "revision": "plan@1", "op": "create", "by": "turn", "kind": "note",
            "text": "Alex is up", "sources": [TRIGGER], "turn": "t1", "room": ROOM}  # fmt: skip
    requests = [
        ("context", request("q1", "t1", TRIGGER, "revision:plan@1", "message:slack:T1/D9/1")),
        ("memory", note),
        ("memory", note | {"write": "w2"}),
        ("drafts", draft("t1", exposed=["revision:plan@1"])),
        ("tool-results", {"room": ROOM, "turn": "t2", "call": "c1", "server": "wiki", "operation": "read"}),
        ("drafts", draft("t2")),
        ("drafts", draft("t2", "something else")),
        ("context", request("q2", "t3", "revision:plan@1")),
        ("drafts", draft("t1", exposed=["revision:plan@1"])),
    ]
    answers = [await agent.post(f"/v1/{path}", json=body) for path, body in requests]
    return [(answer.status_code, answer.json()) for answer in answers]


async def written(feed: Feed) -> list[tuple[str, dict[str, Any]]]:
    """What came of it on the log, without what is another one each time."""
    topics = ("turn-drafts", "tool-results", "memory-writes", "turn-verdicts", "outbound", "memory-revisions",
              "source-evidence", "grants", "audit", "dead-letters")  # fmt: skip
    records = [record for topic in topics for record in await on_log(feed, topic)]
    return [(type(r).__name__, r.model_dump(mode="json", exclude=VOLATILE)) for r in records]


async def test_the_same_requests_give_the_same_records_on_a_broker_and_on_a_file(
    cluster: Cluster, workers: Workers, keyring: Keyring, log_file: Path
) -> None:
    async with embedded(log_file) as feed, gateway_on(feed, keyring) as running:
        await begin(feed, day())
        on_file, records = await conversation(running), await written(feed)
    async with broker(cluster) as kafka, gateway_on(kafka, keyring) as running:
        await begin(kafka, day())
        assert without_policy(await conversation(running)) == without_policy(on_file)
        assert await written(kafka) == records
    assert [status for status, _ in on_file] == [200, 200, 200, 200, 200, 200, 409, 200, 200]
    assert [a.get("verdict") for _, a in on_file if "verdict" in a] == ["deliver", "drop", "deliver"]


def without_policy(answers: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    return [(status, {k: v for k, v in answer.items() if k not in VOLATILE}) for status, answer in answers]


async def test_of_two_gateways_each_gives_the_others_answers(
    cluster: Cluster, workers: Workers, keyring: Keyring
) -> None:
    token = keyring.make(Scope.AGENT)
    async with broker(cluster) as one, broker(cluster) as two:
        async with gateway_on(one, keyring) as first, gateway_on(two, keyring) as second:
            await begin(one, day(stale={"hold": "2s"}))
            clients = [first.client(token), second.client(token)]
            for number in range(5):
                bodies = [draft(f"t{number}", text) for text in ("this", "that")]
                answers = await asyncio.gather(
                    *(client.post("/v1/drafts", json=body) for client, body in zip(clients, bodies, strict=True))
                )
                assert sorted(answer.status_code for answer in answers) == [200, 409]  # the first on the log stands
                stands = [answer.status_code for answer in answers].index(200)
                for client in clients:
                    again = await client.post("/v1/drafts", json=bodies[stands])
                    assert again.content == answers[stands].content
                    assert (await client.post("/v1/drafts", json=bodies[1 - stands])).status_code == 409
            held = await clients[0].post("/v1/drafts?wait=0", json=draft("h", room="slack:T1/C7"))
            assert (await clients[1].get(held.headers["location"])).json()["verdict"] in ("downgrade", "drop")
        assert len([r for r in await on_log(one, "outbound") if isinstance(r, TurnAuthorized) and r.turn != "h"]) == 5


async def test_a_worker_that_is_killed_under_load_loses_no_verdict(
    cluster: Cluster, workers: Workers, keyring: Keyring
) -> None:
    """A thousand agents' turns at once, through two gateways."""
    crowd, chance = Crowd(keyring, 1000), random.Random(8)
    async with broker(cluster) as one, broker(cluster) as two, unlimited() as session:
        async with gateway_on(one, keyring) as first, gateway_on(two, keyring) as second:
            await begin(one, crowd.day())
            answers: dict[str, dict[str, Any]] = {}
            reached = {moment: asyncio.Event() for moment in (300,)}

            async def ask(agent: str) -> None:
                answers[agent] = await crowd.speak(chance.choice((first, second)).url, agent, session)
                if (come := reached.get(len(answers))) is not None:
                    come.set()

            asking = asyncio.gather(*(ask(agent) for agent in crowd.agents))
            for moment in reached:
                await reached[moment].wait()
                workers.kill()
            await asking
            crowd.check(answers)
        let_out = [r.turn for r in await on_log(one, "outbound") if isinstance(r, TurnAuthorized)]
    assert sorted(let_out) == sorted(f"turn-of-{agent}" for agent in crowd.agents if not crowd.refused(agent))
